"""A configuration is laid over an object as server-side apply lays it."""

import pytest

from pyverno.errors import PatchError
from pyverno.kube.apply.schematree import schema_tree_for, schema_tree_of
from pyverno.kube.apply.typedmerge import apply_configuration, atomic_paths, merge
from pyverno.kube.gvk import GVK
from pyverno.kube.schemas import schema_set


def tree(kind="Pod", *, group="", version="v1"):
    return schema_tree_for(schema_set(), GVK(group, version, kind))


ODD = tree("Odd", group="x.io")


def pod(**spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}


def over(old, new, kind="Pod"):
    """Merge two objects of a core kind and return the value."""
    return apply_configuration(old, new, tree(kind), refuses_atomics=False)


def names(value, *path):
    for step in path:
        value = value[step]
    return [item["name"] if isinstance(item, dict) else item for item in value]


A, B, C = ({"name": name, "image": f"{name}:1"} for name in "abc")


def test_maps_are_merged_key_by_key():
    """Fields that the configuration does not mention stay, at every depth."""
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
    """Keys are compared by value, and the protocol of a port defaults to TCP."""
    merged = over(
        pod(containers=[{"name": "a", "ports": [old]}]), {"spec": {"containers": [{"name": "a", "ports": [new]}]}}
    )
    assert count == len(merged["spec"]["containers"][0]["ports"])


@pytest.mark.parametrize(
    ("containers", "message"),
    [
        ([{"tty": True}, {"tty": False}], "duplicate entries for key .name=..."),
        (["a"], "element 0: associative list with keys may not have non-map elements"),
        ([A, {"name": "a"}], "duplicate entries for key .name=.a.."),
    ],
)
def test_items_without_a_unique_identity_are_refused(containers, message):
    """Two items of one identity, or no object at all, are an error and never a new item."""
    with pytest.raises(PatchError, match=message):
        over(pod(containers=[A]), {"spec": {"containers": containers}})


def test_items_of_built_in_kinds_have_zero_values_for_their_keys():
    """The API server's schemas default a container's name to the empty text, so that such items meet each other."""
    merged = over(pod(containers=[{"image": "x"}, A]), {"spec": {"containers": [{"tty": True}, B]}})
    assert [{"image": "x", "tty": True}, A, B] == merged["spec"]["containers"]


def test_a_null_is_a_key_like_any_other():
    """Only a key that is left out gets its default."""
    merged = over(pod(containers=[{"image": "x"}]), {"spec": {"containers": [{"name": None}]}})
    assert [{"image": "x"}, {"name": None}] == merged["spec"]["containers"]


def test_an_item_that_the_object_holds_twice_is_replaced():
    """Either of the two may be meant; one that the configuration does not mention stays."""
    old = pod(containers=[{**A, "env": [{"name": "X", "value": "1"}, {"name": "X", "value": "2"}]}])
    touched = over(old, {"spec": {"containers": [{"name": "a", "env": [{"name": "X"}]}]}})
    assert [{"name": "X"}] == touched["spec"]["containers"][0]["env"]
    assert old["spec"] == over(old, {"spec": {"containers": [{"name": "a"}]}})["spec"]


@pytest.mark.parametrize(
    ("old", "message"),
    [
        (pod(containers=["a"]), "associative list with keys may not have non-map elements"),
        ({"metadata": {"finalizers": [None]}}, "associative list without keys has an element that's an explicit null"),
    ],
)
def test_an_object_with_items_of_a_wrong_type_can_not_be_merged(old, message):
    """The error names the object and not the configuration."""
    with pytest.raises(PatchError) as caught:
        over(old, {"metadata": {"finalizers": ["x"]}, "spec": {"containers": [A]}})
    assert f"failed to convert original object to typed object: {message}" == str(caught.value)


def test_lists_of_custom_kinds_merge_by_their_schemas():
    """An item without any of its keys has no identity where no default stands for it."""
    items = {"type": "object", "properties": {"type": {"type": "string"}}}
    conditions = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
    widget = schema_tree_of({"type": "object", "properties": {"conditions": {**conditions, "items": items}}})
    live, config = {"conditions": [{"type": "a"}]}, {"conditions": [{"type": "b"}]}
    assert [{"type": "a"}, {"type": "b"}] == merge(live, config, widget)["conditions"]
    with pytest.raises(PatchError, match="omits all key fields"):
        apply_configuration(live, {"conditions": [{}]}, widget, refuses_atomics=False)


def test_atomic_values_are_replaced_and_named():
    """Atomic lists and maps are replaced as a whole, also within new items; `atomic_paths` lists them."""
    old = pod(containers=[{**A, "args": ["x", "y"]}], tolerations=[{"key": "a"}])
    new = {
        "spec": {
            "containers": [{"name": "a", "args": ["z"]}, {"name": "n", "command": ["sh"]}],
            "tolerations": [{"key": "b"}],
        }
    }
    atomics = [".spec.containers[0].args", ".spec.containers[1].command", ".spec.tolerations"]
    assert atomics == list(atomic_paths(new, tree()))
    merged = over(old, new)
    assert ["z"] == merged["spec"]["containers"][0]["args"]
    assert [{"key": "b"}] == merged["spec"]["tolerations"]
    with pytest.raises(PatchError) as caught:
        apply_configuration(old, new, tree(), refuses_atomics=True)
    text = "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: "
    assert text + ", ".join(atomics) == str(caught.value)


def test_an_atomic_map_is_replaced():
    """A selector is one value: its old keys go."""
    old = {"spec": {"selector": {"matchLabels": {"a": "1"}}}}
    new = {"spec": {"selector": {"matchLabels": {"b": "2"}}}}
    deployment = tree("Deployment", group="apps")
    merged = apply_configuration(old, new, deployment, refuses_atomics=False)
    assert ([".spec.selector"], {"matchLabels": {"b": "2"}}) == (
        list(atomic_paths(new, deployment)),
        merged["spec"]["selector"],
    )


def test_atomic_values_are_found_within_each_other_but_not_within_entries_of_maps():
    """As Kubernetes searches: declared fields, and all items."""
    selector = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
    found = list(atomic_paths({"spec": {"selector": selector}}, tree("Deployment", group="apps")))
    assert [".spec.selector", ".spec.selector.matchExpressions", ".spec.selector.matchExpressions[0].values"] == found
    request = {"spec": {"extra": {"a": ["b"]}, "groups": ["c"]}}
    assert [".spec.groups"] == list(
        atomic_paths(request, tree("CertificateSigningRequest", group="certificates.k8s.io"))
    )


def test_lists_of_unknown_kinds_are_atomic():
    """Without a schema lists are replaced and maps are merged."""
    old = {"spec": {"items": [{"name": "a"}], "map": {"x": 1}}}
    new = {"spec": {"items": [{"name": "b"}], "map": {"y": 2}}}
    expected = {"spec": {"items": [{"name": "b"}], "map": {"x": 1, "y": 2}}}
    assert expected == apply_configuration(old, new, ODD, refuses_atomics=False)
    assert [".spec.items"] == list(atomic_paths(new, ODD))


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
    """A null leaves maps and keyed lists unchanged."""
    assert expected == over(old, new)["spec"]


def test_deep_values_give_an_error():
    """Nesting beyond what can be walked is a typed error."""
    deep: dict[str, object] = {}
    for _ in range(20_000):
        deep = {"a": deep}
    with pytest.raises(PatchError, match="nested too deeply"):
        apply_configuration({}, deep, ODD, refuses_atomics=True)


def test_what_the_kind_does_not_have_is_refused():
    """Kinds with a schema are checked before anything is merged; others take everything."""
    with pytest.raises(PatchError) as caught:
        over(pod(), {"spec": {"nope": 1}})
    expected = "failed to convert patch object to typed object: .spec.nope: field not declared in schema"
    assert expected == str(caught.value)
    assert {"spec": {"nope": 1}} == apply_configuration({}, {"spec": {"nope": 1}}, ODD, refuses_atomics=True)


def test_items_with_some_of_their_keys_are_items_of_their_own():
    """A key that is left out has the zero value of its type."""
    old = pod(topologySpreadConstraints=[{"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}])
    merged = over(old, {"spec": {"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1}]}})
    assert 2 == len(merged["spec"]["topologySpreadConstraints"])
