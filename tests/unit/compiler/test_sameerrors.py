"""Errors of validation and of lowering, joined."""

from __future__ import annotations

from pyverno.compiler.sameerrors import join_errors
from pyverno.errors import Location, PolicyError


def _error(message: str, line: int, column: int = 1, *, path: str = "spec", code: str = "variable") -> PolicyError:
    return PolicyError(message, location=Location("p.yaml", line, column), path=path, code=code)


def _syntax(message: str, line: int, column: int = 1, *, path: str = "spec") -> PolicyError:
    return _error(message, line, column, path=path, code="expression-syntax")


def _shown(errors: list[PolicyError]) -> list[tuple[str, int]]:
    return [(error.message, error.location.line) for error in errors if error.location is not None]


def test_an_error_of_both_is_reported_once_at_the_exact_place() -> None:
    """Validation has more words, lowering the place."""
    found = join_errors([_error("rule a: bad query x", 1)], [_syntax("bad query x", 7, path="spec.a")])
    assert [("rule a: bad query x", 7)] == _shown(found)


def test_errors_at_the_same_character_are_one() -> None:
    """The words may differ; a place without a column of its own says nothing."""
    assert 1 == len(join_errors([_error("one", 3, 5)], [_syntax("other", 3, 5, path="spec.a")]))
    assert 2 == len(join_errors([_error("one", 3)], [_syntax("other", 3, path="spec.a")]))


def test_references_are_the_same_inside_of_a_path() -> None:
    """The paths inside the messages differ: one is that of the rule, the other one that of the pattern."""
    known = _error("invalid: $(x) not found at path /validate/pattern ", 1, path="spec.rules[0]")
    inside = _syntax("$(x) not found at path / ", 4, path="spec.rules[0].validate")
    outside = _syntax("$(x) not found at path / ", 4, path="spec.rules[1].validate")
    assert 1 == len(join_errors([known], [inside]))
    assert 2 == len(join_errors([known], [outside]))


def test_other_errors_are_kept_where_nothing_is_known() -> None:
    """An error of another kind at a known place is a consequence of the known one."""
    more = [_error("consequence", 1, code="patch"), _error("news", 2, code="patch"), _syntax("news too", 3)]
    assert ["a", "news", "news too"] == [error.message for error in join_errors([_error("a", 1)], more)]
