"""Claims about overlays: what remains of them for a resource."""

import copy

import pytest

from pyverno.errors import ExpressionError, PatchError
from pyverno.kube.json import JSON
from pyverno.kube.patch.strategicmerge import strategic_merge
from pyverno.lang.pattern.mutate import Followers, compile_overlay

POD: JSON = {
    "kind": "Pod",
    "metadata": {"name": "web", "labels": {"app": "x"}},
    "spec": {"replicas": 2, "containers": [{"name": "a", "image": "x:1"}, {"name": "b", "image": "y:2"}]},
}

CASES: list[tuple[JSON, JSON]] = [
    # no anchors
    ({"spec": {"hostPID": None}}, {"spec": {"hostPID": None}}),
    ({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}, {"spec": {"volumes": [{"name": "v"}]}}),
    # add if absent
    ({"metadata": {"labels": {"+(team)": "none"}}}, {"metadata": {"labels": {"team": "none"}}}),
    ({"metadata": {"labels": {"+(app)": "none"}}}, {}),
    ({"metadata": {"+(annotations)": {"+(a)": "b"}}}, {"metadata": {"annotations": {"a": "b"}}}),
    # conditions in maps
    ({"(kind)": "Deployment", "spec": {"a": 1}}, None),
    ({"(kind)": "P*", "spec": {"a": 1}}, {"spec": {"a": 1}}),
    ({"(missing)": "*", "spec": {"a": 1}}, None),
    ({"<(missing)": "*", "spec": {"a": 1}}, None),
    ({"metadata": {"(name)": "q*", "labels": {"a": "b"}}}, None),
    ({"metadata": {"(name)": "w*", "labels": {"a": "b"}}}, {"metadata": {"labels": {"a": "b"}}}),
    ({"spec": {"(replicas)": 2, "a": 1}}, {"spec": {"a": 1}}),
    ({"spec": {"(replicas)": "2", "a": 1}}, {"spec": {"a": 1}}),
    ({"spec": {"(replicas)": ">1", "a": 1}}, {"spec": {"a": 1}}),
    ({"spec": {"(containers)": [{"image": "*:*"}], "a": 1}}, {"spec": {"a": 1}}),
    # a condition on a map with additions inside is merged
    ({"spec": {"(x)": {"+(u)": 1}}}, None),
    ({"metadata": {"x": 1, "(labels)": {"+(u)": "1"}}}, {"metadata": {"labels": {"u": "1"}, "x": 1}}),
    ({"(metadata)": {"+(annotations)": {"a": "b"}}}, {"metadata": {"annotations": {"a": "b"}}}),
    ({"(metadata)": {"name": "w*"}, "spec": {"a": 1}}, {"spec": {"a": 1}}),
    # other anchors are plain keys
    ({"spec": {"=(a)": {"X(b)": 1}}}, {"spec": {"=(a)": {"X(b)": 1}}}),
    # lists of maps
    (
        {"spec": {"containers": [{"(image)": "x:*", "imagePullPolicy": "Always"}]}},
        {"spec": {"containers": [{"imagePullPolicy": "Always", "name": "a"}]}},
    ),
    (
        {"spec": {"containers": [{"(image)": "x:*", "p": "A"}, {"(image)": "y:*", "p": "B"}]}},
        {"spec": {"containers": [{"p": "A", "name": "a"}, {"p": "B", "name": "b"}]}},
    ),
    (
        {"spec": {"containers": [{"(name)": "*", "+(image)": "z", "+(tty)": True}]}},
        {"spec": {"containers": [{"name": "a", "tty": True}, {"name": "b", "tty": True}]}},
    ),
    ({"spec": {"containers": [{"(image)": "q:*", "p": 1}]}}, {}),
    ({"spec": {"containers": [{"(image)": "x:*"}], "a": 1}}, {"spec": {"a": 1}}),
    ({"spec": {"containers": [{"<(image)": "z:*"}], "hostNetwork": False}}, None),
    ({"spec": {"containers": [{"<(image)": "x:*"}], "hostNetwork": False}}, {"spec": {"hostNetwork": False}}),
    ({"spec": {"volumes": [{"(name)": "*", "p": 1}], "a": 1}}, {"spec": {"a": 1}}),
    ({"spec": {"volumes": [{"<(name)": "*"}], "a": 1}}, None),
]


@pytest.mark.parametrize(("overlay", "expected"), CASES)
def test_an_overlay_resolves(overlay: JSON, expected: JSON) -> None:
    """Conditions are decided, additions unwrapped, list elements tied to names; inputs stay as they are."""
    before = copy.deepcopy((overlay, POD))
    assert compile_overlay(overlay).resolve(POD) == expected
    assert (overlay, POD) == before


def test_an_overlay_without_anchors_is_its_own_patch() -> None:
    """Nothing is copied where nothing depends on the resource."""
    overlay = {"spec": {"a": [{"b": None}]}}
    assert compile_overlay(overlay).resolve(POD) is overlay


def test_nameless_elements_are_ignored() -> None:
    """Without a name an element cannot be found again by the merge."""
    overlay = {"l": [{"(x)": "1", "y": "2"}]}
    resource = {"l": [{"x": "1"}, {"x": "1", "name": ""}]}
    assert compile_overlay(overlay).resolve(resource) == {"l": [{"y": "2", "name": ""}]}


def test_what_was_made_for_one_element_does_not_reach_the_next() -> None:
    """Nested lists start anew for each outer element."""
    overlay = {"c": [{"(name)": "*", "m": [{"(path)": "/x", "ro": True}], "t": 1}]}
    resource = {
        "c": [{"name": "a", "m": [{"name": "v", "path": "/x"}]}, {"name": "b", "m": [{"name": "w", "path": "/y"}]}]
    }
    expected = {"c": [{"m": [{"name": "v", "ro": True}], "name": "a", "t": 1}, {"name": "b", "t": 1}]}
    resolved = compile_overlay(overlay).resolve(resource)
    assert resolved == expected
    assert {type(element) for element in resolved["c"]} == {dict}
    assert {type(element) for element in resolved["c"][0]["m"]} == {dict}


def test_each_element_that_selects_an_item_changes_it() -> None:
    """Several elements with conditions apply one after the other; nested lists and lists without keys follow suit."""
    pod = {"spec": {"containers": [{"name": "a", "image": "x:1"}, {"name": "b", "image": "y:1"}]}}
    overlay = compile_overlay(
        {
            "spec": {
                "containers": [
                    {"(name)": "*", "tty": True, "env": [{"name": "ONE", "value": "1"}], "args": ["first"]},
                    {"(image)": "x:*", "stdin": True, "env": [{"name": "TWO", "value": "2"}], "args": ["second"]},
                    {"(name)": "a", "tty": False},
                ]
            }
        }
    )
    followers: Followers = {}
    patch = overlay.resolve(pod, followers=followers)
    merged = strategic_merge(pod, patch, version="v1", kind="Pod", followers=followers)
    first, second = merged["spec"]["containers"]
    env = [{"name": "TWO", "value": "2"}, {"name": "ONE", "value": "1"}]
    expected = {"name": "a", "image": "x:1", "tty": False, "stdin": True, "env": env, "args": ["second"]}
    assert expected == first
    assert {
        "name": "b",
        "image": "y:1",
        "tty": True,
        "env": [{"name": "ONE", "value": "1"}],
        "args": ["first"],
    } == second


def test_each_element_of_a_nested_list_that_selects_an_item_changes_it() -> None:
    """The followers of nested elements are found for each outer element; every result is a plain map."""
    mounts = [{"name": "v", "mountPath": "/v"}]
    pod = {"spec": {"containers": [{"name": name, "volumeMounts": mounts} for name in "ab"]}}
    inner = [{"(name)": "v", "mountPath": "/v", "readOnly": True}, {"(name)": "*", "mountPath": "/v", "subPath": "s"}]
    followers: Followers = {}
    patch = compile_overlay({"spec": {"containers": [{"(name)": "*", "volumeMounts": inner}]}}).resolve(
        pod, followers=followers
    )
    merged = strategic_merge(pod, patch, version="v1", kind="Pod", followers=followers)
    expected = {"name": "v", "mountPath": "/v", "readOnly": True, "subPath": "s"}
    found = [mount for each in merged["spec"]["containers"] for mount in each["volumeMounts"]]
    assert [expected, expected] == found
    assert {dict} == {type(mount) for mount in found}


def test_an_element_without_conditions_counts_alone() -> None:
    """As in Kyverno: of two elements for one item, the one without conditions counts, and the other does not."""
    pod = {"spec": {"containers": [{"name": "a"}]}}
    followers: Followers = {}
    overlay = compile_overlay({"spec": {"containers": [{"(name)": "a", "tty": True}, {"name": "a", "stdin": True}]}})
    patch = overlay.resolve(pod, followers=followers)
    merged = strategic_merge(pod, patch, version="v1", kind="Pod", followers=followers)
    assert {"spec": {"containers": [{"name": "a", "stdin": True}]}} == merged


def test_a_list_without_merge_keys_holds_all_that_was_selected() -> None:
    """Such a list replaces that of the object: followers are elements of their own there, also in nested lists."""
    rules = {"rules": [{"name": "r", "l": [{"name": "i"}]}]}
    inner = [{"(name)": "i", "x": 1}, {"(name)": "*", "y": 2}]
    followers: Followers = {}
    patch = compile_overlay({"rules": [{"(name)": "r", "l": inner}, {"(name)": "*", "z": 3}]}).resolve(
        rules, followers=followers
    )
    merged = strategic_merge(rules, patch, version="v1", kind="Unknown", followers=followers)
    nested = [{"name": "i", "x": 1}, {"name": "i", "y": 2}]
    assert {"rules": [{"name": "r", "l": nested}, {"name": "r", "z": 3}]} == merged


def test_a_name_that_is_no_text_stays_in_the_resource_as_it_is() -> None:
    """Pruning works on a copy of the patch, so an empty map inside such a name survives."""
    overlay = compile_overlay({"b": [{"(kind)": "x", "value": 1}]})
    resource = {"b": [{"kind": "x", "name": [{"c": {"labels": {}}, "d": 1}]}]}
    before = copy.deepcopy(resource)
    assert {"b": [{"value": 1, "name": [{"c": {"labels": {}}, "d": 1}]}]} == overlay.resolve(resource)
    assert before == resource


def test_a_list_overlay_needs_a_list() -> None:
    """A map where the overlay has a list of maps is a patch error."""
    with pytest.raises(PatchError, match="failed to preProcess rule"):
        compile_overlay({"spec": {"containers": [{"(name)": "*"}]}}).resolve({"spec": {"containers": {}}})


def test_an_overlay_that_is_too_deep_is_a_clean_error() -> None:
    """Ten thousand levels raise the typed error, with and without anchors."""
    for key in ("a", "+(a)", "(a)"):
        overlay: JSON = 1
        for _ in range(10_000):
            overlay = {key: overlay}
        with pytest.raises(ExpressionError, match="nested too deeply"):
            compile_overlay(overlay).resolve({})
