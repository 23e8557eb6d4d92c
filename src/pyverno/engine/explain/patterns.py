"""Patterns that record every key, list element and value that they look at."""

from __future__ import annotations

from pyverno.engine.explain.nodes import FieldPath, Held, Hidden, PatternNode, Shown
from pyverno.engine.explain.recorder import Recorder
from pyverno.engine.explain.secrecy import Secrecy, shortened
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.meter import UNMETERED, Meter
from pyverno.lang.pattern.anchors import Anchor
from pyverno.lang.pattern.outcome import Outcome, Path, Problem
from pyverno.lang.pattern.steps import Element, Ledger, Step
from pyverno.lang.pattern.validate import Pattern

__all__ = ["RecordedPattern"]


class RecordedPattern(Pattern):
    """A pattern whose exact closures record what they decide; it has no fast tier.

    `source` names where the pattern's own values come from when variables made it of values that must not be shown.
    """

    __slots__ = ("_recorder", "_secrecy", "_source")

    def __init__(
        self, tree: JSON, *, float_numbers: bool, recorder: Recorder, secrecy: Secrecy, source: str = ""
    ) -> None:
        super().__init__(tree, float_numbers=float_numbers)
        self._recorder = recorder
        self._secrecy = secrecy
        self._source = source

    @property
    def passes(self) -> None:
        """No pass-check: it would record nothing."""
        return

    @property
    def failing_path(self) -> None:
        """No fast verdict: it would record nothing."""
        return

    def match(self, resource: JSON, meter: Meter = UNMETERED) -> Outcome:
        """Match as the pattern does, and record it."""
        return self.observed(resource, _Observer(self._recorder, self._secrecy, self._source), meter)


class _Observer:
    """Wraps the closures of one pattern."""

    def __init__(self, recorder: Recorder, secrecy: Secrecy, source: str) -> None:
        self._recorder = recorder
        self._secrecy = secrecy
        self._source = source

    def element(self, pattern: JSON, element: Element) -> Element:
        """Return the element with a check that records a map, a list or a value."""
        check = element.check
        part = "map" if isinstance(pattern, dict) else "list" if isinstance(pattern, list) else "value"

        def recorded(value: JSON, path: Path, ledger: Ledger) -> Problem | None:
            with self._recorder.inside() as children:
                problem = check(value, path, ledger)
            outcome, cause = _decide(problem)
            where = _fields(path)
            wanted: Held = Hidden(self._source) if self._source else Shown(shortened(pattern))
            if part == "value":
                node = PatternNode(part, where, outcome, cause, wanted=wanted, found=self._secrecy.field(where, value))
            else:
                is_present = isinstance(value, dict if part == "map" else list)
                absent = tuple(text for text, is_met in ledger.items() if not is_met)
                node = PatternNode(
                    part,
                    where,
                    outcome,
                    cause,
                    is_present=is_present,
                    wanted=wanted if part == "list" else None,
                    absent=absent,
                    children=tuple(children),
                )
            self._recorder.add(node)
            return problem

        return Element(recorded, element.has_anchors)

    def step(self, text: str, anchor: Anchor | None, pattern: JSON, step: Step) -> Step:
        """Return a step that records the key, its anchor, and whether the object has it."""
        key, modifier = (text, "") if anchor is None else (anchor.key, anchor.modifier.value or "(")
        wanted: Held = Hidden(self._source) if self._source else Shown(shortened(pattern))

        def recorded(resource: JSONObject, path: Path, ledger: Ledger) -> Problem | None:
            with self._recorder.inside() as children:
                problem = step(resource, path, ledger)
            outcome, cause = _decide(problem)
            where = (*_fields(path), key)
            self._recorder.add(
                PatternNode(
                    "key",
                    where,
                    outcome,
                    cause,
                    key=text,
                    anchor=modifier,
                    is_present=key in resource,
                    wanted=wanted,
                    # a plain key with `*` requires a value other than null
                    found=Shown(None) if key in resource and resource[key] is None else None,
                    children=tuple(children),
                )
            )
            return problem

        return recorded


def _decide(problem: Problem | None) -> tuple[str, str]:
    if problem is None:
        return "pass", ""
    # Kyverno knows no path for lists of different lengths
    return "skip" if problem.is_skip else "fail", problem.cause.value if problem.path is not None else "length"


def _fields(path: Path) -> FieldPath:
    found: list[str | int] = []
    while path:
        path, part = path
        found.append(part)
    return tuple(reversed(found))
