"""Patterns that `random` refuses."""

import pytest

from pyverno.errors import EvaluationError
from tests.unit.lang.jmespath.hosts import evaluate


@pytest.mark.parametrize(
    ("pattern", "message"),
    [("", "no pattern provided"), ("(", "error parsing regexp: missing closing ): `(`")],
)
def test_bad_patterns_are_refused(pattern, message):
    """The errors have Go's texts."""
    with pytest.raises(EvaluationError) as caught:
        evaluate(f"random('{pattern}')")
    assert message == caught.value.detailed
