"""The exact tier of the pattern language: maps, lists, anchors and leaves as closures.

A check looks at one element of the resource and returns None or a `Problem`; a step looks at one key of a map. Order
of keys, what skips what, and every text follow the upstream engine. This module must never import the generated tier
(`fast.passcheck`), which is tested against it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.names import MAX_NAME
from pyverno.lang.pattern.anchors import Anchor, Modifier, has_anchor_keys, parse_anchor
from pyverno.lang.pattern.leaf import Leaf, compile_leaf
from pyverno.lang.pattern.literal import Literal
from pyverno.lang.pattern.metadata import TAGS, KeyResolver, ResolvedKey, compile_key, find_tag, text_entries
from pyverno.lang.pattern.outcome import Cause, Path, Problem, go_type, path_text
from pyverno.lang.pattern.steps import (
    STEPS,
    STRIDE,
    Check,
    Element,
    Ledger,
    Step,
    existence_step,
    negation_step,
    plain_step,
    presence_step,
)

__all__ = ["Observer", "compile_labels", "compile_metadata", "compile_scalar", "element_check"]


_MAX_SKIPS = 100
_MAX_TEXT = 16 * 1024
"""Characters of the text of one map or list of which nothing applied; what is left out is counted."""


class Observer(Protocol):
    """Wraps the closures of a pattern while they are made, to see what each of them decides (see `engine.explain`)."""

    def element(self, pattern: JSON, element: Element) -> Element:
        """Return an element that decides the same."""
        ...

    def step(self, text: str, anchor: Anchor | None, pattern: JSON, step: Step) -> Step:
        """Return a step that decides the same; `text` is the key as written."""
        ...


class _Build(NamedTuple):
    """Settings for making closures: numbers as floats (anyPattern), and the observer if there is one."""

    floats: bool
    observer: Observer | None = None


class _Entry(NamedTuple):
    key: str
    anchor: Anchor | None
    step: Step
    has_anchors: bool


class _Plan(NamedTuple):
    """The entries of one map in the order of their evaluation."""

    tracked: tuple[tuple[str, str], ...]
    anchors: tuple[Step, ...]
    others: tuple[Step, ...]
    has_anchors: bool


def element_check(pattern: JSON, *, float_numbers: bool = False, observer: Observer | None = None) -> Check:
    """Compile the pattern of one element into its check; an `observer` sees all of its parts."""
    return _element(pattern, _Build(float_numbers, observer)).check


def compile_scalar(pattern: JSON, *, float_numbers: bool = False) -> Leaf:
    """Compile a scalar pattern so that a list satisfies it when every element does.

    >>> compile_scalar("a*")(["a1", "a2"]), compile_scalar("a*")([]), compile_scalar("a*")(["b"])
    (True, True, False)
    """
    leaf = compile_leaf(pattern, float_numbers=float_numbers)
    is_short = not isinstance(pattern, str) or len(pattern) <= MAX_NAME
    return _shared_for_elements(leaf) if is_short else _for_elements(leaf)


def _for_elements(leaf: Leaf) -> Leaf:
    def matches(value: JSON) -> bool:
        return all(map(leaf, value)) if isinstance(value, list) else leaf(value)

    return matches


_shared_for_elements = lru_cache(maxsize=1024)(_for_elements)


def _element(pattern: JSON, build: _Build) -> Element:
    if isinstance(pattern, dict):
        return _observed(pattern, _map(pattern, build), build)
    if isinstance(pattern, list):
        return _observed(pattern, _list(pattern, build), build)
    return _scalar(pattern, build)


def _observed(pattern: JSON, element: Element, build: _Build) -> Element:
    return element if build.observer is None else build.observer.element(pattern, element)


def _scalar(pattern: JSON, build: _Build) -> Element:
    leaf = compile_leaf(pattern, float_numbers=build.floats)

    def check(value: JSON, path: Path, _ledger: Ledger) -> Problem | None:
        if all(map(leaf, value)) if isinstance(value, list) else leaf(value):
            return None
        return _mismatch_problem(path)

    return _observed(pattern, Element(check, has_anchors=False, leaf=leaf), build)


def _mismatch_problem(path: Path) -> Problem:
    def describe() -> str:
        # Kyverno quotes both values: either may be a Secret's, and the text is in reports
        return f"resource value does not match pattern at path {path_text(path)}"

    return Problem(Cause.MISMATCH, path, describe)


# --- maps -----------------------------------------------------------------------------------------------------------


def _map(pattern: JSONObject, build: _Build) -> Element:
    metadata = find_tag(pattern, "metadata")
    plan = _plan(_entry(key, value, build, key == metadata) for key, value in pattern.items())
    # labels that are no text are dropped when this map is reached; the maps around it still see their anchors
    has_anchors = plan.has_anchors or (metadata is not None and has_anchor_keys(pattern[metadata], _JUDGED))
    return Element(_map_check(plan), has_anchors)


def _metadata_map(pattern: JSONObject, build: _Build) -> Element:
    metadata = find_tag(pattern, "metadata")
    tags = {find_tag(pattern, tag) for tag in TAGS}

    def entries() -> Iterable[_Entry]:
        for key, value in pattern.items():
            if key in tags and isinstance(value, dict):
                element = _observed(value, _labels(value, build), build)
                yield _entry_of(key, parse_anchor(key), value, element, build)
            else:
                yield _entry(key, value, build, key == metadata)

    plan = _plan(entries())
    return Element(_map_check(plan), plan.has_anchors)


def compile_labels(pattern: JSONObject, *, float_numbers: bool) -> Element:
    """Compile the pattern of a labels or annotations map, whose keys may depend on the resource."""
    return _labels(pattern, _Build(float_numbers))


def compile_metadata(pattern: JSONObject, *, float_numbers: bool) -> Element:
    """Compile the pattern of the value of `metadata`, whose labels and annotations may have wildcard keys."""
    return _metadata_map(pattern, _Build(float_numbers))


def _labels(pattern: JSONObject, build: _Build) -> Element:
    texts = text_entries(pattern)
    keyed: list[tuple[KeyResolver, Leaf, Element, str]] = []
    fixed: list[_Entry] = []
    for key, text in texts.items():
        resolve = compile_key(key)
        if resolve is None:
            fixed.append(_entry(key, text, build, is_metadata=False))
        else:
            keyed.append((resolve, compile_scalar(text, float_numbers=build.floats), _scalar(text, build), text))
    if not keyed:
        plan = _plan(fixed)
        return Element(_map_check(plan), plan.has_anchors)

    def plan_for(labels: JSONObject) -> _Plan:
        entries = (
            _entry_of(key, anchor, text, element, build)
            for resolve, holds, element, text in keyed
            for key, anchor in _meant(resolve(labels), labels, holds, shows_all=build.observer is not None)
        )
        return _plan((*fixed, *entries))

    follow = _dynamic_map_check(plan_for)

    def check(value: JSON, path: Path, ledger: Ledger) -> Problem | None:
        if isinstance(value, dict) and len(value) >= STRIDE:
            ledger.meter.charge_steps(len(keyed) * len(value))  # guard: many keys are charged
        return follow(value, path, ledger)

    return Element(check, has_anchors=plan_for({}).has_anchors)


def _meant(
    anchored: Sequence[ResolvedKey], labels: JSONObject, holds: Leaf, *, shows_all: bool
) -> Sequence[ResolvedKey]:
    """Return the keys that decide, in order: an object may have a hundred thousand, and most say the same.

    Of a condition that is one that holds, so that another key hides nothing; of a key that must not be there the first,
    and of all others the first that holds and the first that does not.
    """
    modifier = anchored[0][1].modifier if anchored[0][1] is not None else None
    is_condition = modifier in (Modifier.CONDITION, Modifier.GLOBAL)
    if len(anchored) == 1 or (shows_all and not is_condition):
        return anchored
    if modifier in (Modifier.NEGATION, Modifier.EXISTENCE):
        return anchored[:1]
    met = next((each for each in anchored if holds(labels[_name(each)])), None)
    if is_condition:
        return [met or anchored[0]]  # guard: a condition holds by any of its keys
    missed = next((each for each in anchored if not holds(labels[_name(each)])), None)
    return [each for each in (met, missed) if each is not None]


def _name(resolved: ResolvedKey) -> str:
    key, anchor = resolved
    return key if anchor is None else anchor.key


def _plan(entries: Iterable[_Entry]) -> _Plan:
    # Kyverno: pkg/engine/validate. First the anchors in the order of their texts; then the other keys, of which
    # global anchors and values with anchors inside come first, last key foremost.
    ordered = sorted(entries, key=lambda entry: entry.key)
    anchors, front, back = [], [], []
    tracked: list[tuple[str, str]] = []
    has_anchors = False
    for entry in ordered:
        modifier = entry.anchor.modifier if entry.anchor is not None else Modifier.ADD_IF_ABSENT
        has_anchors = has_anchors or entry.has_anchors or modifier is not Modifier.ADD_IF_ABSENT
        if entry.anchor is not None and modifier in _TRACKED:
            tracked.append((entry.key, entry.anchor.key))
        if modifier in _PHASE_ONE:
            anchors.append(entry.step)
        elif modifier is Modifier.GLOBAL or entry.has_anchors:
            front.append(entry.step)
        else:
            back.append(entry.step)
    return _Plan(tuple(tracked), tuple(anchors), (*reversed(front), *back), has_anchors)


_JUDGED = frozenset(Modifier) - {Modifier.ADD_IF_ABSENT}
_PHASE_ONE = frozenset({Modifier.CONDITION, Modifier.EQUALITY, Modifier.EXISTENCE, Modifier.NEGATION})
_TRACKED = frozenset({Modifier.CONDITION, Modifier.EXISTENCE})


def _map_check(plan: _Plan) -> Check:
    if plan.tracked or (plan.anchors and plan.others):
        return _dynamic_map_check(lambda _value: plan)
    return _anchors_check(plan.anchors) if plan.anchors else _keys_check(plan.others)


def _anchors_check(steps: tuple[Step, ...]) -> Check:
    """Check a map whose keys are all anchors, as most maps of security policies are."""

    def check(value: JSON, path: Path, ledger: Ledger) -> Problem | None:
        if not isinstance(value, dict):
            return _structure_problem(value, path)
        for index, step in enumerate(steps):
            problem = step(value, path, ledger)
            if problem is not None:
                if not problem.is_skip:
                    return problem
                return _after_skip(problem, _answers(steps[index + 1 :], value, path, ledger), path, index > 0)
        return None

    return check


def _keys_check(steps: tuple[Step, ...]) -> Check:
    def check(value: JSON, path: Path, ledger: Ledger) -> Problem | None:
        if not isinstance(value, dict):
            return _structure_problem(value, path)
        for step in steps:
            problem = step(value, path, ledger)
            if problem is not None:
                return problem
        return None

    return check


def _dynamic_map_check(plan_for: Callable[[JSONObject], _Plan]) -> Check:
    def check(value: JSON, path: Path, ledger: Ledger) -> Problem | None:
        if not isinstance(value, dict):
            return _structure_problem(value, path)
        return _follow(plan_for(value), value, path, ledger)

    return check


def _follow(plan: _Plan, value: JSONObject, path: Path, ledger: Ledger) -> Problem | None:
    for text, key in plan.tracked:
        if not ledger.get(text):
            ledger[text] = key in value
    if plan.anchors:
        problem = _check_anchors(plan.anchors, value, path, ledger)
        if problem is not None:
            return problem
    for step in plan.others:
        problem = step(value, path, ledger)
        if problem is not None:
            return problem
    return None


# Problems are made outside of the checks, whose variables would otherwise all be closure cells.
def _structure_problem(value: JSON, path: Path) -> Problem:
    def describe() -> str:
        types = f"Expected {go_type({})}, found {go_type(value)}"
        return f"pattern and resource have different structures. Path: {path_text(path)}. {types}"

    return Problem(Cause.MISMATCH, path, describe)


def _check_anchors(steps: tuple[Step, ...], value: JSONObject, path: Path, ledger: Ledger) -> Problem | None:
    for index, step in enumerate(steps):
        problem = step(value, path, ledger)
        if problem is not None:
            if not problem.is_skip:
                return problem
            return _after_skip(problem, _answers(steps[index + 1 :], value, path, ledger), path, index > 0)
    return None


def _answers(steps: tuple[Step, ...], value: JSONObject, path: Path, ledger: Ledger) -> Iterable[Problem | None]:
    return (step(value, path, ledger) for step in steps)


def _after_skip(first: Problem, rest: Iterable[Problem | None], path: Path, has_applied: bool) -> Problem | None:
    """Continue after the first skip: a violation counts only while no condition of this very map failed."""
    skips = [first]
    is_skipped = first.cause is Cause.CONDITION
    for problem in rest:
        if problem is None:
            has_applied = True
        elif problem.is_skip:
            skips.append(problem)
            is_skipped = is_skipped or problem.cause is Cause.CONDITION
        elif not is_skipped:
            return problem
    return _all_skipped(skips, path, len(skips)) if is_skipped or not has_applied else None


def _all_skipped(skips: list[Problem], path: Path, count: int) -> Problem:
    return Problem.skip(Cause.ALL_SKIPPED, path, lambda: _describe_skips(skips, count))


def _describe_skips(skips: list[Problem], count: int) -> str:
    """Return the texts of the first problems, and how many are left out."""
    texts: list[str] = []
    size = 0
    for skip in skips:
        texts.append(skip.describe())
        size += len(texts[-1])
        if size > _MAX_TEXT:
            break
    if count > len(texts):
        texts.append(f"and {count - len(texts)} more")
    return "; ".join(texts)


# --- keys of a map --------------------------------------------------------------------------------------------------


def _entry(key: str, pattern: JSON, build: _Build, is_metadata: bool) -> _Entry:
    anchor = parse_anchor(key)
    if anchor is not None and anchor.modifier is Modifier.EXISTENCE:
        return _make_entry(key, anchor, pattern, _existence(anchor.key, pattern, build), build)
    if anchor is not None and anchor.modifier is Modifier.NEGATION:
        return _make_entry(key, anchor, pattern, negation_step(anchor.key), build)
    if is_metadata and isinstance(pattern, dict):
        element = _observed(pattern, _metadata_map(pattern, build), build)
    else:
        element = _element(pattern, build)
    return _entry_of(key, anchor, pattern, element, build)


def _entry_of(key: str, anchor: Anchor | None, pattern: JSON, element: Element, build: _Build) -> _Entry:
    if anchor is None or anchor.modifier is Modifier.ADD_IF_ABSENT:
        is_any = pattern == "*" and not isinstance(pattern, Literal)
        step = presence_step(key) if is_any else plain_step(key, element)
    elif anchor.modifier is Modifier.EXISTENCE:
        step = _existence(anchor.key, pattern, _Build(False, build.observer))
    elif anchor.modifier is Modifier.NEGATION:
        step = negation_step(anchor.key)
    else:
        step = STEPS[anchor.modifier](anchor.key, element)
    return _make_entry(key, anchor, pattern, step, build, has_anchors=element.has_anchors)


def _make_entry(
    key: str, anchor: Anchor | None, pattern: JSON, step: Step, build: _Build, *, has_anchors: bool = False
) -> _Entry:
    if build.observer is not None:
        step = build.observer.step(key, anchor, pattern, step)
    return _Entry(key, anchor, step, has_anchors)


def _existence(key: str, pattern: JSON, build: _Build) -> Step:
    candidates = pattern if isinstance(pattern, list) else []
    wanted = (_element(item, build).check if isinstance(item, dict) else None for item in candidates)
    return existence_step(key, pattern, tuple(wanted), floats=build.floats)


# --- lists ----------------------------------------------------------------------------------------------------------


def _list(pattern: list[JSON], build: _Build) -> Element:
    elements = [_element(item, build) for item in pattern]
    has_anchors = any(element.has_anchors for element in elements)
    if not pattern:
        return Element(_list_check(_empty_pattern), has_anchors)
    first = elements[0].check
    if isinstance(pattern[0], dict):
        return Element(_maps_check(first), has_anchors)
    if isinstance(pattern[0], list):
        return Element(_list_check(_positional(tuple(element.check for element in elements))), has_anchors)
    return Element(_list_check(first), has_anchors)  # a scalar judges the whole list, see compile_scalar


def _list_check(inner: Callable[[list[JSON], Path, Ledger], Problem | None]) -> Check:
    def check(value: JSON, path: Path, ledger: Ledger) -> Problem | None:
        if isinstance(value, list):
            return inner(value, path, ledger)
        return _overlay_problem(path)

    return check


def _overlay_problem(path: Path) -> Problem:
    text = "validation rule failed at path {}, resource does not satisfy the expected overlay pattern"
    return Problem(Cause.MISMATCH, path, lambda: text.format(path_text(path)))


def _empty_pattern(_items: list[JSON], path: Path, _ledger: Ledger) -> Problem | None:
    return Problem(Cause.MISMATCH, path, lambda: "pattern Array empty")


def _maps_check(check: Check) -> Check:
    def check_all(value: JSON, path: Path, ledger: Ledger) -> Problem | None:
        if not isinstance(value, list):
            return _overlay_problem(path)
        skips: list[Problem] = []
        index = skipped = 0
        for item in value:
            problem = check(item, (path, index), ledger)
            if problem is not None:
                if not problem.is_skip:
                    return problem
                skipped += 1
                if skipped <= _MAX_SKIPS:
                    skips.append(problem)
            index += 1  # enumerate costs more in this innermost loop
            if not index % STRIDE:
                ledger.meter.charge_steps(STRIDE)
        return _all_skipped(skips, path, skipped) if skipped and skipped == index else None

    return check_all


def _positional(checks: tuple[Check, ...]) -> Check:
    def check_each(items: list[JSON], path: Path, ledger: Ledger) -> Problem | None:
        if len(items) < len(checks):
            lengths = f"resource Array len is {len(items)} and pattern Array len is {len(checks)}"
            text = f"validate Array failed, array length mismatch, {lengths}"
            return Problem(Cause.MISMATCH, None, lambda: text)
        skips: list[Problem] = []
        for index, (check, item) in enumerate(zip(checks, items, strict=False)):
            problem = check(item, (path, index), ledger)
            if problem is not None:
                if not problem.is_skip:
                    return problem
                skips.append(problem)
        return _all_skipped(skips, path, len(skips)) if len(skips) == len(checks) else None

    return check_each
