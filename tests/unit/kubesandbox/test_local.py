"""Access to the server from the same process."""

from __future__ import annotations

import asyncio

import pytest

from kubesandbox.local import LocalClient
from pyverno.kube.status import StatusError
from tests.unit.kubesandbox.serving import ADMIN, api_server, config_map, deployment, pod, run


def test_objects_are_written_and_read() -> None:
    """Objects are addressed by storage key; namespace and name are in the object."""
    client = LocalClient(api_server(), ADMIN)
    run(client.create("configmaps", config_map("a", {"x": "1"}, namespace="default")))
    body = client.get("configmaps", "a", "default")
    assert body is not None
    assert {"x": "1"} == body["data"]
    run(client.update("configmaps", {**body, "data": {"x": "2"}}))
    run(client.patch("configmaps", "a", "default", {"data": {"y": "3"}}))
    assert [{"x": "2", "y": "3"}] == [item["data"] for item in client.list("configmaps", "default")]
    run(client.delete("configmaps", "a", "default"))
    assert client.get("configmaps", "a", "default") is None


def test_writes_are_those_of_the_user() -> None:
    """Managed fields name the last part of the user's name, unless a field manager is given."""
    server = api_server()
    for client, expected in ((LocalClient(server, ADMIN), "admin"), (LocalClient(server, ADMIN, manager="x"), "x")):
        body = run(client.create("configmaps", config_map(expected, {"a": "b"}, namespace="default")))
        assert [expected] == [entry["manager"] for entry in body["metadata"]["managedFields"]]


def test_errors_are_those_of_the_server() -> None:
    """Kinds that are not served give the server's error, too."""
    client = LocalClient(api_server(), ADMIN)
    with pytest.raises(StatusError) as caught:
        run(client.delete("configmaps", "nope", "default"))
    assert 404 == caught.value.status
    with pytest.raises(StatusError) as caught:
        run(client.create("widgets.example.com", config_map("a")))
    assert 404 == caught.value.status


def test_a_delete_can_insist_on_the_object_it_means() -> None:
    """A precondition on the uid protects a newer object of the same name."""
    client = LocalClient(api_server(), ADMIN)
    run(client.create("configmaps", config_map("a", namespace="default")))
    with pytest.raises(StatusError, match="the UID in the precondition"):
        run(client.delete("configmaps", "a", "default", uid="other"))


def test_subresources_have_their_own_writes() -> None:
    """A Binding puts a pod on a node, a status changes nothing else."""
    client = LocalClient(api_server(), ADMIN)
    run(client.create("serviceaccounts", {"metadata": {"name": "default", "namespace": "default"}}))
    body = pod("p")
    run(client.create("pods", {**body, "metadata": {"name": "p", "namespace": "default"}}))
    binding = {"metadata": {"name": "p", "namespace": "default"}, "target": {"kind": "Node", "name": "n"}}
    run(client.create("pods", binding, subresource="binding"))
    found = client.get("pods", "p", "default")
    assert found is not None
    assert "n" == found["spec"]["nodeName"]
    after = {**found, "spec": {}, "status": {"phase": "Running"}}
    run(client.update("pods", after, subresource="status"))
    found = client.get("pods", "p", "default")
    assert found is not None
    assert ("n", "Running") == (found["spec"]["nodeName"], found["status"]["phase"])


@pytest.mark.parametrize("resources", [("configmaps",), ("configmaps", "deployments.apps")])
def test_changes_begin_with_what_is_there(resources: tuple[str, ...]) -> None:
    """They continue with later changes, in order, for any number of resources."""
    client = LocalClient(api_server(), ADMIN)

    async def work() -> list[tuple[str, str]]:
        await client.create("configmaps", config_map("a", namespace="default"))
        seen: list[tuple[str, str]] = []
        changes = client.changes(*resources)
        async for change in changes:
            seen.append((change.kind.value, change.state.key.name))
            if len(seen) == 1:
                await client.create("configmaps", config_map("b", namespace="default"))
                body = deployment("d")
                await client.create("deployments.apps", {**body, "metadata": {"name": "d", "namespace": "default"}})
                await client.delete("configmaps", "a", "default")
            if len(seen) == len(resources) + 2:
                break
        await changes.aclose()  # type: ignore[attr-defined]  # a generator
        return seen

    seen = asyncio.run(work())
    expected = [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")]
    assert expected == [item for item in seen if item[1] != "d"]
    assert (("ADDED", "d") in seen) == (len(resources) == 2)
