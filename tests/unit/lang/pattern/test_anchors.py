"""Claims about anchor keys."""

import pytest

from pyverno.lang.pattern.anchors import CONDITIONS, Anchor, Modifier, has_anchor_keys, parse_anchor

KEYS = [
    ("(a)", Anchor(Modifier.CONDITION, "a")),
    ("=(a)", Anchor(Modifier.EQUALITY, "a")),
    ("^(a)", Anchor(Modifier.EXISTENCE, "a")),
    ("X(a)", Anchor(Modifier.NEGATION, "a")),
    ("<(a)", Anchor(Modifier.GLOBAL, "a")),
    ("+(a)", Anchor(Modifier.ADD_IF_ABSENT, "a")),
    ("  =(a b/c)\t", Anchor(Modifier.EQUALITY, "a b/c")),
    ("((a))", Anchor(Modifier.CONDITION, "(a)")),
    ("( a )", Anchor(Modifier.CONDITION, " a ")),
    ("()", None),
    ("X()", None),
    ("a", None),
    ("", None),
    ("(a", None),
    ("a)", None),
    ("x(a)", None),
    ("==(a)", None),
    ("= (a)", None),
    ("(a)b", None),
    ("(a\nb)", None),
    ("(", None),
    (")", None),
    ("\x1c(a)", None),
]


@pytest.mark.parametrize(("text", "expected"), KEYS)
def test_keys_follow_the_grammar(text: str, expected: Anchor | None) -> None:
    """One optional character, then parentheses around a key that is not empty; anything else is a plain key."""
    assert parse_anchor(text) == expected


@pytest.mark.parametrize("modifier", list(Modifier))
def test_an_anchor_prints_as_it_is_written(modifier: Modifier) -> None:
    """Printing and parsing are inverse."""
    anchor = Anchor(modifier, "spec")
    assert parse_anchor(str(anchor)) == anchor


def test_anchor_keys_are_found_at_any_depth() -> None:
    """Keys count wherever they are, values never do."""
    assert has_anchor_keys([{"a": [{"b": {"<(c)": 1}}]}], CONDITIONS)
    assert not has_anchor_keys([{"a": [{"b": "(c)"}, "<(d)"]}, {"=(e)": 1}], CONDITIONS)
