"""Coverage of policies by the rows of their test suites.

A row covers a branch when the review of a resource that it checks took the branch. Rows that fail and rows that prove
nothing cover nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from pyverno.cli.test.check import Row, covered_subjects, rule_fits
from pyverno.cli.test.subjects import Subjects
from pyverno.cli.test.suite import ReviewedManifest, Suite
from pyverno.compiler import Compiled
from pyverno.compiler.branches.branch import (
    ABSENT,
    APPLIES,
    FAIL,
    FALSE,
    FITS,
    NOT_APPLIED,
    NOT_FITTING,
    PASS,
    PRESENT,
    RUNS,
    TRUE,
    Branch,
    BranchKey,
)
from pyverno.compiler.branches.sites import branches_of
from pyverno.compiler.branches.taken import taken_branches
from pyverno.errors import Location
from pyverno.kube.json import JSONObject
from pyverno.offline.testfile import ExpectedResult
from pyverno.value import dataclass, field

__all__ = ["CoveredBranch", "PolicyCoverage", "coverage_of", "merged", "percent", "to_json"]


@dataclass(frozen=True, slots=True)
class CoveredBranch:
    """A branch of a policy, where it is, and the rows that cover it (`file:line`)."""

    branch: Branch
    location: Location
    rows: tuple[str, ...] = ()

    @property
    def is_covered(self) -> bool:
        """Return whether some row covers the branch."""
        return bool(self.rows)

    @property
    def text(self) -> str:
        """The branch as a finding that no row reaches it."""
        branch = self.branch
        what = {"rule": "the rule", "match": "the match block", "exclude": "the exclude block"}.get(branch.kind)
        written = "" if what else f" `{_shorten(branch.text)}`"
        return f"{what or _NOUNS.get(branch.kind, branch.kind)}{written} {_NEVER[branch.outcome]}"


_NOUNS = {"pattern": "key"}
_NEVER = {
    PASS: "never passes",
    FAIL: "never fails",
    FITS: "never fits",
    NOT_FITTING: "always fits",
    TRUE: "is never true",
    FALSE: "is never false",
    PRESENT: "is never present",
    ABSENT: "is never absent",
    APPLIES: "never applies",
    NOT_APPLIED: "always applies",
    RUNS: "never runs",
}


def _shorten(text: str, most: int = 80) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


@dataclass(frozen=True, slots=True)
class PolicyCoverage:
    """All branches of one policy."""

    file: str
    policy: str
    branches: tuple[CoveredBranch, ...] = field(default_factory=tuple)

    @property
    def rules(self) -> dict[str, bool]:
        """The rules by name ("" in policies in CEL), each with whether some row has a result of it."""
        found: dict[str, bool] = {}
        for each in self.branches:
            if each.branch.kind == "rule":
                name = each.branch.rule
                found[name] = found.get(name, False) or each.is_covered
        return found

    @property
    def covered(self) -> int:
        """The number of branches that are covered."""
        return sum(each.is_covered for each in self.branches)


def coverage_of(
    suite: Suite,
    judged: Sequence[ReviewedManifest],
    rows: Iterable[Row],
    expected_results: Sequence[ExpectedResult],
    test_file: str,
) -> tuple[PolicyCoverage, ...]:
    """Return the coverage of the policies of a suite whose manifests were reviewed with explanations.

    `expected_results` are the source of `rows`; `test_file` is the name of the file in the output.
    """
    proving = {id(row.expected) for row in rows if row.outcome == "Pass" and not row.vacuous}
    items = {id(item.policy.info): item for item in suite.compilation.items if item.policy is not None}
    taken: dict[int, dict[BranchKey, dict[str, None]]] = {}
    subjects = Subjects(judged)
    for expected in expected_results:
        if id(expected) not in proving:
            continue
        line = suite.test.document.location(expected.path).line
        where = f"{os.path.normpath(test_file)}:{line}"
        for item, subject in covered_subjects(suite, subjects, expected):
            info = None if item.policy is None else item.policy.info
            for trace in subject.judged.traces:
                if trace.rule.policy is info and rule_fits(expected, trace.rule):
                    own = taken.setdefault(id(info), {})
                    for key in taken_branches(trace, item.document.value):
                        own.setdefault(key, {})[where] = None
    return tuple(_coverage(item, taken.get(key, {})) for key, item in items.items() if not item.errors)


def _coverage(item: Compiled, taken: dict[BranchKey, dict[str, None]]) -> PolicyCoverage:
    document = item.document
    found = []
    for branch in branches_of(document.value):
        place = document.location(branch.place, key=branch.kind != "expression")
        if branch.offset is not None:
            place = document.character(branch.place, branch.offset)
        location = Location(os.path.normpath(place.file), place.line, place.column)
        found.append(CoveredBranch(branch, location, tuple(taken.get(branch.key, ()))))
    name = item.policy.info.key if item.policy is not None else ""
    return PolicyCoverage(os.path.normpath(document.file), name, tuple(found))


def merged(coverages: Iterable[PolicyCoverage]) -> tuple[PolicyCoverage, ...]:
    """Return one coverage for each policy that several suites test."""
    by_policy: dict[tuple[str, str], list[PolicyCoverage]] = {}
    for each in coverages:
        by_policy.setdefault((each.file, each.policy), []).append(each)
    return tuple(_merge(same) for _, same in sorted(by_policy.items()) if same[0].branches)


def _merge(same: Sequence[PolicyCoverage]) -> PolicyCoverage:
    first = same[0]
    if len(same) == 1:
        return first
    rows: dict[BranchKey, dict[str, None]] = {}
    for each in same:
        for found in each.branches:
            rows.setdefault(found.branch.key, {}).update(dict.fromkeys(found.rows))
    branches = (CoveredBranch(each.branch, each.location, tuple(rows[each.branch.key])) for each in first.branches)
    return PolicyCoverage(first.file, first.policy, tuple(branches))


def percent(part: int, whole: int) -> float:
    """Return a share in percent, rounded down to a tenth: 100 means all.

    >>> percent(1999, 2000), percent(0, 0)
    (99.9, 100.0)
    """
    return part * 1000 // whole / 10 if whole else 100.0


def to_json(coverages: Sequence[PolicyCoverage]) -> JSONObject:
    """Return the coverage of all policies as JSON."""
    rules = [covered for each in coverages for covered in each.rules.values()]
    branches = sum(len(each.branches) for each in coverages)
    covered = sum(each.covered for each in coverages)
    return {
        "rules": {"total": len(rules), "covered": sum(rules), "percent": percent(sum(rules), len(rules))},
        "branches": {"total": branches, "covered": covered, "percent": percent(covered, branches)},
        "policies": [
            {
                "policy": each.policy,
                "file": each.file,
                "branches": [
                    {
                        "rule": found.branch.rule,
                        "kind": found.branch.kind,
                        "text": found.branch.text,
                        "outcome": found.branch.outcome,
                        "location": str(found.location),
                        "rows": list(found.rows),
                    }
                    for found in each.branches
                ],
            }
            for each in coverages
        ],
    }
