"""JSON as Go reads and writes it."""

import pytest

from pyverno.errors import DocumentError
from pyverno.kube.json import (
    MAX_SCANNED_BYTES,
    decode,
    deep_copy,
    encode,
    encode_indent,
    equal,
    float_text,
    go_text,
    is_number,
)
from pyverno.kube.jsonscan import has_more_values, scan


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1e16, "10000000000000000"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (1e21, "1e+21"),
        (-0.0, "-0"),
        (1.5e-10, "1.5e-10"),
        (100.5, "100.5"),
        (5e-324, "5e-324"),
    ],
)
def test_floats_are_written_as_go_writes_them(value, expected):
    """Digits between 1e-6 and 1e21, else an exponent without padding."""
    assert expected == float_text(value)
    assert f"[{expected}]" == encode([value])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"b": 1, "a": [True, None]}, '{"a":[true,null],"b":1}'),
        ("<a>&\u2028", r'"\u003ca\u003e\u0026\u2028"'),
        ("\b\f\n\x01\x7fé", '"\\b\\f\\n\\u0001\x7fé"'),
        ("\ud800", '"\ufffd"'),
        (2**70, str(2**70)),
        ({}, "{}"),
        ("1:2.5", '"1:2.5"'),
    ],
)
def test_encode_is_compact_sorted_and_escaped(value, expected):
    """The text equals that of json.Marshal."""
    assert expected == encode(value)


def test_encode_refuses_what_json_does_not_have():
    """NaN would silently become null in other writers."""
    for value in (float("nan"), {"a": float("inf")}, {1: "x"}, {"a": object()}):
        with pytest.raises(DocumentError):
            encode(value)


def test_indented_text_keeps_empty_containers_on_their_line():
    """Go's json.MarshalIndent writes them this way."""
    assert '{\n  "a": [\n    1,\n    {}\n  ],\n  "b": []\n}' == encode_indent({"b": [], "a": [1, {}]})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("abc", "invalid character 'a' looking for beginning of value"),
        ("", "unexpected end of JSON input"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1 x}', "invalid character 'x' after object key:value pair"),
        ("[1 2]", "invalid character '2' after array element"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("{,}", "invalid character ',' looking for beginning of object key string"),
        ("1 2", "invalid character '2' after top-level value"),
        ("tru", "invalid character ' ' in literal true (expecting 'e')"),
        ("-x", "invalid character 'x' in numeric literal"),
        ('"\\x"', "invalid character 'x' in string escape code"),
        ("'a'", "invalid character '\\'' looking for beginning of value"),
        ("1e400", "json: cannot unmarshal number 1e400 into Go value of type float64"),
        ("NaN", "invalid character 'N' looking for beginning of value"),
        ("[" * 10_001, "invalid character '[' exceeded max depth"),
    ],
)
def test_decode_errors_have_go_texts(text, message):
    """The messages reach users through parse_json."""
    with pytest.raises(DocumentError) as caught:
        decode(text)
    assert message == str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'"a\xffb"', "a\ufffdb"),
        ('"\\ud800"', "\ufffd"),
        ('"\\ud83d\\ude00"', "😀"),
        ("9223372036854775807", 9223372036854775807),
        ("9223372036854775808", 9223372036854775808.0),
        ('{"a":1,"a":2}', {"a": 2}),
    ],
)
def test_decode_repairs_text_and_bounds_integers(text, expected):
    """Broken text becomes U+FFFD, integers beyond 64 bits become floats."""
    found = decode(text)
    assert expected == found
    assert type(expected) is type(found)


def test_deep_documents_survive_every_function():
    """Ten thousand levels are read, written, compared and printed."""
    text = "[" * 10_000 + "]" * 10_000
    value = decode(text)
    assert text == encode(value)
    assert equal(value, decode(text))
    assert text == go_text(value)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (1, 1.0, True),
        (1, True, False),
        ([1], [True], False),
        ({"a": [1.0]}, {"a": [1]}, True),
        ({"a": 1}, {"b": 1}, False),
        (None, 0, False),
        ([], {}, False),
        (0, False, False),
    ],
)
def test_equality_is_by_value_but_bools_stand_apart(left, right, expected):
    """Python's own equality would take True for 1."""
    assert expected is equal(left, right)
    assert expected is equal(right, left)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "<nil>"),
        ({"b": 1, "a": None}, "map[a:<nil> b:1]"),
        ([1, "x", [True]], "[1 x [true]]"),
        (1000000.0, "1000000"),
        (0.00001, "1e-05"),
        (1234567.5, "1.2345675e+06"),
    ],
)
def test_go_text_is_what_percent_v_prints(value, expected):
    """Whole numbers are written in digits."""
    assert expected == go_text(value)


def test_a_bool_is_not_a_number():
    """Python's `bool` is a subclass of `int`."""
    assert (True, True, False, False) == (is_number(1), is_number(1.5), is_number(True), is_number("1"))


_ODD_TEXTS = (
    b'["\\ud800", "\\udc00\\ud800", "\\ud800\\udc00", "\\\\ud800", "\\\\\\udfff", "\\uD83D\\uDE00\\ud83d"]',
    b'["\xff", "\xc3\xa9", "\xed\xa0\x80", "\xf0\x9f\x98"]',
    b"[9223372036854775807, 9223372036854775808, 18446744073709551615, 18446744073709551616, -0, 0, 1.0]",
    b"[-9223372036854775808, -9223372036854775809, 0.1000000000000000055511151231257827, 12345678901234567890.5]",
    b'[ "1234567890123456789" ,\t-9999999999999999999 ,\n9999999999999999999]',
    b'["\\ud800", 9223372036854775808, "\xff"]',
)

LONG = "[" + ",".join(["1"] * 40_000) + "]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f'["12345678901234567890", {LONG}]', ["12345678901234567890", [1] * 40_000]),
        (f'[9223372036854775808, {{"a": -9223372036854775809}}, {LONG}]', [2.0**63, {"a": -(2.0**63)}, [1] * 40_000]),
        (f'["\\ud800", "\\\\ud800", "\\ud83d\\ude00", {LONG}]', ["\ufffd", "\\ud800", "\U0001f600", [1] * 40_000]),
        (f'["a\udc80", {LONG}]', ["a\ufffd\ufffd\ufffd", [1] * 40_000]),
    ],
)
def test_a_long_text_is_never_read_by_the_slow_decoder(text, expected, monkeypatch):
    """Digits, lone surrogates and broken bytes anywhere in it change nothing about that."""
    monkeypatch.setattr("pyverno.kube.json.scan", None)
    found = decode(text)
    assert expected == found
    assert [type(item) for item in expected] == [type(item) for item in found]


@pytest.mark.parametrize("data", [*_ODD_TEXTS])
def test_both_decoders_read_the_same(data):
    """Whatever orjson does not read as Go does is corrected, or read by the exact decoder."""
    assert (scan(data), [type(each) for each in scan(data)]) == (decode(data), [type(each) for each in decode(data)])


@pytest.mark.parametrize("text", ["[" * 1100 + "]" * 1100, "[1,]", '["a'])
def test_a_long_text_that_is_too_deep_or_no_json_is_refused_at_once(text, monkeypatch):
    """The error has the offset, because Go's text would take a second to find."""
    padded = f'{{"a": "{"x" * MAX_SCANNED_BYTES}", "b": {text}}}'
    monkeypatch.setattr("pyverno.kube.json.scan", None)
    with pytest.raises(DocumentError, match=r"no JSON, or too deep for its length: .* at offset 26[23][0-9]{3}"):
        decode(padded)


def test_a_copy_shares_no_container_at_any_depth():
    """Values may be deeper than Python calls functions."""
    value: list = []
    for _ in range(10_000):
        value = [value, {"a": "b"}]
    copied = deep_copy(value)
    pairs = []
    one, two = value, copied
    while one:
        pairs.append(one is two or one[1] is two[1] or one[1] != two[1])
        one, two = one[0], two[0]
    assert [False] * 10_000 == pairs


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (b"[0,0,0]", 4),
        (b'{"a":1,"b":{"c":2}}', 4),
        (b'["a,b","[{\\",","c"]', 4),
        (b'["\\\\",1]', 3),
    ],
)
def test_values_of_a_text_are_counted_before_it_is_read(text: bytes, values: int) -> None:
    """Commas and brackets inside of texts are no values."""
    assert (True, False) == (has_more_values(text, values - 1), has_more_values(text, values))


def test_many_texts_are_many_values() -> None:
    """The quotes are enough to refuse them; escaped ones are part of a text."""
    many, long = b"[" + b",".join([b'""'] * 1000) + b"]", b'["' + b'\\"' * 5000 + b'"]'
    assert (True, False) == (has_more_values(many, 400), has_more_values(long, 400))
