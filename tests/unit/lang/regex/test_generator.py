"""Generated texts match the expression that they are generated from."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from pyverno.compiler.cel.environment import environment_of_kind
from pyverno.errors import BudgetExceededError
from pyverno.lang.jmespath import compile_expression
from pyverno.lang.regex.compiler import compile_re2
from pyverno.lang.regex.generator import generate_text
from pyverno.lang.runtime import Budget, Runtime

PATTERNS = (
    "[0-9a-z]{8}",
    "a|bc|",
    "^a+b*c?$",
    "(?:x|y){3,5}z{2,}",
    r"\d\D\w\W\s\S",
    r"[^a-z\]]{20}",
    "[[:alpha:]][[:^digit:]]",
    r"\p{Greek}{3}\pN",
    r"\pL{3}",
    r"\Qab\E",
    r"\Qa.b*\E+c",
    r"\x{41}",
    r"[\x{400}-\x{4ff}]{4}[^\x00-\x7f]{4}",
    r"\x41\x{e9}\t\.\141",
    "[]a]{9}[^]a]",
    "(?i)Abc(?P<n>d)(?i:e)",
    "(a{2}){0}b??",
    ".{5}é",
    "a{,2}",
)


class Chance:
    """A world with reproducible randomness."""

    def __init__(self) -> None:
        self._random = Random(1)  # noqa: S311 - reproducible, not secret

    def now(self) -> int:
        """Return the epoch."""
        return 0

    def random_bits(self, bits: int) -> int:
        """Return an integer of that many bits."""
        return self._random.getrandbits(bits)

    def lookup_host(self, name: str) -> tuple[str, ...]:
        """Return no address."""
        return ()


def in_cel(pattern: str) -> Any:
    """Return what `random` of CEL makes."""
    program = environment_of_kind("ValidatingPolicy").compile(f"random(r'{pattern}')")
    return program.evaluate({}, Runtime(Chance(), Budget()))


def in_jmespath(pattern: str) -> Any:
    """Return what `random` of JMESPath makes."""
    return compile_expression(f"random('{pattern}')").evaluate({}, Runtime(Chance(), Budget()))


@pytest.mark.parametrize("make", [in_cel, in_jmespath])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_text_matches_in_both_languages(pattern: str, make: Callable[[str], str]) -> None:
    """The whole text, in RE2's own judgement."""
    assert compile_re2(pattern).fullmatch(make(pattern).encode()) is not None


def test_every_choice_matches() -> None:
    """The pattern matches the whole generated text, for every choice of alternatives."""
    chance = Chance()
    for pattern in ("a(b|c)+d?", r"\d{2}-\w{3}", "[^a-z]{2}", "[[:alpha:]_]+", r"\pL{9}"):
        for _ in range(50):
            text = generate_text(pattern, chance.random_bits)
            assert compile_re2(pattern).fullmatch(text) is not None, text


def test_repetitions_without_end_are_bounded() -> None:
    """`*` and `+` give 4096 at most."""
    assert 4096 >= len(generate_text("a+", Chance().random_bits)) >= 1


@pytest.mark.parametrize("make", [in_cel, in_jmespath])
def test_texts_are_limited(make: Callable[[str], str]) -> None:
    """No pattern makes more than 64 KiB."""
    with pytest.raises(BudgetExceededError):
        make("[a]{1000}" * 66)
