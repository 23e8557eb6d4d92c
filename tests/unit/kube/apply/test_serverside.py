"""Server-side apply and the record of field ownership."""

from __future__ import annotations

import pytest

from pyverno.kube.apply.serverside import ApplyConflictError, apply, manager_name, reset_fields, schema_tree_for, track
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSON, JSONObject, encode
from pyverno.kube.schemas import schema_set
from pyverno.kube.status import StatusError

TREE = schema_tree_for(schema_set("1.35"), GVK("apps", "v1", "Deployment"))
MAPS = schema_tree_for(schema_set("1.35"), GVK("", "v1", "ConfigMap"))
NOON = "2026-01-01T12:00:00Z"
LATER = "2026-01-01T12:00:01Z"


def deployment(*, labels: JSON = None, **spec: JSON) -> JSONObject:
    """Return a deployment."""
    metadata = {"name": "web", **({"labels": labels} if labels is not None else {})}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def template(*containers: JSON) -> JSONObject:
    """Return a pod template."""
    return {"spec": {"containers": list(containers)}}


def applied(live: JSONObject | None, body: JSONObject, manager: str = "one", *, force: bool = False) -> JSONObject:
    """Apply as a manager."""
    return apply(live, body, manager=manager, schema=TREE, version="apps/v1", time=NOON, force=force)


def tracked(before: JSONObject | None, after: JSONObject, manager: str = "two", subresource: str = "") -> JSONObject:
    """Write as a manager."""
    return track(before, after, manager=manager, schema=TREE, version="apps/v1", time=LATER, subresource=subresource)


def owners(body: JSONObject) -> dict[str, JSON]:
    """Return the fields of each manager."""
    return {entry["manager"]: entry["fieldsV1"] for entry in body["metadata"].get("managedFields", [])}


def test_a_creation_owns_what_it_sets() -> None:
    """Parts that every deployment has, and identity fields, have no owner."""
    body = deployment(labels={"a": "b"}, replicas=1, template=template({"name": "c", "image": "i"}))
    body["metadata"] |= {"uid": "u", "namespace": "shop", "creationTimestamp": NOON, "generation": 1}
    made = tracked(None, body, "kubectl-create")
    assert [
        {
            "manager": "kubectl-create",
            "operation": "Update",
            "apiVersion": "apps/v1",
            "time": LATER,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
                "f:spec": {
                    "f:replicas": {},
                    "f:template": {
                        "f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:image": {}, "f:name": {}}}}
                    },
                },
            },
        }
    ] == made["metadata"]["managedFields"]


def test_an_update_takes_fields_over() -> None:
    """The manager that changes a field owns it; removed fields have no owner."""
    made = tracked(None, deployment(labels={"a": "b"}, replicas=1, paused=True), "one")
    after = deployment(labels={"a": "b"}, replicas=2)
    found = owners(tracked(made, after, "two"))
    assert {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}} == found["one"]
    assert {"f:spec": {"f:replicas": {}}} == found["two"]


def test_nothing_changed_means_nothing_written() -> None:
    """Not even the time of a manager."""
    made = tracked(None, deployment(replicas=1), "one")
    assert made is tracked(made, deployment(replicas=1), "two")


def test_applying_twice_is_applying_once() -> None:
    """The second apply returns the same object."""
    body = deployment(replicas=1, template=template({"name": "c", "image": "i"}))
    once = applied(None, body)
    twice = apply(once, body, manager="one", schema=TREE, version="apps/v1", time=LATER, force=False)
    assert once is twice


def test_others_keep_their_fields() -> None:
    """A conflict names manager, version and path."""
    made = tracked(None, deployment(replicas=1), "kubectl-create")
    with pytest.raises(ApplyConflictError) as caught:
        applied(made, deployment(replicas=2))
    error = caught.value
    text = 'conflict with "kubectl-create" using apps/v1'
    assert f"Apply failed with 1 conflict: {text}: .spec.replicas" == str(error)
    assert {
        "causes": [{"reason": "FieldManagerConflict", "message": text, "field": ".spec.replicas"}]
    } == error.to_json()["details"]
    assert (409, "Conflict") == (error.status, error.reason)


def test_several_conflicts_are_listed_by_manager() -> None:
    """Appliers are named without a version, and subresources with their name."""
    made = applied(None, deployment(replicas=1, paused=True))
    made = tracked(made, {**made, "status": {"replicas": 1}}, "controller", "status")
    body = {**deployment(replicas=2, paused=False), "status": {"replicas": 2}}
    with pytest.raises(ApplyConflictError) as caught:
        applied(made, body, "two")
    assert (
        'Apply failed with 3 conflicts: conflicts with "controller" with subresource "status" using apps/v1:\n'
        "- .status.replicas\n"
        'conflicts with "one":\n'
        "- .spec.paused\n"
        "- .spec.replicas"
    ) == str(caught.value)


def test_force_takes_fields_over() -> None:
    """The other manager no longer owns the field."""
    made = tracked(None, deployment(replicas=1), "two")
    forced = applied(made, deployment(replicas=2), force=True)
    assert {"one": {"f:spec": {"f:replicas": {}}}} == owners(forced)
    assert 2 == forced["spec"]["replicas"]


def test_the_same_value_is_shared() -> None:
    """No conflict where managers agree; both own the field."""
    one = applied(None, deployment(replicas=1))
    both = applied(one, deployment(replicas=1), "two")
    assert {"one": {"f:spec": {"f:replicas": {}}}, "two": {"f:spec": {"f:replicas": {}}}} == owners(both)


def test_what_a_manager_leaves_out_goes() -> None:
    """A field that another manager also owns stays."""
    first = template({"name": "a", "image": "i"}, {"name": "b", "image": "i"})
    made = applied(None, deployment(labels={"x": "1", "y": "2"}, replicas=1, template=first))
    made = applied(made, deployment(labels={"y": "2"}, template=template({"name": "b", "image": "i"})), "two")
    made = applied(made, deployment(replicas=1))
    assert {"y": "2"} == made["metadata"]["labels"]
    assert [{"name": "b", "image": "i"}] == made["spec"]["template"]["spec"]["containers"]
    made = applied(made, deployment(), "two")
    assert "labels" not in made["metadata"]
    assert "containers" not in made["spec"].get("template", {}).get("spec", {})
    assert {"one": {"f:spec": {"f:replicas": {}}}, "two": {"f:spec": {}}} == owners(made)


def test_fields_of_updaters_stay() -> None:
    """An applier does not remove fields that it never owned."""
    made = applied(None, deployment(labels={"x": "1"}))
    changed = deployment(labels={"x": "1", "z": "3"})
    made = tracked(made, {**changed, "metadata": {**made["metadata"], **changed["metadata"]}})
    made = applied(made, deployment())
    assert {"z": "3"} == made["metadata"]["labels"]


def test_an_object_without_managers_belongs_to_those_before() -> None:
    """The first apply makes an entry for everything that was there."""
    made = applied(deployment(replicas=1, paused=True), deployment(replicas=1))
    assert {"before-first-apply", "one"} == set(owners(made))


@pytest.mark.parametrize("sent", [[], [{}]])
def test_managers_can_be_forgotten(sent: list[JSON]) -> None:
    """An update that empties the list makes the object untracked; later updates leave it so."""
    made = tracked(None, deployment(replicas=1), "one")
    emptied = {**deployment(replicas=1), "metadata": {"name": "web", "managedFields": sent}}
    bare = tracked(made, emptied)
    assert "managedFields" not in bare["metadata"]
    assert "managedFields" not in tracked(bare, deployment(replicas=3))["metadata"]


def test_a_subresource_can_not_change_the_list() -> None:
    """Entries that a status update brings along do not count."""
    made = tracked(None, deployment(replicas=1), "one")
    after = {**made, "metadata": {"name": "web", "managedFields": [{}]}, "status": {"replicas": 1}}
    entries = tracked(made, after, "two", "status")["metadata"]["managedFields"]
    assert [("one", ""), ("two", "status")] == [(entry["manager"], entry.get("subresource", "")) for entry in entries]


@pytest.mark.parametrize(
    "sent", [["x"], [{"manager": 1}], [{"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "X"}]]
)
def test_entries_that_make_no_sense_do_not_count(sent: list[JSON]) -> None:
    """The stored entries apply instead."""
    made = tracked(None, deployment(replicas=1), "one")
    after = {**deployment(replicas=2), "metadata": {"name": "web", "managedFields": sent}}
    assert {"two"} == set(owners(tracked(made, after)))


def test_old_updaters_are_merged() -> None:
    """More than ten of one version share an entry."""
    body = deployment(labels={})
    for number in range(13):
        after = deployment(labels={**body["metadata"]["labels"], f"l{number:02}": "x"})
        after["metadata"]["managedFields"] = body["metadata"].get("managedFields")
        time = f"2026-01-01T12:00:{number:02}Z"
        body = track(
            None if not number else body, after, manager=f"m{number:02}", schema=TREE, version="apps/v1", time=time
        )
    entries = body["metadata"]["managedFields"]
    assert 10 == len(entries)
    assert {"f:l00", "f:l01", "f:l02", "f:l03", "."} == set(owners(body)["ancient-changes"]["f:metadata"]["f:labels"])


LAST = "kubectl.kubernetes.io/last-applied-configuration"


def client_side(**spec: JSON) -> JSONObject:
    """Return what `kubectl apply` leaves."""
    body = deployment(**spec)
    annotated = {**body, "metadata": {"name": "web", "annotations": {LAST: encode(body) + "\n"}}}
    return tracked(None, annotated, "kubectl-client-side-apply")


def test_kubectl_takes_over_what_it_applied_itself() -> None:
    """Fields of the last-applied annotation are no conflict for it, and the annotation follows."""
    made = applied(client_side(replicas=1), deployment(replicas=2), "kubectl")
    assert 2 == made["spec"]["replicas"]
    assert encode(deployment(replicas=2)) + "\n" == made["metadata"]["annotations"][LAST]
    with pytest.raises(ApplyConflictError):
        applied(client_side(replicas=1), deployment(replicas=2), "somebody")


def test_kubectl_does_not_take_over_what_others_changed() -> None:
    """A value that differs from the last-applied annotation belongs to the other manager."""
    made = client_side(replicas=1)
    made = tracked(made, {**made, "spec": {"replicas": 5}}, "scaler")
    with pytest.raises(ApplyConflictError, match='conflict with "scaler"'):
        applied(made, deployment(replicas=2), "kubectl")


def test_what_is_ignored_has_no_owner() -> None:
    """The status, where the resource itself is written."""
    body = {**deployment(replicas=1), "status": {"replicas": 1}}
    ignored = reset_fields(("metadata", "spec", "status"), "", has_status=True)
    made = apply(None, body, manager="one", schema=TREE, version="apps/v1", time=NOON, force=False, ignored=ignored)
    assert {"one": {"f:spec": {"f:replicas": {}}}} == owners(made)


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        (deployment(foo=1), 500, ".spec.foo: field not declared in schema"),
        ({"metadata": {"managedFields": []}}, 400, "metadata.managedFields must be nil"),
        (deployment(template=template({"name": "a"}, {"name": "a"})), 500, 'duplicate entries for key [name="a"]'),
    ],
)
def test_a_configuration_must_be_of_its_type(body: JSONObject, status: int, text: str) -> None:
    """500 with the words of an API server, as upstream."""
    with pytest.raises(StatusError) as caught:
        applied(None, body)
    assert status == caught.value.status
    assert text in str(caught.value)


def test_a_configuration_that_is_nested_too_deeply_is_refused() -> None:
    """A configuration nested too deeply is refused instead of exhausting the stack."""
    deep: JSON = "x"
    for _ in range(20_000):
        deep = {"a": deep}
    with pytest.raises(StatusError, match="nested too deeply"):
        apply(
            None,
            {"x": deep},
            manager="m",
            schema=schema_tree_for(schema_set(), GVK("x", "v1", "X")),
            version="x/v1",
            time=NOON,
            force=False,
        )


def test_maps_of_data_are_shared_by_key() -> None:
    """Two managers, each with its own keys."""

    def data(**values: str) -> JSONObject:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": values}

    one = apply(None, data(a="1"), manager="one", schema=MAPS, version="v1", time=NOON, force=False)
    two = apply(one, data(b="2"), manager="two", schema=MAPS, version="v1", time=NOON, force=False)
    assert {"a": "1", "b": "2"} == two["data"]
    left = apply(two, data(), manager="one", schema=MAPS, version="v1", time=NOON, force=False)
    assert {"b": "2"} == left["data"]


@pytest.mark.parametrize(
    ("given", "agent", "expected"),
    [
        ("me", "kubectl/v1", "me"),
        ("", "kubectl/v1.32 (linux)", "kubectl"),
        ("", "a\x00b/1", "ab"),
        ("", "é" * 100, "é" * 64),
        ("", "", ""),
    ],
)
def test_a_manager_is_named_by_the_request_or_its_client(given: str, agent: str, expected: str) -> None:
    """The first word of the user agent, printable and short."""
    assert expected == manager_name(given, agent)
