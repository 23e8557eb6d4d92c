"""The summary of a run: counts by class, unexplained differences with their smallest cases; as text and as JSON."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field

from pyverno.kube.json import JSONObject
from tests.differential.classes import CLASSES, classify
from tests.differential.compare import Difference

__all__ = ["Summary", "signature"]

_VALUES = re.compile(r"\"[^\"]*\"|'[^']*'|`[^`]*`|\d+|\bp\d+\b")


def signature(difference: Difference) -> tuple[str, ...]:
    """Return the key that groups differences: family, aspect, statuses and texts without their values."""
    texts = (_VALUES.sub("_", text)[:60] for text in (difference.ours.text, difference.theirs.text))
    if difference.key.kind == "object":
        texts = iter(("", ""))
    return (
        difference.batch.family,
        difference.key.kind,
        difference.aspect,
        difference.ours.status,
        difference.theirs.status,
        *texts,
    )


@dataclass(slots=True)
class Summary:
    """The results of all batches."""

    seeds: list[int] = field(default_factory=list)
    verdicts: Counter[str] = field(default_factory=Counter)
    explained: Counter[str] = field(default_factory=Counter)
    groups: dict[tuple[str, ...], list[Difference]] = field(default_factory=dict)

    def add(self, family: str, verdicts: int, found: list[Difference]) -> None:
        """Count the verdicts and differences of one batch."""
        self.verdicts[family] += verdicts
        for difference in found:
            explanation = classify(difference)
            if explanation is not None:
                self.explained[explanation.name] += 1
            else:
                self.groups.setdefault(signature(difference), []).append(difference)

    @property
    def unexplained(self) -> int:
        """Return how many differences no class explains."""
        return sum(map(len, self.groups.values()))

    def as_json(self) -> JSONObject:
        """Return the summary as a document."""
        return {
            "seeds": self.seeds,
            "verdicts": dict(self.verdicts),
            "total": self.verdicts.total(),
            "equal": self.verdicts.total() - self.explained.total() - self.unexplained,
            "classes": [
                {"name": each.name, "paragraph": each.paragraph, "count": self.explained[each.name]}
                for each in CLASSES
                if self.explained[each.name]
            ],
            "unexplained": [_as_case(found) for found in self.groups.values()],
        }

    def as_text(self) -> str:
        """Return the summary for a terminal."""
        lines = [f"{'family':<12}{'verdicts':>10}"]
        lines += [f"{name:<12}{count:>10,}" for name, count in sorted(self.verdicts.items())]
        total = self.verdicts.total()
        lines += [f"{'all':<12}{total:>10,}", "", f"{'explained by':<60}{'count':>8}"]
        lines += [f"{each.name:<60}{self.explained[each.name]:>8,}" for each in CLASSES if self.explained[each.name]]
        lines += ["", f"unexplained: {self.unexplained:,} in {len(self.groups)} groups"]
        for number, found in enumerate(sorted(self.groups.values(), key=len, reverse=True), start=1):
            lines += [
                "",
                f"--- {number}: {len(found)} times, first in seed {found[0].batch.seed}",
                *_case_lines(found[0]),
            ]
        return "\n".join(lines)


def _as_case(found: list[Difference]) -> JSONObject:
    first = found[0]
    return {
        "count": len(found),
        "seed": first.batch.seed,
        "family": first.batch.family,
        "key": str(first.key),
        "ours": [first.ours.status, first.ours.text, first.ours.details],
        "theirs": [first.theirs.status, first.theirs.text, first.theirs.details],
        "policies": [item for item in first.batch.policies if item["metadata"]["name"] == first.key.policy],
        "resource": first.resource,
    }


def _case_lines(first: Difference) -> list[str]:
    case = _as_case([first])
    lines = [f"{first.batch.family}: {first.key}"]
    for side, answer in (("ours", first.ours), ("theirs", first.theirs)):
        shown = answer.details if first.aspect == "details" else answer.text
        lines.append(f"  {side + ':':<8}{answer.status}: {shown}")
    lines += [f"  policy: {json.dumps(policy['spec'], ensure_ascii=False)}" for policy in case["policies"]]
    if case["resource"]:
        lines.append(f"  resource: {json.dumps(case['resource'], ensure_ascii=False)}")
    return lines
