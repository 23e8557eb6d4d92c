"""Claims about single keys of a map pattern."""

import pytest

from pyverno.lang.pattern.checks import element_check
from pyverno.lang.pattern.outcome import Cause
from pyverno.lang.pattern.steps import (
    Element,
    Ledger,
    Step,
    condition_step,
    equality_step,
    existence_step,
    global_step,
    negation_step,
    plain_step,
    presence_step,
)

ONE = Element(element_check("1"), has_anchors=False)
STEPS: list[tuple[Step, list[Cause | None]]] = [
    (plain_step("k", ONE), [Cause.MISMATCH, Cause.MISMATCH, None]),
    (presence_step("k"), [Cause.MISMATCH, None, None]),
    (condition_step("k", ONE), [Cause.CONDITION, Cause.CONDITION, None]),
    (global_step("k", ONE), [None, Cause.CONDITION, None]),
    (equality_step("k", ONE), [None, Cause.MISMATCH, None]),
    (negation_step("k"), [None, Cause.NEGATION, Cause.NEGATION]),
    (existence_step("k", [{}], (ONE.check,), floats=False), [None, Cause.MISMATCH, Cause.MISMATCH]),
]


@pytest.mark.parametrize(("step", "expected"), STEPS)
def test_a_step_answers_for_a_missing_a_wrong_and_a_right_value(step: Step, expected: list[Cause | None]) -> None:
    """The results follow the table of the anchors."""
    problems = [step(resource, (), Ledger()) for resource in ({}, {"k": "2"}, {"k": "1"})]
    assert [problem and problem.cause for problem in problems] == expected
