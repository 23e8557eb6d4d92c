"""Strategic merge: kustomize's rules for maps, keyed lists, directives and order."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from pyverno.errors import BudgetExceededError, PatchError
from pyverno.kube.json import JSON
from pyverno.kube.patch.strategicmerge import strategic_merge
from pyverno.lang.runtime import Budget
from tests.support.operations import MOST_GROWTH, growth


def pod(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "spec": spec}


A = {"name": "a", "image": "x", "env": [{"name": "E", "value": "1"}]}
B = {"name": "b", "image": "y"}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "element merges by name, patch order first": (
        {"containers": [A, B]},
        {"containers": [{"name": "c"}, {"name": "b", "tty": True}]},
        {"containers": [{"name": "c"}, {"name": "b", "image": "y", "tty": True}, A]},
    ),
    "nested keyed list": (
        {"containers": [A]},
        {"containers": [{"name": "a", "env": [{"name": "F", "value": "2"}, {"name": "E", "value": "3"}]}]},
        {"containers": [{**A, "env": [{"name": "F", "value": "2"}, {"name": "E", "value": "3"}]}]},
    ),
    "ports by number and protocol": (
        {"containers": [{"name": "a", "ports": [{"containerPort": 80, "protocol": "TCP"}]}]},
        {"containers": [{"name": "a", "ports": [{"containerPort": 80, "protocol": "UDP", "name": "u"}]}]},
        {
            "containers": [
                {
                    "name": "a",
                    "ports": [
                        {"containerPort": 80, "protocol": "UDP", "name": "u"},
                        {"containerPort": 80, "protocol": "TCP"},
                    ],
                }
            ]
        },
    ),
    "port without protocol is a port of its own": (
        {"containers": [{"name": "a", "ports": [{"containerPort": 80, "protocol": "TCP"}]}]},
        {"containers": [{"name": "a", "ports": [{"containerPort": 81}]}]},
        {"containers": [{"name": "a", "ports": [{"containerPort": 81}, {"containerPort": 80, "protocol": "TCP"}]}]},
    ),
    "atomic list is replaced": (
        {"tolerations": [{"key": "a"}]},
        {"tolerations": [{"key": "b"}]},
        {"tolerations": [{"key": "b"}]},
    ),
    "null deletes": ({"a": {"b": 1, "c": 2}}, {"a": {"b": None}, "x": {"y": None}}, {"a": {"c": 2}, "x": {}}),
    "null of the document stays": ({"a": {"b": None}}, {"a": {"c": 1}}, {"a": {"b": None, "c": 1}}),
    "null deletes a list": ({"containers": [A]}, {"containers": None}, {}),
    "element is deleted": (
        {"containers": [A, B]},
        {"containers": [{"name": "a", "$patch": "delete"}]},
        {"containers": [B]},
    ),
    "map is deleted": ({"a": {"b": 1}}, {"a": {"$patch": "delete"}}, {}),
    "map is replaced": ({"a": {"b": 1, "c": 2}}, {"a": {"$patch": "replace", "d": None, "e": 1}}, {"a": {"e": 1}}),
    "map is merged": ({"a": {"b": 1}}, {"a": {"$patch": "merge", "c": 2}}, {"a": {"b": 1, "c": 2}}),
    "list is replaced": ({"containers": [A]}, {"containers": [{"$patch": "replace"}, B]}, {"containers": [B]}),
    "list is deleted": ({"containers": [A]}, {"containers": [{"$patch": "delete"}]}, {}),
    "new list leaves no directive": ({}, {"containers": [{"$patch": "replace"}, B]}, {"containers": [B]}),
    "number over text becomes text": ({"a": "1", "b": 1}, {"a": 2, "b": "3"}, {"a": "2", "b": "3"}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_patch_of_a_pod_gives_the_result_of_kustomize(name: str) -> None:
    """A patch on a Pod's spec gives kustomize's result and changes neither input."""
    before, changes, expected = CASES[name]
    document, patch = pod(**copy.deepcopy(before)), {"spec": copy.deepcopy(changes)}
    assert pod(**expected) == strategic_merge(document, patch)
    assert (pod(**before), {"spec": changes}) == (document, patch)


def test_scalars_of_a_set_merge() -> None:
    """Finalizers are united, those of the patch first."""
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"finalizers": ["a", "b"]}}
    merged = strategic_merge(document, {"metadata": {"finalizers": ["c", "b"]}})
    assert ["c", "b", "a"] == merged["metadata"]["finalizers"]


def test_lists_of_unknown_kinds_are_replaced() -> None:
    """Without a schema there is no merge key, even if all elements have a name."""
    document = {"apiVersion": "example.com/v1", "kind": "Thing", "spec": {"l": [{"name": "a", "v": 1}]}}
    assert {"l": [{"name": "b"}]} == strategic_merge(document, {"spec": {"l": [{"name": "b"}]}})["spec"]


def test_embedded_resources_bring_their_schema() -> None:
    """A map with `apiVersion` and `kind` inside an unknown kind merges by its own schema."""
    document = {"apiVersion": "example.com/v1", "kind": "Thing", "template": pod(containers=[A])}
    merged = strategic_merge(document, {"template": {"spec": {"containers": [B]}}})
    assert [B, A] == merged["template"]["spec"]["containers"]


def test_the_kind_can_be_given() -> None:
    """Group, version and kind name the schema of a bare object."""
    merged = strategic_merge({"spec": {"containers": [A]}}, {"spec": {"containers": [B]}}, version="v1", kind="Pod")
    assert [B, A] == merged["spec"]["containers"]


def test_untouched_parts_are_shared() -> None:
    """Parts that no patch mentions are the same objects, and lists in them are left alone."""
    twice = [{"name": "E", "value": "1"}, {"name": "E", "value": "2"}]
    document = pod(containers=[{"name": "a", "env": twice}], volumes=[{"name": "v"}])
    merged = strategic_merge(document, {"spec": {"containers": [{"name": "a", "image": "x"}]}})
    assert merged["spec"]["volumes"] is document["spec"]["volumes"]
    assert merged["spec"]["containers"][0]["env"] is twice


def test_patch_that_deletes_everything_gives_none() -> None:
    """`$patch: delete` at the top removes the document."""
    assert strategic_merge(pod(), {"$patch": "delete"}) is None


@pytest.mark.parametrize(
    "patch", [{"spec": {"containers": {"a": 1}}}, {"spec": []}, {"spec": {"$patch": "mix"}}, {"kind": {"a": 1}}]
)
def test_disagreement_is_a_patch_error(patch: dict[str, Any]) -> None:
    """A map does not merge with a list, and directives have three values."""
    with pytest.raises(PatchError, match=r"wrong node kind|unknown patch strategy"):
        strategic_merge(pod(containers=[A]), patch)


def test_deep_patch_is_an_error_not_a_crash() -> None:
    """Nesting beyond Python's stack is refused."""
    deep: Any = {}
    for _ in range(10_000):
        deep = {"a": deep}
    with pytest.raises(PatchError, match="deep"):
        strategic_merge(pod(), deep)


def _pod(items: list[Any], field: str = "containers") -> JSON:
    return {"apiVersion": "v1", "kind": "Pod", "spec": {field: items}}


def _ports(items: list[Any]) -> JSON:
    return _pod([{"name": "a", "ports": items}])


HARD_LISTS: dict[str, Callable[[int], tuple[JSON, JSON]]] = {
    "each named once": lambda n: (
        _pod([{"name": f"c{at}", "image": "x"} for at in range(n)]),
        _pod([{"name": f"c{at}", "tty": True} for at in range(n)]),
    ),
    "names many times": lambda n: (
        _pod([{"name": f"c{at % 7}"} for at in range(n)]),
        _pod([{"name": f"c{at}"} for at in range(n)]),
    ),
    "all merged into one": lambda n: (
        _pod([{"name": "c1"}] * n),
        _pod([*({"name": f"c{at}"} for at in range(n)), {"name": ""}, {"name": None}]),
    ),
    "ports without protocol": lambda n: (
        _ports([{"containerPort": at} for at in range(n)]),
        _ports([{"containerPort": n - at, "protocol": "TCP"} for at in range(n)]),
    ),
    "ports without number": lambda n: (
        _ports([{"protocol": f"p{at}"} for at in range(n)]),
        _ports([{"containerPort": 1, "protocol": f"p{at}"} for at in range(n)]),
    ),
    "ports of null": lambda n: (
        _ports([{"containerPort": at, "protocol": None} for at in range(n)]),
        _ports([{"containerPort": 1, "protocol": ""}, {}, None, *({"containerPort": at} for at in range(n))]),
    ),
    "removed": lambda n: (
        _pod([{"name": f"c{at}"} for at in range(n)] * 2),
        _pod([{"name": f"c{at}", "$patch": "delete"} for at in range(n)]),
    ),
    "texts": lambda n: (
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"finalizers": [f"f{at}" for at in range(n)]}},
        {"metadata": {"finalizers": [f"f{2 * at}" for at in range(n)]}},
    ),
    "objects of unknown kinds": lambda n: (
        {"apiVersion": "v1", "kind": "List"},
        {f"k{at}": {"apiVersion": "v1", "kind": f"Kind{at}"} for at in range(n)},
    ),
}


@pytest.mark.parametrize("name", HARD_LISTS)
def test_twice_the_elements_take_about_twice_the_work(name: str) -> None:
    """No element is searched for in the whole list."""

    def prepare(size: int) -> Callable[[], object]:
        document, patch = HARD_LISTS[name](size)
        return lambda: strategic_merge(document, patch)

    assert growth(prepare, 60) < MOST_GROWTH


def test_a_merge_charges_its_meter() -> None:
    """A budget ends a merge in the middle."""
    document, patch = HARD_LISTS["names many times"](500)
    with pytest.raises(BudgetExceededError):
        strategic_merge(document, patch, meter=Budget(steps=500))
