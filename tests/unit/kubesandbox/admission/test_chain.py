"""The order of admission."""

from __future__ import annotations

import asyncio

import pytest

from kubesandbox.attributes import Notes
from kubesandbox.authorization.rbac import RbacAuthorizer
from pyverno.engine.request import Operation, User
from pyverno.kube.status import StatusError
from tests.support.admissionstage import (
    admission,
    admitted,
    answer,
    cluster,
    config_map,
    configuration,
    namespace,
    patching,
    pod,
    request,
    serving,
    webhook,
)


def test_plugins_fill_pods_before_webhooks_see_them(tmp_path):
    """Account, priority and tolerations are set when a webhook is called."""

    async def main():
        async with serving(tmp_path, look=answer) as served:
            _, view = cluster(configuration("Mutating", webhook(served.client("look"), resource="pods")))
            await admitted(admission(view), request(pod()))
        return served.asked[0][1]["request"]["object"]["spec"]

    spec = asyncio.run(main())
    assert ("default", 0, 2) == (spec["serviceAccountName"], spec["priority"], len(spec["tolerations"]))


def test_plugins_see_pods_that_webhooks_changed(tmp_path):
    """A container that a webhook added finds the token too: the changing half runs again after a change."""

    async def main():
        added = patching({"op": "add", "path": "/spec/containers/-", "value": {"name": "sidecar", "image": "s"}})
        async with serving(tmp_path, add=added) as served:
            _, view = cluster(configuration("Mutating", webhook(served.client("add"), resource="pods")))
            found = await admitted(admission(view), request(pod()))
        return found["spec"]["containers"]

    containers = asyncio.run(main())
    assert ["a", "sidecar"] == [each["name"] for each in containers]
    assert containers[0]["volumeMounts"] == containers[1]["volumeMounts"]


def test_pod_security_judges_what_webhooks_left(tmp_path):
    """A webhook that makes a pod privileged is found out."""

    async def main():
        patch = patching({"op": "add", "path": "/spec/hostPID", "value": True})
        async with serving(tmp_path, patch=patch) as served:
            enforced = {"pod-security.kubernetes.io/enforce": "baseline"}
            hooks = configuration("Mutating", webhook(served.client("patch"), resource="pods"))
            _, view = cluster(namespace("x", **enforced), hooks)
            await admitted(admission(view), request(pod()))

    with pytest.raises(StatusError, match="violates PodSecurity"):
        asyncio.run(main())


def test_missing_namespaces_are_found_before_any_webhook_is_called(tmp_path):
    """No webhook receives a request that cannot succeed."""

    async def main():
        async with serving(tmp_path, look=answer) as served:
            _, view = cluster(configuration("Mutating", webhook(served.client("look"))))
            body = config_map()
            body["metadata"]["namespace"] = "nowhere"
            with pytest.raises(StatusError, match='namespaces "nowhere" not found'):
                await admitted(admission(view), request(body))
        assert [] == served.asked

    asyncio.run(main())


def test_roles_are_checked_for_rights_that_the_writer_lacks():
    """Admission is where a role that gives too much is refused."""
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "r", "namespace": "x"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    }
    _, view = cluster()
    with pytest.raises(StatusError, match="attempting to grant RBAC permissions not currently held"):
        asyncio.run(admitted(admission(view, authorizer=RbacAuthorizer(view)), request(role, user=User("jim"))))
    masters = User("root", ("system:masters",))
    found = asyncio.run(admitted(admission(view, authorizer=RbacAuthorizer(view)), request(role, user=masters)))
    assert role == found


def test_deletions_have_no_object():
    """Mutation of a deletion returns nothing, and nothing is filled in."""
    _, view = cluster()
    attributes = request(None, old=pod(), operation=Operation.DELETE)
    chain = admission(view)
    assert asyncio.run(chain.mutate(attributes, Notes(), redefault=lambda body: body)) is None
