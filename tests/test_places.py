"""The share of failures with the field that decided: over our own policies, and over a corpus where one is at hand."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pyverno.cli.test.find import find_suites
from pyverno.cli.test.suite import Suite, load_suite
from pyverno.engine.result import RuleType, Status
from pyverno.errors import PyvernoError

LIBRARY = Path(__file__).parents[1] / "policies"
CORPUS = os.environ.get("PYVERNO_CORPUS", "")
LEAST = 0.95
_JUDGING = (RuleType.VALIDATION, RuleType.IMAGE_VERIFY)


def suites(root: Path) -> Iterator[Suite]:
    """Load the suites below a folder; those that are meant to be broken are left out."""
    for path in sorted(root.rglob("kyverno-test.yaml")):
        with ExitStack() as stack:
            for found in find_suites(str(path), path.name, "", stack):
                if found.test is not None:
                    try:
                        yield load_suite(found.test, found.path.parent)
                    except PyvernoError:
                        continue


def places(suite: Suite) -> Iterator[str]:
    """Yield for each failure of an object what is known of its place: `field`, `object` (nothing of it was read)."""
    try:
        judged = suite.judge()
    except PyvernoError:
        return
    for each in judged:
        document = each.manifest if each.payload or each.review.resource is None else each.review.resource
        for result in each.review.results:
            if result.status is Status.FAIL and result.rule.type in _JUDGING and result.target is None:
                blamed = suite.session.blame(document, result, is_payload=bool(each.payload), operation=each.operation)
                yield "field" if blamed else "object" if blamed == () else "unknown"


@pytest.mark.parametrize(
    "root",
    [
        pytest.param(LIBRARY, id="library"),
        pytest.param(
            Path(CORPUS) / "cli",
            id="corpus",
            marks=pytest.mark.skipif(not CORPUS, reason="PYVERNO_CORPUS names no folder"),
        ),
    ],
)
def test_failures_show_the_field_that_decided(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At least 95 of 100."""
    counts = Counter(place for suite in suites(root) for place in places(suite))
    share = counts["field"] / counts.total()
    with capsys.disabled():
        print(f"\n{root.name}: {share:.1%} of {counts.total()} failures show the deciding field ({dict(counts)})")
    assert share >= LEAST
