"""JSON Patch: operations, Kyverno's leniency and error texts."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from pyverno.errors import BudgetExceededError, PatchError
from pyverno.kube.patch.jsonpatch import MAX_PADDING, apply_patch, escape_key, unescape_key
from pyverno.lang.runtime import Budget

Op = dict[str, Any]


def op(kind: str, path: str, **rest: Any) -> Op:
    return {"op": kind, "path": path, **{name.rstrip("_"): value for name, value in rest.items()}}


BASE: dict[str, Any] = {"a": {"b": 1, "x/y": 2}, "l": [1, 2, 3], "n": None}
STRICT: dict[str, tuple[list[Op], Any]] = {
    "add key": ([op("add", "/a/c", value=None)], {**BASE, "a": {"b": 1, "x/y": 2, "c": None}}),
    "add replaces": ([op("add", "/a/b", value=5)], {**BASE, "a": {"b": 5, "x/y": 2}}),
    "escaped key": ([op("replace", "/a/x~1y", value=3)], {**BASE, "a": {"b": 1, "x/y": 3}}),
    "insert": ([op("add", "/l/1", value=9)], {**BASE, "l": [1, 9, 2, 3]}),
    "append": ([op("add", "/l/-", value=9)], {**BASE, "l": [1, 2, 3, 9]}),
    "append by -1": ([op("add", "/l/-1", value=9)], {**BASE, "l": [1, 2, 3, 9]}),
    "add before the last": ([op("add", "/l/-2", value=9)], {**BASE, "l": [1, 2, 9, 3]}),
    "remove": ([op("remove", "/a/b"), op("remove", "/l/0")], {"a": {"x/y": 2}, "l": [2, 3], "n": None}),
    "remove last": ([op("remove", "/l/-1")], {**BASE, "l": [1, 2]}),
    "replace element": ([op("replace", "/l/-1", value=9)], {**BASE, "l": [1, 2, 9]}),
    "move": ([op("move", "/l/0", from_="/a/b")], {"a": {"x/y": 2}, "l": [1, 1, 2, 3], "n": None}),
    "copy then change": (
        [op("copy", "/c", from_="/a"), op("replace", "/c/b", value=7)],
        {**BASE, "c": {"b": 7, "x/y": 2}},
    ),
    "test": ([op("test", "/a/b", value=1.0), op("test", "/n", value=None), op("test", "/gone", value=None)], BASE),
    "whole document": ([op("replace", "", value=[1])], [1]),
    "empty": ([], BASE),
}


@pytest.mark.parametrize("name", STRICT)
def test_operations_change_a_copy(name: str) -> None:
    """Operations change a copy; the input stays as it was."""
    operations, expected = STRICT[name]
    before = copy.deepcopy(BASE)
    assert expected == apply_patch(before, operations)
    assert before == BASE


def test_untouched_parts_are_shared() -> None:
    """The result holds the same object wherever the patch changes nothing."""
    document = {"a": {"b": [1]}, "c": {"d": 1}}
    patched = apply_patch(document, [op("add", "/c/e", value=2)])
    assert patched["a"] is document["a"]


LENIENT: dict[str, tuple[Any, Op, Any]] = {
    "remove what is not there": ({"a": 1}, op("remove", "/b/c/d"), {"a": 1}),
    "remove index beyond the list": ({"a": [1]}, op("remove", "/a/5"), {"a": [1]}),
    "objects": ({}, op("add", "/a/b/c", value=1), {"a": {"b": {"c": 1}}}),
    "list by number": ({}, op("add", "/a/0", value=1), {"a": [1]}),
    "list by dash": ({}, op("add", "/a/-", value=1), {"a": [1]}),
    "list by -1": ({}, op("add", "/a/-1", value=1), {"a": [1]}),
    "list is filled": ({}, op("add", "/a/2/b", value=1), {"a": [None, None, {"b": 1}]}),
    "null parent": ({"a": None}, op("add", "/a/b", value=1), {"a": {"b": 1}}),
    "escaped parent": ({}, op("add", "/x~1y/b", value=1), {"x/y": {"b": 1}}),
    "longer list": ({"a": [0]}, op("add", "/a/2/b", value=1), {"a": [0, None, {"b": 1}]}),
}


@pytest.mark.parametrize("name", LENIENT)
def test_options_of_kyverno_tolerate_missing_paths(name: str) -> None:
    """Missing parents are created, removing what is missing succeeds; without the options both fail."""
    document, operation, expected = LENIENT[name]
    assert expected == apply_patch(document, [operation], allow_missing_remove=True, create_parents=True)
    with pytest.raises(PatchError):
        apply_patch(document, [operation])


GONE = "missing value"
NO_VALUE = "failed to decode 'value': operation, missing value field"
NO_PATH = "failed to decode 'path': operation missing path field"
NO_TARGET = "copy operation does not apply: doc is missing destination path"
FAILURES: dict[str, tuple[Op, str]] = {
    "test": (op("test", "/a/b", value=2), "testing value /a/b failed: test failed"),
    "bool is not a number": (op("test", "/a/b", value=True), "testing value /a/b failed: test failed"),
    "missing path": (
        op("replace", "/q/r", value=1),
        f"replace operation does not apply: doc is missing path: /q/r: {GONE}",
    ),
    "missing key": (
        op("replace", "/a/q", value=1),
        f"replace operation does not apply: doc is missing key: /a/q: {GONE}",
    ),
    "add": (op("add", "/q/r", value=1), f'add operation does not apply: doc is missing path: "/q/r": {GONE}'),
    "index": (
        op("add", "/l/9", value=1),
        "error in add for path: '/l/9': Unable to access invalid index: 9: invalid index referenced",
    ),
    "remove": (op("remove", "/q"), f"error in remove for path: '/q': unable to remove nonexistent key: q: {GONE}"),
    "not an index": (
        op("remove", "/l/x"),
        "error in remove for path: '/l/x': strconv.Atoi: parsing \"x\": invalid syntax",
    ),
    "unknown operation": (op("merge", "/a"), 'invalid operation {"op":"merge","path":"/a"}: unsupported operation'),
    "no value": (op("add", "/a"), f'invalid operation {{"op":"add","path":"/a"}}: {NO_VALUE}: {GONE}'),
    "no path": ({"op": "remove"}, f'invalid operation {{"op":"remove"}}: {NO_PATH}: {GONE}'),
    "move source": (
        op("move", "/c", from_="/q"),
        f"error in move for path: 'q': unable to get nonexistent key: q: {GONE}",
    ),
    "copy target": (op("copy", "/q/r", from_="/a"), f"{NO_TARGET}: /q/r: {GONE}"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failure_has_the_text_of_evanphx(name: str) -> None:
    """Errors are PatchErrors with the upstream text."""
    operation, expected = FAILURES[name]
    with pytest.raises(PatchError) as caught:
        apply_patch(BASE, [operation])
    assert expected == str(caught.value)


@pytest.mark.parametrize("scalar", ["/n", "/a/b"])
@pytest.mark.parametrize(
    "operation",
    [
        op("move", "/x", from_="/a/b"),
        op("copy", "/x", from_="/a"),
        op("replace", "/a", value=1),
        op("add", "/a", value=1),
        op("add", "/a/b", value=1),
        op("remove", "/a/b"),
        op("test", "/a/b", value=1),
    ],
)
def test_nothing_is_below_a_document_that_is_a_scalar(scalar: str, operation: Op) -> None:
    """One was copied to the place of the whole document: what comes after it names nothing."""
    with pytest.raises(PatchError):
        apply_patch(BASE, [op("copy", "", from_=scalar), operation])


def test_limits_stop_growth() -> None:
    """Neither a huge index nor repeated copies make a document explode."""
    with pytest.raises(PatchError, match="Unable to create array"):
        apply_patch({}, [op("add", f"/a/{MAX_PADDING + 1}/b", value=1)], create_parents=True)
    doubling = [op("copy", "/a/-", from_="/a")] * 40
    with pytest.raises(PatchError, match="Unable to complete the copy"):
        apply_patch({"a": [1]}, doubling)


def test_keys_escape_both_ways() -> None:
    """`~` and `/` survive a pointer."""
    assert ("~01~1", "~1/") == (escape_key("~1/"), unescape_key("~01~1"))


def test_operations_are_charged_for_the_lists_that_they_move() -> None:
    """Insertions at the front of a long list end with the budget."""
    operations = [{"op": "add", "path": "/a/0", "value": 1}] * 2000
    with pytest.raises(BudgetExceededError):
        apply_patch({"a": [0] * 400_000}, operations, meter=Budget(steps=100_000))


def test_copies_of_a_long_text_count_by_its_length() -> None:
    """A thousand copies of a megabyte are no thousand values."""
    operations = [{"op": "copy", "from": "/a", "path": f"/b{at}"} for at in range(1000)]
    with pytest.raises(PatchError, match="copies exceed the limit"):
        apply_patch({"a": "x" * 1_000_000}, operations)


def test_doubling_copies_end_at_the_limit() -> None:
    """A document copied into itself again and again."""
    operations = [{"op": "copy", "from": "", "path": f"/b{at}"} for at in range(60)]
    with pytest.raises(PatchError, match="copies exceed the limit"):
        apply_patch({"a": 1}, operations)
