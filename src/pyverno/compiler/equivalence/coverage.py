"""Branches of the policies of one side that the requests of a comparison took."""

from __future__ import annotations

from collections.abc import Sequence

from pyverno.compiler.branches.branch import Branch, BranchKey
from pyverno.compiler.branches.sites import branches_of
from pyverno.compiler.branches.taken import taken_branches
from pyverno.compiler.equivalence.case import Case
from pyverno.engine.engine import Engine
from pyverno.kube.json import JSONObject
from pyverno.value import dataclass

__all__ = ["BranchCoverage", "branch_coverage"]

_LONGEST = 100


@dataclass(frozen=True, slots=True)
class BranchCoverage:
    """The number of branches of the policies, and those that no request took."""

    total: int
    missed: tuple[str, ...]

    @property
    def taken(self) -> int:
        """The number of branches that some request took."""
        return self.total - len(self.missed)

    def to_json(self) -> JSONObject:
        """Return the numbers, and the branches that were missed, for a record."""
        return {"taken": self.taken, "of": self.total, **({"missed": list(self.missed)} if self.missed else {})}


def branch_coverage(engine: Engine, documents: Sequence[JSONObject], cases: Sequence[Case]) -> BranchCoverage:
    """Explain requests until every branch of the documents was taken, or no request is left."""
    wanted: dict[tuple[int, BranchKey], Branch] = {
        (number, branch.key): branch for number, document in enumerate(documents) for branch in branches_of(document)
    }
    names = {(each.get("kind"), _key_of(each)): number for number, each in enumerate(documents)}
    left = dict(wanted)
    for case in cases:
        if not left:
            break
        for trace in engine.explain(case.request()).rules:
            policy = trace.rule.policy
            number = names.get((policy.kind, policy.key))
            if number is not None:
                for key in taken_branches(trace, documents[number]):
                    left.pop((number, key), None)
    return BranchCoverage(len(wanted), tuple(map(_describe, left.values())))


def _key_of(document: JSONObject) -> str:
    metadata = document.get("metadata") or {}
    namespace, name = metadata.get("namespace"), metadata.get("name", "")
    return f"{namespace}/{name}" if namespace else str(name)


def _describe(branch: Branch) -> str:
    """Return a branch in words.

    >>> _describe(Branch((), "true", "expression", "has(object.spec)"))
    'expression `has(object.spec)`: true'
    """
    text = branch.text if len(branch.text) <= _LONGEST else f"{branch.text[: _LONGEST - 1]}…"
    return f"{branch.kind}{f' `{text}`' if text else ''}: {branch.outcome}"
