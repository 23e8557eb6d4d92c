"""The operations: create, update, patch, apply and delete, also of resource definitions."""

from __future__ import annotations

import asyncio
import re

import pytest

from kubesandbox.apiserver import ApiServer
from kubesandbox.objects.patching import Patch
from kubesandbox.parsing.bodies import read_json
from kubesandbox.parsing.requests import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    DeleteOptions,
    ListOptions,
)
from kubesandbox.storage.store import Key, Stored
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from tests.unit.kubesandbox.serving import (
    Clock,
    api_server,
    config_map,
    definition,
    deployment,
    pod,
    run,
    type_of,
    widget,
    write,
)

MAPS, CRDS, WIDGETS = "configmaps", "customresourcedefinitions.apiextensions.k8s.io", "widgets.example.com"


def create(server: ApiServer, key: str, body: JSONObject, namespace: str = "default", **options: object) -> JSONObject:
    """Create an object and return it."""
    return run(server.create(write(server, key, namespace, **options), body)).body  # type: ignore[arg-type]  # by name


def update(server: ApiServer, key: str, body: JSONObject, subresource: str = "") -> JSONObject:
    """Replace an object and return it."""
    where = write(server, key, "default", body["metadata"]["name"], subresource=subresource)
    return run(server.update(where, body)).body


def patch(
    server: ApiServer, key: str, name: str, value: object, kind: str = MERGE_PATCH, **options: object
) -> JSONObject:
    """Patch an object and return it."""
    where = write(server, key, "default", name, **options)  # type: ignore[arg-type]  # by name
    return run(server.patch(where, Patch(kind, value))).body


def delete(server: ApiServer, key: str, name: str, namespace: str = "default", **options: object) -> JSONObject:
    """Delete an object and return what is answered."""
    chosen = DeleteOptions(**options)  # type: ignore[arg-type]  # by name
    return run(server.delete(write(server, key, namespace, name), chosen)).body


def stored(server: ApiServer, key: str, name: str, namespace: str = "default") -> Stored | None:
    """Return the state of an object."""
    return server.store.get(Key(key, namespace, name))


def refused(work: object, status: int, message: str) -> StatusError:
    """Run something that must be refused."""
    with pytest.raises(StatusError) as caught:
        work()  # type: ignore[operator]  # a function
    assert (status, message) == (caught.value.status, caught.value.message)
    return caught.value


# ── create ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_new_object_gets_its_metadata() -> None:
    """Uid, time, version and managed fields; the client's values for these are ignored."""
    server = api_server()
    claims = {"uid": "mine", "creationTimestamp": "2000-01-01T00:00:00Z", "generation": 7, "selfLink": "/x"}
    metadata = create(server, MAPS, config_map("a", {"x": "y"}, **claims))["metadata"]
    (entry,) = metadata.pop("managedFields")
    assert ("tests", "Update", {"f:data": {".": {}, "f:x": {}}}) == (
        entry["manager"],
        entry["operation"],
        entry["fieldsV1"],
    )
    assert re.fullmatch(r"uid-\d+", metadata.pop("uid"))
    assert str(server.store.revision) == metadata.pop("resourceVersion")
    kept = {"name": "a", "namespace": "default", "creationTimestamp": "2026-01-01T00:00:00Z"}
    # as upstream: what does not count its changes keeps what the client says
    assert {**kept, "generation": 7} == metadata


def test_generation_is_for_kinds_that_want_something() -> None:
    """A Deployment begins with 1, a ConfigMap has none."""
    server = api_server()
    assert 1 == create(server, "deployments.apps", deployment("d"))["metadata"]["generation"]
    assert "generation" not in create(server, MAPS, config_map("a"))["metadata"]


def test_names_are_generated() -> None:
    """Five random letters follow the base; a name in use is not generated again."""
    server = api_server()
    body = {"metadata": {"generateName": "web-"}}
    first, second = (create(server, MAPS, body)["metadata"]["name"] for _ in range(2))
    assert first != second
    assert re.fullmatch("web-[a-z]{5}", first)


def test_what_can_not_be_created_is_refused() -> None:
    """The errors have the texts of the API server."""
    server = api_server()
    create(server, MAPS, config_map("a"))
    refused(lambda: create(server, MAPS, config_map("a")), 409, 'configmaps "a" already exists')
    refused(
        lambda: create(server, MAPS, {}),
        422,
        'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
    )
    refused(
        lambda: create(server, MAPS, config_map("b", resourceVersion="5")),
        500,
        "resourceVersion should not be set on objects to be created",
    )
    refused(
        lambda: create(server, MAPS, config_map("b", namespace="ns1")),
        400,
        "the namespace of the provided object does not match the namespace sent on the request",
    )
    refused(lambda: create(server, MAPS, config_map("b"), "nope"), 404, 'namespaces "nope" not found')
    refused(
        lambda: create(server, MAPS, {"apiVersion": "v1", "kind": "Service"}),
        400,
        'Service in version "v1" cannot be handled as a ConfigMap: converting (v1.Service) to (core.ConfigMap): '
        "unknown conversion",
    )
    refused(
        lambda: create(server, "deployments.apps", {"apiVersion": "apps/v2", "kind": "Deployment"}),
        400,
        'Deployment in version "v2" cannot be handled as a Deployment: no kind "Deployment" is registered for version '
        '"apps/v2" in scheme "pkg/runtime/scheme.go:111"',
    )
    assert ["a", "kube-root-ca.crt"][:1] == [state.key.name for state in server.store.all(MAPS, "default")]


def test_a_name_that_is_being_freed_is_still_taken() -> None:
    """The message states that the object is being deleted."""
    server = api_server()
    create(server, MAPS, config_map("a", finalizers=["a.b/c"]))
    delete(server, MAPS, "a")
    refused(
        lambda: create(server, MAPS, config_map("a")), 409, 'object is being deleted: configmaps "a" already exists'
    )


def test_dry_run_answers_and_stores_nothing() -> None:
    """Every kind of write has a dry run."""
    server = api_server()
    made = create(server, MAPS, config_map("a"), dry_run=True)
    assert "resourceVersion" not in made["metadata"]
    assert stored(server, MAPS, "a") is None
    create(server, MAPS, config_map("a", {"x": "1"}))
    before = stored(server, MAPS, "a")
    assert {"x": "2"} == patch(server, MAPS, "a", {"data": {"x": "2"}}, dry_run=True)["data"]
    assert "Success" == delete(server, MAPS, "a", dry_run=True)["status"]
    assert stored(server, MAPS, "a") is before


def test_unknown_fields_are_refused_reported_or_ignored() -> None:
    """Strict, Warn and Ignore; duplicates of the body count as well."""
    server = api_server()
    body = read_json(b'{"metadata": {"name": "x", "name": "x"}, "dat": {}}')
    strict = write(server, MAPS, validation="Strict")
    refused(
        lambda: run(server.create(strict, body)),
        400,
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: duplicate field '
        '"metadata.name", unknown field "dat"',
    )
    warned = write(server, MAPS, dry_run=True)
    run(server.create(warned, body))
    assert ['duplicate field "metadata.name"', 'unknown field "dat"'] == warned.notes.warnings
    ignored = write(server, MAPS, validation="Ignore")
    assert "dat" not in run(server.create(ignored, body)).body
    assert [] == ignored.notes.warnings


# ── update ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_updates_compare_versions() -> None:
    """An old version is a conflict, none overwrites."""
    server = api_server()
    first = create(server, MAPS, config_map("a", {"x": "1"}))
    update(server, MAPS, config_map("a", {"x": "2"}))
    refused(
        lambda: update(server, MAPS, {**first, "data": {"x": "3"}}),
        409,
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to '
        "the latest version and try again",
    )
    assert {"x": "2"} == stored(server, MAPS, "a").body["data"]  # type: ignore[union-attr]  # it is there


def test_updates_keep_what_the_server_set() -> None:
    """Uid and time of creation stay, also when the client leaves them out."""
    server = api_server()
    first = create(server, MAPS, config_map("a"))
    after = update(server, MAPS, config_map("a", {"x": "1"}))
    for field in ("uid", "creationTimestamp"):
        assert first["metadata"][field] == after["metadata"][field]


def test_updates_that_change_nothing_write_nothing() -> None:
    """Neither a version nor an event."""
    server = api_server()
    first = create(server, MAPS, config_map("a", {"x": "1"}))
    revision = server.store.revision
    assert first == update(server, MAPS, first)
    assert first == patch(server, MAPS, "a", {"data": {"x": "1"}})
    assert revision == server.store.revision


def test_updates_must_mean_the_object_of_the_path() -> None:
    """Name, uid and version are checked."""
    server = api_server()
    create(server, MAPS, config_map("a"))
    where = write(server, MAPS, "default", "a")
    refused(
        lambda: run(server.update(where, config_map("b"))),
        400,
        "the name of the object (b) does not match the name on the URL (a)",
    )
    refused(
        lambda: run(server.update(where, {"metadata": {}})),
        400,
        "the name of the object (a based on URL) was undeterminable: name must be provided",
    )
    refused(
        lambda: update(server, MAPS, config_map("a", resourceVersion="x")),
        500,
        'strconv.ParseUint: parsing "x": invalid syntax',
    )
    with pytest.raises(StatusError, match="Precondition failed: UID in precondition: 1, UID in object meta: uid-"):
        update(server, MAPS, config_map("a", uid="1"))
    refused(lambda: update(server, MAPS, config_map("nope")), 404, 'configmaps "nope" not found')


def test_updates_create_objects_of_some_kinds() -> None:
    """An update creates missing roles and services, for example, but not most other kinds."""
    server = api_server()
    key = "clusterroles.rbac.authorization.k8s.io"
    where = write(server, key, "", "r")
    outcome = run(server.update(where, {"metadata": {"name": "r"}, "rules": []}))
    assert (201, "r") == (outcome.status, outcome.body["metadata"]["name"])


def test_generation_counts_what_is_wanted_only() -> None:
    """Labels and status do not change the generation; the status changes by its own subresource."""
    server = api_server()
    create(server, "deployments.apps", deployment("d"))
    key = "deployments.apps"
    assert 1 == patch(server, key, "d", {"metadata": {"labels": {"a": "b"}}})["metadata"]["generation"]
    assert 2 == patch(server, key, "d", {"spec": {"replicas": 2}})["metadata"]["generation"]
    after = patch(server, key, "d", {"status": {"replicas": 2}, "spec": {"replicas": 9}}, subresource="status")
    assert (2, 2, 2) == (after["metadata"]["generation"], after["status"]["replicas"], after["spec"]["replicas"])
    assert 2 == patch(server, key, "d", {"status": {"replicas": 7}})["status"]["replicas"]


# ── patch ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (MERGE_PATCH, {"data": {"x": None, "y": "2"}}),
        (STRATEGIC_PATCH, {"data": {"x": None, "y": "2"}}),
        (JSON_PATCH, [{"op": "remove", "path": "/data/x"}, {"op": "add", "path": "/data/y", "value": "2"}]),
    ],
)
def test_all_patches_change_an_object(kind: str, value: object) -> None:
    """Each patch type has its own format."""
    server = api_server()
    create(server, MAPS, config_map("a", {"x": "1"}))
    assert {"y": "2"} == patch(server, MAPS, "a", value, kind)["data"]


def test_patches_whose_result_is_no_object_of_the_kind_are_invalid() -> None:
    """The answer is 422, with the result in the text."""
    server = api_server()
    create(server, MAPS, config_map("a"))
    with pytest.raises(StatusError) as caught:
        patch(server, MAPS, "a", {"dat": {}}, validation="Strict")
    assert 422 == caught.value.status
    assert caught.value.message.startswith(' "" is invalid: patch: Invalid value: "{\\"apiVersion\\":\\"v1\\",')
    assert caught.value.message.endswith('}": strict decoding error: unknown field "dat"')
    refused(
        lambda: patch(server, MAPS, "a", [{"op": "remove", "path": "/x"}], JSON_PATCH),
        422,
        "the server rejected our request due to an error in our request",
    )
    refused(
        lambda: patch(server, MAPS, "a", {"metadata": {"uid": "3"}}),
        422,
        'ConfigMap "a" is invalid: metadata.uid: Invalid value: "3": field is immutable',
    )


def test_a_patch_that_names_a_version_insists_on_it() -> None:
    """Other patches are applied again to the present object."""
    server = api_server()
    create(server, MAPS, config_map("a"))
    with pytest.raises(StatusError, match="the object has been modified"):
        patch(server, MAPS, "a", {"metadata": {"resourceVersion": "1", "labels": {"a": "b"}}})


def test_a_patch_that_lost_a_race_is_done_again() -> None:
    """Both changes are in the result."""
    server = api_server()
    create(server, MAPS, config_map("a", {"x": "0", "y": "0"}))

    async def race() -> None:
        async def raced(_self: object, *_args: object, **_more: object) -> None:
            # somebody else writes while admission judges the first try
            server.admission.validate = judge  # type: ignore[method-assign]  # once only
            await server.patch(write(server, MAPS, "default", "a"), Patch(MERGE_PATCH, {"data": {"y": "1"}}))

        judge = server.admission.validate
        server.admission.validate = raced  # type: ignore[method-assign,assignment]  # a writer at the worst moment
        await server.patch(write(server, MAPS, "default", "a"), Patch(MERGE_PATCH, {"data": {"x": "1"}}))

    asyncio.run(race())
    assert {"x": "1", "y": "1"} == stored(server, MAPS, "a").body["data"]  # type: ignore[union-attr]  # it is there


def test_apply_creates_changes_and_conflicts() -> None:
    """Fields of another manager need force."""
    server = api_server()

    def apply(data: dict[str, str], manager: str, force: bool | None = None) -> JSONObject:
        return patch(server, MAPS, "a", config_map("a", data), APPLY_PATCH, manager=manager, force=force)

    apply({"x": "1", "y": "1"}, "one")
    assert {"x": "1"} == apply({"x": "1"}, "one")["data"]
    refused(
        lambda: apply({"x": "2"}, "two"),
        409,
        'Apply failed with 1 conflict: conflict with "one": .data.x',
    )
    assert {"x": "2"} == apply({"x": "2"}, "two", force=True)["data"]


def test_apply_refuses_what_is_no_configuration() -> None:
    """Unknown fields, other kinds, other names, managed fields."""
    server = api_server()

    def apply(body: JSONObject) -> object:
        return lambda: patch(server, MAPS, "a", body, APPLY_PATCH)

    refused(
        apply({**config_map("a"), "dat": {}}),
        500,
        "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .dat: field not declared in schema",
    )
    refused(
        apply({**config_map("a"), "data": {"x": 1}, "metadata": {"name": "a", "finalizers": ["a/b", "a/b"]}}),
        500,
        "failed to create typed patch object (/a; /v1, Kind=ConfigMap): errors:\n"
        '  .metadata.finalizers: duplicate entries for key [="a/b"]\n'
        "  .data.x: expected string, got &value.valueUnstructured{Value:1}",
    )
    refused(
        apply({**config_map("a"), "metadata": {"name": "a", "creationTimestamp": "x"}}),
        500,
        "failed to convert new object (/a; /v1, Kind=ConfigMap) to proper version: unable to convert unstructured "
        'object to /v1, Kind=ConfigMap: parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"',
    )
    refused(apply({"apiVersion": "v1", "kind": "Pod"}), 400, "invalid object type: /v1, Kind=Pod")
    refused(apply(config_map("a", managedFields=[{}])), 400, "metadata.managedFields must be nil")
    refused(apply(config_map("b")), 400, "the name of the object (b) does not match the name on the URL (a)")
    refused(
        apply(config_map("a", uid="5")),
        409,
        'Operation cannot be fulfilled on configmaps "a": uid mismatch: the provided object specified uid 5, and no '
        "existing object was found",
    )


# ── delete ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_finalizers_are_waited_for() -> None:
    """The object goes with its last finalizer."""
    server = api_server()
    create(server, MAPS, config_map("a", finalizers=["a.b/c"]))
    assert "2026-01-01T00:00:00Z" == delete(server, MAPS, "a")["metadata"]["deletionTimestamp"]
    last = patch(server, MAPS, "a", {"metadata": {"finalizers": None}})
    assert "deletionTimestamp" in last["metadata"]
    assert stored(server, MAPS, "a") is None


def test_a_running_pod_goes_when_its_grace_is_over() -> None:
    """The kubelet ends it with a second delete."""
    clock = Clock()
    server = api_server(clock=clock)
    create(server, "serviceaccounts", {"metadata": {"name": "default"}})
    create(server, "pods", pod("p", nodeName="n"))
    assert 30 == delete(server, "pods", "p")["metadata"]["deletionGracePeriodSeconds"]
    assert stored(server, "pods", "p") is not None
    assert "Pod" == delete(server, "pods", "p", grace=0)["kind"]
    assert stored(server, "pods", "p") is None


def test_collections_are_deleted_by_selector() -> None:
    """Objects that are not selected stay."""
    server = api_server()
    for name in ("a", "b", "c"):
        create(server, MAPS, config_map(name, labels={"n": name}))
    page = run(server.delete_collection(write(server, MAPS), ListOptions(label_selector="n in (a,c)")))
    assert ["a", "c"] == [state.key.name for state in page.states]
    assert ["b"] == [state.key.name for state in server.store.all(MAPS, "default")]


def test_a_namespace_goes_by_its_finalize_subresource() -> None:
    """Deleting marks it, finalizing ends it; nothing new gets in meanwhile."""
    server = api_server()
    marked = delete(server, "namespaces", "ns1", "")
    assert "Terminating" == marked["status"]["phase"]
    with pytest.raises(StatusError, match="because it is being terminated"):
        create(server, MAPS, config_map("a"), "ns1")
    finalize = write(server, "namespaces", "", "ns1", subresource="finalize")
    run(server.update(finalize, {"metadata": {"name": "ns1"}, "spec": {"finalizers": []}}))
    assert stored(server, "namespaces", "ns1", "") is None


# ── definitions ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_definition_is_served_at_once() -> None:
    """With defaults, pruning and validation; its status has the conditions."""
    server = api_server()
    conditions = create(server, CRDS, definition(), "")["status"]["conditions"]
    assert {"NamesAccepted": "True", "Established": "True"} == {item["type"]: item["status"] for item in conditions}
    made = create(server, WIDGETS, widget("w", replicas=2, unknown=1))
    assert {"replicas": 2, "color": "grey"} == made["spec"]
    assert 1 == made["metadata"]["generation"]
    with pytest.raises(StatusError, match=r"spec\.replicas in body must be of type integer"):
        create(server, WIDGETS, widget("v", replicas="two"))


def test_custom_resources_can_not_be_overwritten_blindly() -> None:
    """An update must carry a resourceVersion."""
    server = api_server()
    create(server, CRDS, definition(), "")
    create(server, WIDGETS, widget("w"))
    refused(
        lambda: update(server, WIDGETS, widget("w", replicas=1)),
        422,
        'widgets.example.com "w" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an '
        "update",
    )


def test_a_definition_takes_its_objects_with_it() -> None:
    """Objects with finalizers delay its deletion, and until then the type is served."""
    server = api_server()
    create(server, CRDS, definition(), "")
    create(server, WIDGETS, widget("a"))
    held = widget("b")
    create(server, WIDGETS, {**held, "metadata": {"name": "b", "finalizers": ["a.b/c"]}})
    delete(server, CRDS, "widgets.example.com", "")
    assert ["b"] == [state.key.name for state in server.store.all(WIDGETS)]
    assert stored(server, CRDS, "widgets.example.com", "") is not None
    patch(server, WIDGETS, "b", {"metadata": {"finalizers": None}})
    assert stored(server, CRDS, "widgets.example.com", "") is None
    assert () == server.table.versions_of(WIDGETS)


def test_an_interrupted_deletion_continues_at_the_next_start() -> None:
    """The process ended after the definition was marked and before its objects were gone."""
    first = api_server()
    create(first, CRDS, definition(), "")
    create(first, WIDGETS, widget("w"))
    state = stored(first, CRDS, "widgets.example.com", "")
    assert state is not None
    finalizers = ["customresourcecleanup.apiextensions.k8s.io"]
    metadata = {**state.body["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": finalizers}
    first.store.put(state.key, {**state.body, "metadata": metadata})
    second = api_server(first.store)
    assert [] == second.store.all(WIDGETS) == second.store.all(CRDS)
    assert () == second.table.versions_of(WIDGETS)


def test_definitions_of_a_store_are_served_from_the_start() -> None:
    """A server that starts with a filled store, as after a restart, serves them."""
    first = api_server()
    create(first, CRDS, definition(), "")
    second = api_server(first.store)
    assert {"color": "grey"} == create(second, WIDGETS, widget("w"))["spec"]
    assert "Widget" == type_of(second, WIDGETS).kind


def test_one_object_is_served_in_all_versions_of_its_kind() -> None:
    """Autoscalers are really converted."""
    server = api_server()
    body = {
        "apiVersion": "autoscaling/v1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h"},
        "spec": {
            "maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
            "targetCPUUtilizationPercentage": 50,
        },
    }
    old = server.table.find("autoscaling", "v1", "horizontalpodautoscalers")
    assert old is not None
    where = write(server, "horizontalpodautoscalers.autoscaling")
    made = run(server.create(type(where)(type=old, namespace="default", name="", user=where.user), body)).body
    assert ("autoscaling/v1", 50) == (made["apiVersion"], made["spec"]["targetCPUUtilizationPercentage"])
    state = stored(server, "horizontalpodautoscalers.autoscaling", "h")
    assert state is not None
    assert "autoscaling/v2" == state.body["apiVersion"]
    assert 50 == state.body["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"]
