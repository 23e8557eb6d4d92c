"""Made texts match the expression that they were made of."""

import pytest

from pyverno.errors import EvaluationError
from pyverno.lang.jmespath.functions.regex import compile_pattern
from tests.unit.lang.jmespath.worlds import evaluate


@pytest.mark.parametrize(
    "pattern",
    [
        "[0-9a-z]{8}",
        "a|bc|",
        "^a+b*c?$",
        "(?:x|y){3,5}z{2,}",
        r"\d\D\w\W\s\S",
        r"[^a-z\]]{20}",
        "[[:alpha:]][[:^digit:]]",
        r"\p{Greek}{3}\pN",
        r"\Qa.b*\E+c",
        r"\x41\x{e9}\t\.\141",
        "[]a]{9}[^]a]",
        "(?i)Abc(?P<n>d)(?i:e)",
        "(a{2}){0}b??",
        ".{5}é",
        "a{,2}",
    ],
)
def test_the_text_matches(pattern):
    """The whole text, in RE2's own judgement."""
    made = evaluate(f"random('{pattern}')".replace("\\'", "'"))
    assert compile_pattern(pattern).fullmatch(made.encode()) is not None


def test_repetitions_without_end_are_bounded():
    """`*` and `+` give 4096 at most."""
    assert 4096 >= len(evaluate("random('a+')")) >= 1


@pytest.mark.parametrize(
    ("pattern", "message"),
    [("", "no pattern provided"), ("(", "error parsing regexp: missing closing ): `(`")],
)
def test_bad_patterns_are_refused(pattern, message):
    """With Go's texts."""
    with pytest.raises(EvaluationError) as caught:
        evaluate(f"random('{pattern}')")
    assert message == caught.value.detailed
