"""Mutation testing of policies: every suite is run against small changes of the policies that it tests.

A mutant is killed when a row fails, or proves nothing any more. A survivor is no proof of a gap: it may decide like the
original for every object.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256

from pyverno.cli.test.check import Row, check_rows
from pyverno.cli.test.coverage import percent
from pyverno.cli.test.strict import vacuous_checks
from pyverno.cli.test.suite import Suite
from pyverno.compiler import Compiled, compile_documents
from pyverno.compiler.mutants.mutant import Mutant
from pyverno.compiler.mutants.policies import mutants_of
from pyverno.errors import Location, PyvernoError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.offline.testfile import ExpectedResult
from pyverno.value import dataclass, replace

__all__ = [
    "INVALID",
    "KILLED",
    "SURVIVED",
    "MutantOutcome",
    "Selection",
    "merged_mutants",
    "mutation_json",
    "run_mutants",
    "score",
]

KILLED, SURVIVED, INVALID = "killed", "survived", "invalid"
_CONTEXT = 2
_ORDER = (KILLED, SURVIVED, INVALID)


@dataclass(frozen=True, slots=True)
class Selection:
    """The mutants of a job: at most `most` of each policy (0 = all), chosen by `seed`, and of those one in `parts`."""

    most: int = 0
    seed: int = 0
    part: int = 0
    parts: int = 1


@dataclass(frozen=True, slots=True)
class MutantOutcome:
    """One mutant and its outcome: `killed`, `survived`, or `invalid` for an invalid policy.

    `diff` is that of the policy, for mutants that survived.
    """

    file: str
    policy: str
    number: int
    title: str
    location: Location
    outcome: str
    diff: str = ""


def run_mutants(suite: Suite, asked: Sequence[ExpectedResult], selection: Selection) -> Iterator[MutantOutcome]:
    """Run the mutants of all policies that rows name; the suite itself must pass."""
    usual = _findings(suite, asked)
    named = {expected.policy_name for expected in asked}
    for index, item in enumerate(suite.compilation.items):
        policy = item.policy
        if policy is None or item.errors or policy.info.name not in named:
            continue
        for number, mutant in _select(item, selection):
            location = _location(item, mutant)
            outcome = _judge(suite, index, mutant, asked, usual)
            diff = _diff(item.document.value, mutant.document) if outcome == SURVIVED else ""
            file = os.path.normpath(item.document.file)
            yield MutantOutcome(file, policy.info.key, number, mutant.title, location, outcome, diff)


def _select(item: Compiled, selection: Selection) -> Iterator[tuple[int, Mutant]]:
    mutants = list(enumerate(mutants_of(item.document.value)))
    if selection.most and len(mutants) > selection.most:

        def rank(numbered: tuple[int, Mutant]) -> bytes:
            return sha256(f"{selection.seed}:{numbered[1].place}:{numbered[1].title}".encode()).digest()

        mutants = sorted(sorted(mutants, key=rank)[: selection.most], key=lambda numbered: numbered[0])
    yield from mutants[selection.part :: selection.parts]


def _location(item: Compiled, mutant: Mutant) -> Location:
    document = item.document
    place = document.location(mutant.place, key=mutant.offset is None)
    if mutant.offset is not None:
        place = document.character(mutant.place, mutant.offset)
    return Location(os.path.normpath(place.file), place.line, place.column)


def _judge(
    suite: Suite, index: int, mutant: Mutant, asked: Sequence[ExpectedResult], usual: frozenset[tuple[str, ...]]
) -> str:
    documents = [item.document for item in suite.compilation.items]
    documents[index] = replace(documents[index], value=mutant.document)
    compilation = compile_documents(documents)
    if compilation.items[index].errors:
        return INVALID
    changed = replace(suite, session=suite.session.with_policies(compilation))
    try:
        found = _findings(changed, asked)
    except (PyvernoError, RecursionError):
        return KILLED  # the suite would end with this error
    return SURVIVED if found == usual else KILLED


def _findings(suite: Suite, asked: Sequence[ExpectedResult]) -> frozenset[tuple[str, ...]]:
    """Return the failing rows and the checks that prove nothing, as a strict run reports them."""
    judged = suite.judge()
    rows: list[Row] = list(check_rows(suite, judged, asked))
    failed = ((row.policy, row.rule, row.resource, row.reason) for row in rows if row.counts_as_failed)
    return frozenset((*failed, *((text,) for text in vacuous_checks(suite, judged, rows, asked))))


def _diff(before: JSON, after: JSON) -> str:
    old, new = (dump_yaml(each, sort_keys=False).splitlines() for each in (before, after))
    lines = list(difflib.unified_diff(old, new, n=_CONTEXT, lineterm=""))
    return "\n".join(lines[2:])


def merged_mutants(outcomes: Iterable[MutantOutcome]) -> tuple[MutantOutcome, ...]:
    """Return one outcome for each mutant: killed when some suite kills it."""
    found: dict[tuple[str, str, int], MutantOutcome] = {}
    for each in outcomes:
        key = (each.file, each.policy, each.number)
        known = found.get(key)
        if known is None or _ORDER.index(each.outcome) < _ORDER.index(known.outcome):
            found[key] = each
    return tuple(found[key] for key in sorted(found))


def score(outcomes: Sequence[MutantOutcome]) -> float:
    """Return the share of the valid mutants that are killed, in percent."""
    killed = sum(each.outcome == KILLED for each in outcomes)
    return percent(killed, sum(each.outcome != INVALID for each in outcomes))


def mutation_json(outcomes: Sequence[MutantOutcome]) -> JSONObject:
    """Return the outcomes of all mutants as JSON."""
    counts: JSONObject = {word: sum(each.outcome == word for each in outcomes) for word in _ORDER}
    return {
        **counts,
        "percent": score(outcomes),
        "mutants": [
            {
                "policy": each.policy,
                "location": str(each.location),
                "change": each.title,
                "outcome": each.outcome,
                **({"diff": each.diff} if each.diff else {}),
            }
            for each in outcomes
        ],
    }
