"""A configuration is laid over an object as server-side apply lays it."""

import pytest

from pyverno.errors import PatchError
from pyverno.kube.apply.typedmerge import typed_merge


def pod(**spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}


def over(old, new, kind="Pod"):
    """Merge two objects of a core kind and return the value."""
    return typed_merge(old, new, group="", version="v1", kind=kind).value


def names(value, *path):
    for step in path:
        value = value[step]
    return [item["name"] if isinstance(item, dict) else item for item in value]


A, B, C = ({"name": name, "image": f"{name}:1"} for name in "abc")


def test_maps_are_merged_key_by_key():
    """What the configuration does not mention stays, at every depth."""
    old = pod(overhead={"cpu": "1"}, containers=[A])
    merged = over(old, {"metadata": {"labels": {"team": "shop"}}, "spec": {"overhead": {"memory": "1Gi"}}})
    assert {"name": "web", "labels": {"team": "shop"}} == merged["metadata"]
    assert {"overhead": {"cpu": "1", "memory": "1Gi"}, "containers": [A]} == merged["spec"]


def test_inputs_are_never_changed():
    """The result shares structure with both, and writes to neither."""
    old, new = pod(containers=[A]), {"spec": {"containers": [{"name": "a", "tty": True}, B]}}
    over(old, new)
    assert pod(containers=[A]) == old
    assert {"spec": {"containers": [{"name": "a", "tty": True}, B]}} == new


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("ab", "b", "ab"),
        ("ab", "ba", "ba"),
        ("ab", "c", "abc"),
        ("ab", "cb", "acb"),
        ("abc", "ca", "bca"),
        ("", "ba", "ba"),
        ("ab", "", "ab"),
    ],
)
@pytest.mark.parametrize("place", ["containers", "finalizers"])
def test_items_of_both_lists_stand_in_the_order_of_the_configuration(place, old, new, expected):
    """Keyed lists and sets order alike: an old item that is not mentioned stays before what follows it."""
    if place == "containers":
        before, patch = (
            pod(containers=[{"name": name} for name in old]),
            {"spec": {"containers": [{"name": name} for name in new]}},
        )
        merged = names(over(before, patch), "spec", "containers")
    else:
        before = {"metadata": {"finalizers": list(old)}}
        merged = names(over(before, {"metadata": {"finalizers": list(new)}}), "metadata", "finalizers")
    assert list(expected) == merged


def test_items_with_the_same_key_are_merged():
    """Fields of the old item stay; nested keyed lists merge too."""
    old = pod(containers=[{**A, "env": [{"name": "X", "value": "1"}]}])
    new = {"spec": {"containers": [{"name": "a", "env": [{"name": "X", "value": "2"}, {"name": "Y"}]}]}}
    (merged,) = over(old, new)["spec"]["containers"]
    assert {**A, "env": [{"name": "X", "value": "2"}, {"name": "Y"}]} == merged


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [
        ({"containerPort": 80, "protocol": "UDP"}, {"containerPort": 80, "protocol": "UDP"}, 1),
        ({"containerPort": 80, "protocol": "UDP"}, {"containerPort": 80, "protocol": "TCP"}, 2),
        ({"containerPort": 80}, {"containerPort": 80, "protocol": "TCP"}, 1),
        ({"containerPort": 80, "protocol": "TCP"}, {"containerPort": 80}, 1),
        ({"containerPort": 80}, {"containerPort": 80.0}, 1),
        ({"containerPort": 80}, {"containerPort": 81}, 2),
    ],
)
def test_several_keys_identify_an_item_together(old, new, count):
    """Keys are compared by value, and the protocol of a port is TCP unless it says otherwise."""
    merged = over(
        pod(containers=[{"name": "a", "ports": [old]}]), {"spec": {"containers": [{"name": "a", "ports": [new]}]}}
    )
    assert count == len(merged["spec"]["containers"][0]["ports"])


@pytest.mark.parametrize(
    ("containers", "message"),
    [
        ([{"image": "x"}], "element 0: associative list with keys has an element that omits all key fields"),
        ([{"name": None}], "element 0: associative list with keys has an element that omits all key fields"),
        (["a"], "element 0: associative list with keys may not have non-map elements"),
        ([A, {"name": "a"}], "duplicate entries for key .name=.a.."),
    ],
)
def test_items_that_can_not_be_told_apart_are_refused(containers, message):
    """A configuration without its keys is an error, and never a new item."""
    with pytest.raises(PatchError, match=message):
        over(pod(containers=[A]), {"spec": {"containers": containers}})


def test_items_of_the_object_without_keys_stay():
    """An object may hold what a cluster would not have let in; it is no reason to lose anything."""
    merged = over(pod(containers=[{"image": "x"}, A]), {"spec": {"containers": [B]}})
    assert [{"image": "x"}, A, B] == merged["spec"]["containers"]


def test_atomic_values_are_replaced_and_named():
    """Atomic lists and maps come from the configuration as a whole, also within new items; their paths are told."""
    old = pod(containers=[{**A, "args": ["x", "y"]}], tolerations=[{"key": "a"}])
    new = {
        "spec": {
            "containers": [{"name": "a", "args": ["z"]}, {"name": "n", "command": ["sh"]}],
            "tolerations": [{"key": "b"}],
        }
    }
    found = typed_merge(old, new, group="", version="v1", kind="Pod")
    assert (".spec.containers[0].args", ".spec.containers[1].command", ".spec.tolerations") == found.atomics
    assert ["z"] == found.value["spec"]["containers"][0]["args"]
    assert [{"key": "b"}] == found.value["spec"]["tolerations"]


def test_an_atomic_map_is_replaced():
    """A selector is one value: its old keys go."""
    old = {"spec": {"selector": {"matchLabels": {"a": "1"}}}}
    new = {"spec": {"selector": {"matchLabels": {"b": "2"}}}}
    found = typed_merge(old, new, group="apps", version="v1", kind="Deployment")
    assert ((".spec.selector",), {"matchLabels": {"b": "2"}}) == (found.atomics, found.value["spec"]["selector"])


def test_lists_of_unknown_kinds_are_atomic():
    """Nothing says how they merge, so they are replaced; their maps merge."""
    old = {"spec": {"items": [{"name": "a"}], "map": {"x": 1}}}
    found = typed_merge(old, {"spec": {"items": [], "map": {"y": 2}}}, group="x.io", version="v1", kind="Odd")
    assert {"spec": {"items": [], "map": {"x": 1, "y": 2}}} == found.value
    assert (".spec.items",) == found.atomics


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (pod(hostNetwork=True), {"spec": {"hostNetwork": None}}, {"hostNetwork": None}),
        (pod(nodeSelector={"a": "b"}), {"spec": {"nodeSelector": None}}, {"nodeSelector": None}),
        (
            pod(securityContext={"runAsUser": 1}),
            {"spec": {"securityContext": None}},
            {"securityContext": {"runAsUser": 1}},
        ),
        (pod(containers=[A]), {"spec": {"containers": None}}, {"containers": [A]}),
        (pod(tolerations=[{"key": "a"}]), {"spec": {"tolerations": None}}, {"tolerations": None}),
    ],
)
def test_a_null_empties_scalars_and_atomic_values_only(old, new, expected):
    """A null says nothing about the parts of a map or a keyed list."""
    assert expected == over(old, new)["spec"]


def test_deep_values_give_an_error():
    """Nesting beyond what can be walked is a typed error."""
    deep: dict[str, object] = {}
    for _ in range(20_000):
        deep = {"a": deep}
    with pytest.raises(PatchError, match="nested too deeply"):
        typed_merge({}, deep, group="x.io", version="v1", kind="Odd")


def test_what_the_kind_does_not_have_is_refused():
    """Kinds with a schema are checked before anything is merged; others take everything."""
    with pytest.raises(PatchError) as caught:
        over(pod(), {"spec": {"nope": 1}})
    expected = "failed to convert patch object to typed object: .spec.nope: field not declared in schema"
    assert expected == str(caught.value)
    odd = typed_merge({}, {"spec": {"nope": 1}}, group="x.io", version="v1", kind="Odd")
    assert {"spec": {"nope": 1}} == odd.value


def test_items_with_some_of_their_keys_are_items_of_their_own():
    """A key that is left out and has no default is part of nobody's identity."""
    old = pod(topologySpreadConstraints=[{"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}])
    merged = over(old, {"spec": {"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1}]}})
    assert 2 == len(merged["spec"]["topologySpreadConstraints"])
