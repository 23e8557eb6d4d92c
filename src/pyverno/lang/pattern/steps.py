"""One key of a map pattern: what each anchor requires of the key and its value.

A step returns None or a `Problem`. The order of the steps, and what a skip means for the map, is for `checks`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from pyverno.kube.json import JSON, JSONObject, is_number
from pyverno.kube.meter import UNMETERED, Meter
from pyverno.lang.pattern.anchors import Modifier
from pyverno.lang.pattern.leaf import Leaf
from pyverno.lang.pattern.outcome import Cause, Path, Problem, go_type, path_text

__all__ = [
    "STEPS",
    "STRIDE",
    "Check",
    "Element",
    "Ledger",
    "Step",
    "condition_step",
    "equality_step",
    "existence_step",
    "global_step",
    "negation_step",
    "plain_step",
    "presence_step",
]

STRIDE: Final = 256
"""Elements of a list that are looked at before the meter is charged for them; shorter lists are free."""


class Ledger(dict[str, bool]):
    """Condition and existence keys met so far, and whether any resource map had them; and the meter of the match."""

    __slots__ = ("meter",)

    def __init__(self, meter: Meter = UNMETERED) -> None:
        super().__init__()
        self.meter = meter


Check = Callable[[JSON, Path, Ledger], Problem | None]
Step = Callable[[JSONObject, Path, Ledger], Problem | None]


class Element(NamedTuple):
    """One compiled element; `leaf` answers at once for a scalar, where `check` would only name the problem."""

    check: Check
    has_anchors: bool
    leaf: Leaf | None = None


def plain_step(key: str, element: Element) -> Step:
    """The value must match; a missing key is handed on as null."""
    check, leaf = element.check, element.leaf

    def step(resource: JSONObject, path: Path, ledger: Ledger) -> Problem | None:
        value = resource.get(key)
        if leaf is not None and leaf(value):
            return None
        return check(value, (path, key), ledger)

    return step


def presence_step(key: str) -> Step:
    """The key must be there with a value other than null, of whatever type: a plain key with `*`."""

    def step(resource: JSONObject, path: Path, _ledger: Ledger) -> Problem | None:
        if resource.get(key) is not None:
            return None
        return Problem(Cause.MISMATCH, path, lambda: f"{path_text(path)}/{key} not found")

    return step


def condition_step(key: str, element: Element) -> Step:
    """A missing key or a mismatch skips the map."""
    check = element.check

    def step(resource: JSONObject, path: Path, ledger: Ledger) -> Problem | None:
        if key not in resource:
            return Problem.skip(Cause.CONDITION, (path, key), _missing_condition_text)
        inner = check(resource[key], (path, key), ledger)
        if inner is None:
            return None
        return _mismatch("conditional anchor mismatch", inner)

    return step


def _mismatch(prefix: str, inner: Problem) -> Problem:
    return Problem.skip(Cause.CONDITION, inner.path, lambda: f"{prefix}: {inner.describe()}")


def _missing_condition_text() -> str:
    return "conditional anchor mismatch: conditional anchor key doesn't exist in the resource"


def global_step(key: str, element: Element) -> Step:
    """A mismatch skips; a missing key is fine."""
    check = element.check

    def step(resource: JSONObject, path: Path, ledger: Ledger) -> Problem | None:
        if key not in resource:
            return None
        inner = check(resource[key], (path, key), ledger)
        if inner is None:
            return None
        return _mismatch("global anchor mismatch", inner)

    return step


def equality_step(key: str, element: Element) -> Step:
    """The value must match where the key is there."""
    check, leaf = element.check, element.leaf

    def step(resource: JSONObject, path: Path, ledger: Ledger) -> Problem | None:
        if key not in resource:
            return None
        value = resource[key]
        if leaf is not None and leaf(value):
            return None
        return check(value, (path, key), ledger)

    return step


def negation_step(key: str) -> Step:
    """The key must not be there."""

    def step(resource: JSONObject, path: Path, _ledger: Ledger) -> Problem | None:
        if key not in resource:
            return None
        here: Path = (path, key)
        text = "negation anchor matched in resource: {} is not allowed"
        return Problem(Cause.NEGATION, here, lambda: text.format(path_text(here)))

    return step


STEPS: Mapping[Modifier, Callable[[str, Element], Step]] = {
    Modifier.CONDITION: condition_step,
    Modifier.GLOBAL: global_step,
    Modifier.EQUALITY: equality_step,
}


def existence_step(key: str, pattern: JSON, wanted: tuple[Check | None, ...], *, floats: bool) -> Step:
    """Some element of the list must satisfy each of `wanted`; None stands for a pattern that is no map."""
    pattern_type = go_type(0.0 if floats and is_number(pattern) else pattern)

    def step(resource: JSONObject, path: Path, ledger: Ledger) -> Problem | None:
        if key not in resource:
            return None
        value, here = resource[key], (path, key)
        if not isinstance(value, list):
            return Problem(Cause.MISMATCH, here, lambda: _EXISTENCE_RESOURCE.format(go_type(value)))
        if not isinstance(pattern, list):
            return Problem(Cause.MISMATCH, here, lambda: _EXISTENCE_LIST.format(pattern_type))
        is_long = len(value) * len(wanted) > STRIDE
        for check in wanted:
            if check is None:
                return Problem(Cause.MISMATCH, here, lambda: _EXISTENCE_MAP.format(pattern_type))
            if is_long:
                ledger.meter.charge_steps(len(value))
            if not any(check(item, (here, index), ledger) is None for index, item in enumerate(value)):
                return Problem(
                    Cause.MISMATCH, here, lambda: f"existence anchor validation failed at path {path_text(here)}"
                )
        return None

    return step


_EXISTENCE_RESOURCE = "invalid resource type {}: Existence ^ () anchor can be used only on list/array type resource"
_EXISTENCE_LIST = "invalid pattern type {}: Pattern has to be of list to compare against resource"
_EXISTENCE_MAP = "invalid pattern type {}: Pattern has to be of type map to compare against items in resource"
