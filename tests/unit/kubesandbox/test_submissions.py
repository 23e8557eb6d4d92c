"""Admission reviews of each operation have the form that an API server sends."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from kubesandbox.objects.patching import Patch
from kubesandbox.objects.pods import bind, evict
from kubesandbox.objects.scaling import update_scale
from kubesandbox.parsing.requests import MERGE_PATCH, DeleteOptions, ListOptions, WriteOptions
from kubesandbox.submissions import connected, submitted
from pyverno.kube.gvk import GVK
from pyverno.kube.status import StatusError
from tests.support.admissionstage import answer, configuration, patching, serving, webhook
from tests.unit.kubesandbox.serving import api_server, config_map, deployment, pod, type_of, write

EVERYTHING = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]
KINDS = ("Mutating", "Validating")


def shown(tmp_path, use, **replies):
    """Return what both kinds of webhooks are shown while `use` works with a server, one after the other."""
    server = api_server()
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}

    async def main():
        await server.create(write(server, "serviceaccounts"), account)
        async with serving(tmp_path, **{"mutating": answer, "validating": answer, **replies}) as served:
            for kind in KINDS:
                hook = webhook(served.client(kind.lower()), rules=EVERYTHING)
                key = f"{kind.lower()}webhookconfigurations.admissionregistration.k8s.io"
                await server.create(write(server, key, ""), configuration(kind, hook))
            try:
                await use(server)
            finally:
                await server.admission.close()
            return [review["request"] for _, review in served.asked]

    return asyncio.run(main())


def test_mutating_admission_sees_the_object_of_the_client(tmp_path):
    """Validating admission sees it with the server's own fields."""

    async def use(server):
        await server.create(write(server, "configmaps"), config_map("a", {"x": "0"}))
        await server.update(write(server, "configmaps", name="a"), config_map("a", {"x": "1"}))

    *_, mutating, validating = shown(tmp_path, use)
    given = {"uid", "creationTimestamp", "resourceVersion"}
    assert set() == given & mutating["object"]["metadata"].keys()
    assert given <= validating["object"]["metadata"].keys()
    assert given <= mutating["oldObject"]["metadata"].keys()
    assert "tests" == mutating["object"]["metadata"]["managedFields"][0]["manager"]


def test_options_have_no_force(tmp_path):
    """Server-side apply creates and updates; its own options are not shown."""

    async def use(server):
        applying = Patch("application/apply-patch+yaml", config_map("a", {"x": "1"}))
        await server.patch(write(server, "configmaps", name="a", manager="me", force=True), applying)

    mutating, _ = shown(tmp_path, use)
    expected = {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me"}
    assert ("CREATE", expected) == (mutating["operation"], mutating["options"])


def test_a_namespace_that_gets_its_name_is_in_none(tmp_path):
    """Its name and label are there when it is judged."""

    async def use(server):
        await server.create(write(server, "namespaces", ""), {"metadata": {"generateName": "team-"}})

    mutating, validating = shown(tmp_path, use)
    assert (None, None) == (mutating.get("name"), mutating.get("namespace"))
    name = validating["name"]
    assert name.startswith("team-")
    assert "namespace" not in validating
    assert {"kubernetes.io/metadata.name": name} == validating["object"]["metadata"]["labels"]


def test_reviews_of_deletions_hold_the_options(tmp_path):
    """A review of a deletion holds the options as sent; that of a collection has no name."""

    async def use(server):
        await server.create(write(server, "configmaps"), config_map("a"))
        await server.delete(write(server, "configmaps", name="a"), DeleteOptions(propagation="Background", grace=0))
        await server.create(write(server, "configmaps"), config_map("b"))
        await server.delete_collection(write(server, "configmaps"), ListOptions())
        await server.delete(write(server, "namespaces", "", "ns3"))

    deletions = [each for each in shown(tmp_path, use) if each["operation"] == "DELETE"]
    one, _, collection, _, namespace, _ = deletions
    assert {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}.items() <= one["options"].items()
    assert ("a", None, "a") == (one["name"], one["object"], one["oldObject"]["metadata"]["name"])
    assert (False, "default", "b") == (
        "name" in collection,
        collection["namespace"],
        collection["oldObject"]["metadata"]["name"],
    )
    assert {"uid": namespace["oldObject"]["metadata"]["uid"]} == namespace["options"]["preconditions"]
    assert ("ns3", "ns3") == (namespace["name"], namespace["namespace"])


def test_bindings_and_evictions_have_a_namespace_and_managers(tmp_path):
    """They are objects of their own, and mutating admission may change them."""
    elsewhere = patching({"op": "replace", "path": "/target/name", "value": "n2"})

    async def use(server):
        await server.create(write(server, "pods"), pod("p"))
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"name": "n1"}}
        await bind(server, write(server, "pods", name="p", subresource="binding"), binding)
        assert "n2" == server.get(type_of(server, "pods"), "default", "p").body["spec"]["nodeName"]
        entries = server.get(type_of(server, "pods"), "default", "p").body["metadata"]["managedFields"]
        assert [None] == [entry.get("subresource") for entry in entries]
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
        eviction["deleteOptions"] = {"gracePeriodSeconds": 0}
        await evict(server, write(server, "pods", name="p", subresource="eviction"), eviction)
        assert [] == server.store.all("pods")

    def change(review):
        return (elsewhere if review["request"].get("subResource") == "binding" else answer)(review)

    reviews = {each["kind"]["kind"]: each for each in shown(tmp_path, use, mutating=change) if each.get("subResource")}
    binding, eviction = reviews["Binding"], reviews["Eviction"]
    assert ("pods", "binding", "p", "CREATE") == (
        binding["resource"]["resource"],
        binding["subResource"],
        binding["name"],
        binding["operation"],
    )
    assert "n2" == binding["object"]["target"]["name"]
    for review, part in ((binding, "binding"), (eviction, "eviction")):
        metadata = review["object"]["metadata"]
        assert ("default", part) == (metadata["namespace"], metadata["managedFields"][0]["subresource"])


def test_bindings_by_the_older_door_are_about_bindings(tmp_path):
    """The resource is the one of the path."""

    async def use(server):
        await server.create(write(server, "pods"), pod("p"))
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"name": "n1"}}
        await bind(server, write(server, "bindings", name="p"), binding)
        assert "n1" == server.get(type_of(server, "pods"), "default", "p").body["spec"]["nodeName"]

    review = shown(tmp_path, use)[-1]
    assert ("bindings", None, "p") == (review["resource"]["resource"], review.get("subResource"), review["name"])


def test_a_scale_is_judged_as_it_is_going_to_be(tmp_path):
    """Mutating admission sees the sent Scale with its managers, validating admission that of the changed object."""

    async def use(server):
        await server.create(write(server, "deployments.apps"), deployment("d", 2))
        scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d", "namespace": "default"}}
        scaling = write(server, "deployments.apps", name="d", subresource="scale", manager="scaler")
        await update_scale(server, scaling, lambda _: {**scale, "spec": {"replicas": 3}})

    mutating, validating = (each for each in shown(tmp_path, use) if each.get("subResource") == "scale")
    assert ("autoscaling", "Scale", "deployments") == (
        mutating["kind"]["group"],
        mutating["kind"]["kind"],
        mutating["resource"]["resource"],
    )
    assert ({"replicas": 3}, {"replicas": 0}) == (mutating["object"]["spec"], mutating["object"]["status"])
    assert "uid" not in mutating["object"]["metadata"]
    managers = [entry["manager"] for entry in mutating["object"]["metadata"]["managedFields"]]
    assert ["scaler"] == managers
    (before,) = mutating["oldObject"]["metadata"]["managedFields"]
    assert ("tests", "autoscaling/v1", {"f:spec": {"f:replicas": {}}}) == (
        before["manager"],
        before["apiVersion"],
        before["fieldsV1"],
    )
    assert ({"replicas": 3}, {"replicas": 0, "selector": "app=d"}) == (
        validating["object"]["spec"],
        validating["object"]["status"],
    )
    assert "managedFields" not in validating["object"]["metadata"]
    assert {"replicas": 2} == validating["oldObject"]["spec"]


@pytest.mark.parametrize(
    ("key", "subresource", "query", "path", "expected"),
    [
        (
            "pods",
            "exec",
            {"command": ["ls", "-l"], "container": ["a"], "stdout": ["true"], "tty": ["false"]},
            "",
            {"kind": "PodExecOptions", "stdout": True, "container": "a", "command": ["ls", "-l"]},
        ),
        ("pods", "attach", {"stdin": ["1"]}, "", {"kind": "PodAttachOptions", "stdin": True}),
        ("pods", "portforward", {"ports": ["80", "81"]}, "", {"kind": "PodPortForwardOptions", "ports": [80, 81]}),
        ("pods", "proxy", {"z": ["1"]}, "/x/y", {"kind": "PodProxyOptions", "path": "/x/y"}),
        ("services", "proxy", {}, "", {"kind": "ServiceProxyOptions"}),
        ("nodes", "proxy", {}, "/metrics", {"kind": "NodeProxyOptions", "path": "/metrics"}),
    ],
)
def test_connections_are_shown_with_their_options(tmp_path, key, subresource, query, path, expected):
    """CONNECT has an object and no options, and can be refused."""

    async def use(server):
        namespace = "" if key == "nodes" else "default"
        connecting = write(server, key, namespace, "n", subresource=subresource)
        await connected(server, connecting, query, path)

    mutating, validating = shown(tmp_path, use)
    assert {"apiVersion": "v1", **expected} == mutating["object"] == validating["object"]
    assert ("CONNECT", subresource, None, None) == (
        mutating["operation"],
        mutating["subResource"],
        mutating["oldObject"],
        mutating["options"],
    )
    assert expected["kind"] == mutating["kind"]["kind"]
    with pytest.raises(StatusError, match="denied the request"):
        shown(tmp_path, use, validating=lambda review: answer(review, allowed=False))


def test_fields_of_the_server_are_set_between_mutation_and_validation(tmp_path):
    """A TokenRequest has its name when it is validated; a foreign namespace is refused before admission."""
    kind = GVK("authentication.k8s.io", "v1", "TokenRequest")
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 700}}

    async def use(server):
        asking = write(server, "serviceaccounts", name="sa", subresource="token")
        await submitted(server, asking, body, kind, fill=lambda found: {**found, "spec": {"audiences": ["me"]}})
        with pytest.raises(StatusError, match="does not match the namespace sent on the request"):
            await submitted(server, asking, {**body, "metadata": {"namespace": "other"}}, kind)

    mutating, validating = shown(tmp_path, use)
    assert {"expirationSeconds": 700} == mutating["object"]["spec"]
    assert {"audiences": ["me"]} == validating["object"]["spec"]


def test_a_dry_run_is_marked(tmp_path):
    """Both the request and its options show the dry run."""

    async def use(server):
        options = WriteOptions(dry_run=True)
        await server.create(replace(write(server, "configmaps"), options=options), config_map("a"))
        await server.create(write(server, "configmaps"), config_map("b"))
        await server.patch(write(server, "configmaps", name="b"), Patch(MERGE_PATCH, {"data": {"x": "1"}}))

    reviews = shown(tmp_path, use)
    assert [True, True, False, False, False, False] == [review["dryRun"] for review in reviews]
    assert ["All"] == reviews[0]["options"]["dryRun"]
    assert "dryRun" not in reviews[-1]["options"]


@pytest.mark.parametrize(
    ("operation", "code", "text"),
    [
        (
            {"op": "add", "path": "/metadata/namespace", "value": "ns1"},
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            {"op": "replace", "path": "/kind", "value": "Secret"},
            500,
            "converting (v1.Secret) to (core.ConfigMap): unknown conversion",
        ),
        (
            {"op": "replace", "path": "/apiVersion", "value": "v2"},
            500,
            'Internal error occurred: no kind "ConfigMap" is registered for version "v2" in scheme '
            '"pkg/runtime/scheme.go:111"',
        ),
    ],
)
def test_webhooks_can_not_make_another_object_of_it(tmp_path, operation, code, text):
    """A webhook can change neither namespace nor kind of the object."""

    async def use(server):
        with pytest.raises(StatusError) as refused:
            await server.create(write(server, "configmaps"), config_map("a"))
        assert (code, text) == (refused.value.status, refused.value.message)
        assert [] == server.store.all("configmaps")

    shown(tmp_path, use, mutating=patching(operation))
