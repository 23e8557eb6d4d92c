"""Rows that fail although both policies decide alike."""

from __future__ import annotations

from pyverno.cli.migrate.suiterows import settle_rows
from pyverno.cli.test.check import Row
from pyverno.offline.testfile import ExpectedResult, Outcome

SUITE = {"results": [{"policy": "p", "kind": "Pod", "resources": ["a", "b", "c"], "result": "skip"}]}


def failed(name: str, reason: str) -> Row:
    """Return a failed row on a Pod."""
    expected = ExpectedResult("p", Outcome.SKIP, kind="Pod", path=("results", 0))
    return Row("p", "r", f"v1/Pod/default/{name}", "Fail", reason, expected=expected)


def test_a_skip_becomes_a_pass_for_the_resource_that_passed() -> None:
    """The row is split; the others still expect a skip."""
    made = settle_rows(SUITE, [failed("b", "Want skip, got pass")], set())
    found = [(each["resources"], each["result"]) for each in made.documents[0]["results"]]
    assert [(["a", "c"], "skip"), (["b"], "pass")] == found
    assert ["suite-skip"] == [each.code for each in made.notes]


def test_a_difference_stays() -> None:
    """A row that failed in another way is not touched."""
    made = settle_rows(SUITE, [failed("b", "Want skip, got fail")], {("Pod", "c"), ("Deployment", "b")})
    assert (SUITE, ()) == (made.documents[0], made.notes)
