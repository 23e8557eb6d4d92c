"""Problems of a run as formats for machines show them."""

from __future__ import annotations

from pyverno.errors import PolicyError
from pyverno.report.problem import problem_of


def test_the_hint_of_a_policy_is_the_last_line_of_its_problem() -> None:
    """Formats for machines tell what was probably meant, as the text does."""
    error = PolicyError("undeclared reference to 'objct'", path="spec", hint="objct: did you mean `object`?")
    assert "spec: undeclared reference to 'objct'\nhint: objct: did you mean `object`?" == problem_of(error).message
