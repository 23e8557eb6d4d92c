"""The report of a run: a table for people, one JSON object for machines, and whether the run is good.

This module must never run a case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.conformance.outcome import Outcome, State

__all__ = ["Report", "make_report"]

_HEADER = ("", "passed", "failed", "skipped", "total", "known gaps")
_SHOWN = 300


@dataclass(slots=True)
class Report:
    """All outcomes, held against the known gaps.

    `failures` are those that are no known gap; `open_gaps` failed as known, `closed_gaps` passed although listed.
    """

    outcomes: Sequence[Outcome]
    gaps: Mapping[str, str]
    not_run: Mapping[str, str]
    is_strict: bool = False
    failures: list[Outcome] = field(default_factory=list)
    open_gaps: list[Outcome] = field(default_factory=list)
    closed_gaps: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """Return whether every failure is a known gap and every known gap is still one."""
        return not self.failures and not self.closed_gaps

    def table(self) -> str:
        """Return the table: a line per bucket, and per part where a bucket has several."""
        lines = [_HEADER]
        for bucket in dict.fromkeys(outcome.bucket for outcome in self.outcomes):
            chosen = [outcome for outcome in self.outcomes if outcome.bucket == bucket]
            lines.append(self._line(bucket, chosen))
            parts = list(dict.fromkeys(outcome.part for outcome in chosen))
            if len(parts) > 1:
                lines += [self._line(f"  {part}", [each for each in chosen if each.part == part]) for part in parts]
        widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADER))]
        text = [
            "  ".join(
                cell.ljust(width) if not column else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
            for line in lines
        ]
        return "\n".join(
            [line.rstrip() for line in text] + [f"{name}: not run, {why}" for name, why in self.not_run.items()]
        )

    def _line(self, name: str, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
        figures = _figures(outcomes)
        known = sum(1 for outcome in outcomes if outcome.state is State.FAILED and outcome.id in self.gaps)
        return (name, *(str(figures[key]) for key in ("passed", "failed", "skipped", "total")), str(known or ""))

    def details(self) -> str:
        """Return the details to review: failures, closed gaps, vacuous passes, and the reasons of skipped cases."""
        lines: list[str] = []
        for outcome in self.failures:
            lines += [
                f"FAILED {outcome.id}",
                f"  expected {_short(outcome.expected)}",
                f"  got      {_short(outcome.got)}",
            ]
            lines += [f"  vacuous  {_short(text)}" for text in outcome.vacuous if self.is_strict]
        lines += [f"known gap  {outcome.id}: {self.gaps[outcome.id]}" for outcome in self.open_gaps]
        lines += [f"CLOSED GAP {identity}: it passes now, remove it from gaps.yaml" for identity in self.closed_gaps]
        reasons = Counter(
            (outcome.bucket, outcome.reason) for outcome in self.outcomes if outcome.state is State.SKIPPED
        )
        lines += [f"skipped {count:4} of {bucket}: {reason}" for (bucket, reason), count in sorted(reasons.items())]
        again = [outcome for outcome in self.outcomes if outcome.replaced]
        if again:
            passed = sum(outcome.state is State.PASSED for outcome in again)
            share = 100 * passed / len(again)
            lines.append(f"images signed again: {passed} of {len(again)} cases pass ({share:.0f} %); replaced are")
            lines += [f"  {outcome.id}: {'; '.join(outcome.replaced)}" for outcome in again]
        vacuous = sum(len(outcome.vacuous) for outcome in self.outcomes)
        if vacuous:
            suites = sum(1 for outcome in self.outcomes if outcome.vacuous)
            verdict = "failures in strict mode" if not self.is_strict else "counted as failures"
            lines.append(f"vacuous passes: {vacuous} rows in {suites} suites ({verdict})")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Return the whole report as JSON."""
        buckets = {}
        for bucket in dict.fromkeys(outcome.bucket for outcome in self.outcomes):
            chosen = [outcome for outcome in self.outcomes if outcome.bucket == bucket]
            parts = dict.fromkeys(outcome.part for outcome in chosen)
            buckets[bucket] = {
                **_figures(chosen),
                "parts": {part: _figures([each for each in chosen if each.part == part]) for part in parts},
                "failures": [self._failure(outcome) for outcome in chosen if outcome.state is State.FAILED],
                "skips": [
                    {"id": outcome.id, "reason": outcome.reason} for outcome in chosen if outcome.state is State.SKIPPED
                ],
                "replaced": [
                    {"id": outcome.id, "replaced": list(outcome.replaced)} for outcome in chosen if outcome.replaced
                ],
                "vacuous": [{"id": outcome.id, "rows": list(outcome.vacuous)} for outcome in chosen if outcome.vacuous],
            }
        return {
            "buckets": buckets,
            "not_run": dict(self.not_run),
            "closed_gaps": self.closed_gaps,
            "strict": self.is_strict,
            "good": self.is_good,
        }

    def _failure(self, outcome: Outcome) -> dict[str, Any]:
        failure = {"id": outcome.id, "expected": outcome.expected, "got": outcome.got}
        reason = self.gaps.get(outcome.id)
        return failure if reason is None else {**failure, "known_gap": reason}


def make_report(
    outcomes: Iterable[Outcome], gaps: Mapping[str, str], not_run: Mapping[str, str], *, is_strict: bool = False
) -> Report:
    """Compare outcomes with the known gaps; gaps of cases that were not run are ignored."""
    report = Report(list(outcomes), gaps, not_run, is_strict)
    for outcome in report.outcomes:
        is_known = outcome.id in gaps
        if outcome.state is State.FAILED:
            (report.open_gaps if is_known else report.failures).append(outcome)
        elif outcome.state is State.PASSED and is_known:
            report.closed_gaps.append(outcome.id)
    return report


def _figures(outcomes: Sequence[Outcome]) -> dict[str, int]:
    counts = Counter(outcome.state for outcome in outcomes)
    return {**{state.value: counts[state] for state in State}, "total": len(outcomes)}


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
