"""Operand types of arithmetic functions, and their results."""

import pytest

from pyverno.errors import EvaluationError
from tests.unit.lang.jmespath.hosts import evaluate


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("add(`1`, `2.5`)", 3.5),
        ("add('0.5', '1')", "1500m"),
        ("add('1h', '2h')", "3h0m0s"),
        ("add('12Ki', '13')", "12301"),
        ("subtract('12Ki', '13Ki')", "-1Ki"),
        ("sum(`[1, 2, 3]`)", 6),
        ("sum(['abc'])", "abc"),
        ("sum(['1h', '2h'])", "3h0m0s"),
        ("multiply('1Gi', `0.5`)", "512Mi"),
        ("multiply(`2`, `2.5`)", 5),
        ("divide('10', `3`)", "3"),
        ("divide('1', `2`)", "0"),
        ("divide('1000m', `2`)", "500m"),
        ("divide('10s', `3`)", "3.333333333s"),
        ("divide('1h', '2h')", 0.5),
        ("divide(`1`, `4`)", 0.25),
        ("modulo('10Gi', '3Gi')", "1Gi"),
        ("modulo(`10`, `-3`)", 1),
        ("modulo('-5s', '3s')", "-2s"),
        ("round(`1.005`, `2`)", 1),
        ("round(`2.5`, `0`)", 3),
        ("round(`0.49999999999999994`, `0`)", 0),
        ("round(`1.5`, `400`)", 1.5),
    ],
)
def test_arithmetic(text, expected):
    """Numbers, quantities and durations."""
    assert expected == evaluate(text, {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("add('10', `1`)", "JMESPath function 'add': Types mismatch"),
        ("add('x', '1')", "JMESPath function 'add': invalid operand"),
        ("add(`true`, `1`)", "JMESPath function 'add': invalid operand"),
        ('sum(`[1, "1"]`)', "JMESPath function 'sum': Types mismatch"),
        ("multiply('2', '3')", "JMESPath function 'multiply': Types mismatch"),
        ("divide(`1`, '2')", "JMESPath function 'divide': Types mismatch"),
        ("divide(`1`, `0`)", "JMESPath function 'divide': Zero divisor passed"),
        ("divide('1', '0')", "JMESPath function 'divide': Zero divisor passed"),
        ("divide('1s', '0s')", "JMESPath function 'divide': Zero divisor passed"),
        ("modulo('1500m', '1')", "JMESPath function 'modulo': Non-integer argument(s) passed for modulo"),
        ("modulo(`1.5`, `1`)", "JMESPath function 'modulo': Non-integer argument(s) passed for modulo"),
        ("modulo(`1`, `0`)", "JMESPath function 'modulo': Zero divisor passed"),
        ("round(`1`, `1.5`)", "JMESPath function 'round': Non-integer argument(s) passed for round off"),
        (
            "round(`1`, `-1`)",
            "JMESPath function 'round': %!d(MISSING) argument is out of bounds (%!d(MISSING))",
        ),
    ],
)
def test_operands_that_do_not_go_together(text, message):
    """Each error names the function."""
    with pytest.raises(EvaluationError) as caught:
        evaluate(text, {})
    assert message == caught.value.detailed
