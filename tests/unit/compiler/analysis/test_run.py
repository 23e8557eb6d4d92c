"""The law of the analysis: every finding shows objects on which the engine repeats it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pyverno.compiler.analysis.finding import Check, Observation
from pyverno.compiler.analysis.registry import CHECKS, find_check
from pyverno.compiler.analysis.run import analyze
from pyverno.compiler.analysis.workspace import Workspace, title_of
from pyverno.compiler.lints.lint import Severity
from pyverno.kube.json import deep_copy
from tests.support.analysis import analysis, example_of


@pytest.mark.parametrize("code", [check.code for check in CHECKS])
def test_the_example_of_a_check_is_found_and_shown(code: str) -> None:
    """Evaluating each witness again gives the results that the finding claims."""
    workspace = analysis(example_of(code))
    findings = [*analyze(workspace, select=[code])]
    assert {code} == {each.code for each in findings}
    rules = {title_of(rule.info): rule for policy in workspace.policies for rule in policy.rules}
    for each in findings:
        assert each.observation.witnesses
        for witness in each.observation.witnesses:
            again = {title: str(workspace.status(rules[title], witness.resource)) for title, _ in witness.results}
            assert dict(witness.results) == again


@pytest.mark.parametrize("code", ["PA103", "PA301"])
def test_the_same_seed_finds_the_same(code: str) -> None:
    """Word for word, because nothing depends on the clock or on the order of sets."""
    first, second = ([each.to_json() for each in analyze(analysis(example_of(code)), select=[code])] for _ in "12")
    assert first == second


def test_a_finding_without_a_witness_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check's finding is dropped unless an evaluated witness confirms it."""

    class Claims:
        """A check that shows nothing."""

        @staticmethod
        def check(_: Workspace) -> Iterator[Observation]:
            """Claim something."""
            yield Observation("all is lost", ("p",), ())

    claim = Check("PA999", "claims", Severity.ERROR, Claims)
    monkeypatch.setattr("pyverno.compiler.analysis.run.CHECKS", (claim,))
    assert [] == [*analyze(analysis(example_of("PA101"), count=10))]


def test_an_analysis_changes_no_object() -> None:
    """The population is read-only."""
    workspace = analysis(example_of("PA102"), count=40)
    before = deep_copy(workspace.objects)
    assert [*analyze(workspace)]
    assert before == workspace.objects


def test_every_check_is_found_by_code_and_name() -> None:
    """And codes and names are unique."""
    assert [*CHECKS] == [find_check(check.code) for check in CHECKS] == [find_check(check.name) for check in CHECKS]
