"""Laws of server-side apply: it is idempotent, owners keep their fields, and only differing values conflict."""

from __future__ import annotations

from pyverno.kube.apply.fieldset import FieldSet
from pyverno.kube.apply.serverside import ApplyConflictError, apply, schema_tree_for, track
from pyverno.kube.apply.typedmerge import merge
from pyverno.kube.apply.typedvalue import compare, fields_of
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.schemas import schema_set
from tests.property import inputs as st
from tests.property.inputs import law

POD = schema_tree_for(schema_set("1.35"), GVK("", "v1", "Pod"))
# Nothing here is empty: Go's structs know no difference between an empty part and none, which blurs the laws.
TIME = "2026-01-01T00:00:00Z"

texts = st.sampled_from(["x", "y", "z"])
maps = st.dictionaries(st.sampled_from(["a", "b", "c"]), texts, min_size=1, max_size=3)
ports = st.lists(
    st.fixed_dictionaries(
        {"containerPort": st.sampled_from([80, 81])},
        optional={"protocol": st.sampled_from(["TCP", "UDP"]), "name": texts},
    ),
    min_size=1,
    max_size=2,
    unique_by=lambda port: (port["containerPort"], port.get("protocol", "TCP")),
)
containers = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["c", "d", "e"])},
        optional={"image": texts, "args": st.lists(texts, min_size=1, max_size=2), "ports": ports},
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda container: container["name"],
)
pods = st.builds(
    lambda labels, finalizers, spec: {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "p",
            **({"labels": labels} if labels is not None else {}),
            **({"finalizers": finalizers} if finalizers is not None else {}),
        },
        "spec": spec,
    },
    st.none() | maps,
    st.none() | st.lists(texts, unique=True, min_size=1, max_size=2),
    st.fixed_dictionaries({"nodeName": texts}, optional={"containers": containers, "nodeSelector": maps}),
)


def applied(live: JSONObject | None, body: JSONObject, manager: str, *, force: bool = False) -> JSONObject:
    """Apply a pod."""
    return apply(live, body, manager=manager, schema=POD, version="v1", time=TIME, force=force)


def owned(body: JSONObject, manager: str) -> FieldSet:
    """Return the fields that a manager owns."""
    entries = body["metadata"].get("managedFields", [])
    found = [FieldSet.from_json(entry["fieldsV1"]) for entry in entries if entry["manager"] == manager]
    return found[0] if found else FieldSet()


def without_managers(body: JSONObject) -> JSON:
    """Return the object alone."""
    metadata = {key: value for key, value in body["metadata"].items() if key != "managedFields"}
    return {**body, "metadata": metadata}


@law(pods, pods, few=100)
def test_applying_twice_is_applying_once(first: JSONObject, second: JSONObject) -> None:
    """The second apply changes nothing, for any object before it."""
    live = applied(None, first, "one")
    once = applied(live, second, "two", force=True)
    assert once == applied(once, second, "two", force=True)
    assert once == applied(once, second, "two")


@law(pods, pods, few=100)
def test_an_applied_configuration_is_in_the_object(first: JSONObject, second: JSONObject) -> None:
    """Merging the applied configuration into the result changes nothing."""
    result = applied(applied(None, first, "one"), second, "two", force=True)
    assert without_managers(result) == merge(without_managers(result), second, POD)


@law(pods, pods, few=100)
def test_what_two_apply_stays_when_one_lets_go(mine: JSONObject, theirs: JSONObject) -> None:
    """An empty configuration removes the manager's own fields and keeps those of the other manager."""
    both = applied(applied(None, mine, "one"), theirs, "two", force=True)
    empty = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    left = applied(both, empty, "one")
    assert not owned(left, "one")
    assert owned(both, "two") == owned(left, "two")
    lost = compare(without_managers(both), without_managers(left), POD)
    assert not lost.removed.intersection(owned(both, "two"))
    assert not lost.modified.intersection(owned(both, "two"))


@law(pods, pods, few=100)
def test_conflicts_are_about_differences(made: JSONObject, body: JSONObject) -> None:
    """After an ordinary write an apply conflicts exactly where it sets a field to a different value."""
    live = track(None, made, manager="writer", schema=POD, version="v1", time=TIME)
    changed = compare(made, merge(made, body, POD), POD)
    differing = changed.modified.union(changed.added).intersection(owned(live, "writer"))
    try:
        applied(live, body, "one")
        conflicts = 0
    except ApplyConflictError as error:
        conflicts = len(error.conflicts)
    assert len(list(differing.paths())) == conflicts


@law(pods, pods, few=100)
def test_managers_own_what_exists(before: JSONObject, after: JSONObject) -> None:
    """After any write every owned field exists in the object."""
    made = track(None, before, manager="one", schema=POD, version="v1", time=TIME)
    written = track(made, after, manager="two", schema=POD, version="v1", time=TIME)
    missing = compare(after, before, POD).added
    for manager in ("one", "two"):
        assert not owned(written, manager).intersection(missing)


@law(pods, few=100)
def test_field_sets_survive_their_text(body: JSONObject) -> None:
    """A set that is written as FieldsV1 and read back is the same set."""
    fields = fields_of(body, POD)
    assert fields == FieldSet.from_json(fields.to_json())
    assert fields == FieldSet.of(fields.paths())
    assert not fields.difference(fields)
    assert fields == fields.union(fields) == fields.intersection(fields)
