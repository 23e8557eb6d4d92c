"""Tokens, their offsets, and the texts of lexical errors."""

import tracemalloc

import pytest

from pyverno.errors import ExpressionSyntaxError
from pyverno.lang.jmespath.lexer import tokenize


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.b", ["tUnquotedIdentifier", "tDot", "tUnquotedIdentifier", "tEOF"]),
        ("[?a]", ["tFilter", "tUnquotedIdentifier", "tRbracket", "tEOF"]),
        ("a[]", ["tUnquotedIdentifier", "tFlatten", "tEOF"]),
        ("a||b|c", ["tUnquotedIdentifier", "tOr", "tUnquotedIdentifier", "tPipe", "tUnquotedIdentifier", "tEOF"]),
        ("-1 <= `2`", ["tNumber", "tLTE", "tJSONLiteral", "tEOF"]),
        ("&a && !b", ["tExpref", "tUnquotedIdentifier", "tAnd", "tNot", "tUnquotedIdentifier", "tEOF"]),
        ("a = b", ["tUnquotedIdentifier", "tUnknown", "tUnquotedIdentifier", "tEOF"]),
        ("\ue0000\ue001", ["tUnquotedIdentifier", "tEOF"]),
    ],
)
def test_a_text_is_cut_into_these_tokens(text, expected):
    """Longest operators win and blanks separate."""
    assert expected == [token.type.value for token in tokenize(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"'it\'s'", "it's"),
        (r"'a\b'", r"a\b"),
        (r"'\\'", r"\\"),
        (r'"a\"b"', 'a"b'),
        (r'"\u00e9"', "é"),
        (r"`\``", "`"),
        ('`{"a": 1}`', '{"a": 1}'),
    ],
)
def test_delimited_tokens_carry_their_decoded_text(text, expected):
    """Escapes are those of each delimiter."""
    assert expected == tokenize(text)[0].value


@pytest.mark.parametrize(
    ("text", "message", "offset"),
    [
        ("a # b", "SyntaxError: Unknown char: '#'", 2),
        ("é", r"SyntaxError: Unknown char: '\u00e9'", 0),
        ("'abc", "SyntaxError: Unclosed delimiter: '", 4),
        (r"'abc\'", "SyntaxError: Unclosed delimiter: '", 6),
        ('"abc', 'SyntaxError: Unclosed delimiter: "', 4),
        ("`abc", "SyntaxError: Unclosed delimiter: `", 4),
    ],
)
def test_lexical_errors_name_the_character_and_the_place(text, message, offset):
    """Texts are the fork's, offsets count code points."""
    with pytest.raises(ExpressionSyntaxError) as caught:
        tokenize(text)
    assert (message, offset) == (caught.value.message, caught.value.offset)


@pytest.mark.parametrize(("start", "end"), [("", ""), ("'", "'"), ('"', '"'), ('`"', '"`')])
def test_a_long_token_takes_little_memory(start, end):
    """Expressions that remember a place for each character would take a hundred bytes for it."""
    text = start + "a" * 100_000 + end
    tokenize(start + "a" + end)
    tracemalloc.start()
    try:
        tokenize(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40 * len(text)
