"""Runs the cases of a corpus, in this process or in several, and collects their outcomes.

Which cases there are and what each of them claims is the buckets' business.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from tests.conformance import apply_rows, cel_cases, cli_suites, conversions, jmespath_cases, table_rows
from tests.conformance.chainsaw import cases as chainsaw_cases
from tests.conformance.outcome import Case, Claim, NotRun, Outcome, State, distinct

__all__ = ["BUCKETS", "NOT_RUN", "Bucket", "has_bucket", "run_case", "run_corpus"]


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket of a corpus: the functions that find its cases and judge one of them.

    `place` is where they are, seen from the corpus, if it is no folder of the bucket's name.
    """

    find: Callable[[Path], Iterable[Case]]
    claim: Callable[[Case, Path], Claim]
    place: str = ""


BUCKETS: dict[str, Bucket] = {
    "cli": Bucket(partial(cli_suites.find, bucket="cli"), cli_suites.claim),
    "special": Bucket(partial(cli_suites.find, bucket="special"), cli_suites.claim),
    "network": Bucket(partial(cli_suites.find, bucket="network"), cli_suites.claim),
    "apply": Bucket(apply_rows.find, apply_rows.claim),
    "tables": Bucket(table_rows.find, table_rows.claim),
    "jmespath": Bucket(jmespath_cases.find, jmespath_cases.claim),
    "cel": Bucket(cel_cases.find, cel_cases.claim),
    "chainsaw": Bucket(chainsaw_cases.find, chainsaw_cases.claim),
    "conversions": Bucket(conversions.find, conversions.claim, conversions.PLACE),
}
"""Buckets that are run, in the order of the report."""

NOT_RUN: dict[str, str] = {}
"""Buckets of a corpus that are not run yet, and why."""


def has_bucket(root: Path, name: str) -> bool:
    """Return whether a corpus has the cases of a bucket."""
    bucket = BUCKETS.get(name)
    return (root / (bucket.place or name if bucket is not None else name)).exists()


def run_corpus(
    root: Path, buckets: Iterable[str], *, text: str = "", workers: int = 1, is_strict: bool = False
) -> Iterator[Outcome]:
    """Yield the outcome of every case whose id contains a text, in the order of the corpus."""
    for name in buckets:
        if not has_bucket(root, name):
            continue
        cases = [case for case in distinct(BUCKETS[name].find(root)) if text in case.id]
        judge = partial(run_case, root=root, is_strict=is_strict)
        if workers <= 1 or len(cases) < 2 * workers:
            yield from map(judge, cases)
            continue
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            yield from pool.map(judge, cases, chunksize=max(1, min(20, len(cases) // (4 * workers))))


def run_case(case: Case, root: Path, *, is_strict: bool = False) -> Outcome:
    """Judge one case; any exception counts as a failure of this case alone."""
    try:
        claim = BUCKETS[case.bucket].claim(case, root)
    except NotRun as reason:
        return Outcome(case.bucket, case.part, case.id, State.SKIPPED, str(reason))
    except Exception as error:  # a crash of the product is one of the things this looks for
        place = traceback.extract_tb(error.__traceback__)[-1]
        got = f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
        return Outcome(case.bucket, case.part, case.id, State.FAILED, expected="an answer", got=got)
    holds = claim.holds and not (is_strict and claim.vacuous)
    state = State.PASSED if holds else State.FAILED
    expected, got = (None, None) if holds else (claim.expected, claim.got)
    return Outcome(case.bucket, case.part, case.id, state, "", expected, got, claim.vacuous, claim.replaced)
