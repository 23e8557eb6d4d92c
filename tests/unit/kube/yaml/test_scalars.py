"""Scalars: every type of YAML 1.1 as go-yaml v2 resolves it, and what it deliberately leaves as text."""

from __future__ import annotations

import pytest

from pyverno.kube.yaml.scalars import key_text, resolve_plain, resolve_tagged

PLAIN: dict[str, object] = {
    "": None, "~": None, "null": None, "Null": None, "nUll": "nUll", "y": True, "Y": True, "yes": True, "on": True,
    "True": True, "n": False, "No": False, "OFF": False, "oN": "oN", "tRue": "tRue",
    "0": 0, "-0": 0, "12": 12, "+12": 12, "-12": -12, "1_000": 1000, "0x1F": 31, "0X1f": 31, "0b11": 3, "-0b11": -3,
    "0o17": 15, "017": 15, "08": 8, "0_7": 7, "0x": "0x", "0b2": "0b2", "+": "+", "-": "-", ".": ".", "1_": 1,
    "1.5": 1.5, ".5": 0.5, "1.": 1, "1e3": 1000, "1E-2": 0.01, "+12e03": 12000, ".5_0": 0.5, "._5": "._5",
    "1e400": "1e400", "1e-400": 0, "1.0": 1, "-1.0": -1, "1e21": 1e21,
    "9223372036854775807": 2**63 - 1, "9223372036854775808": float(2**63), "-9223372036854775808": -(2**63),
    "18446744073709551616": float(2**64),
    "22:22": "22:22", "2001-01-01": "2001-01-01", "2001-12-14t21:59:43.10Z": "2001-12-14t21:59:43.10Z",
    "nginx": "nginx", "1d": "1d", "100m": "100m", "1,000": "1,000", "=": "=", "<<": "<<", "0x1.8p1": "0x1.8p1",
    "Infinity": "Infinity", "nan": "nan", "٣": "٣",
}  # fmt: skip


@pytest.mark.parametrize("text", PLAIN)
def test_plain_scalars_get_the_types_of_json(text: str) -> None:
    """Plain text resolves to the value and the Python type that JSON would carry."""
    assert (PLAIN[text], type(PLAIN[text])) == (resolve_plain(text), type(resolve_plain(text)))


@pytest.mark.parametrize("text", [".inf", "-.Inf", "+.INF", ".nan", ".NaN"])
def test_values_that_json_lacks_are_refused(text: str) -> None:
    """Infinities and NaN have no JSON value."""
    with pytest.raises(ValueError, match="has no JSON value"):
        resolve_plain(text)


@pytest.mark.parametrize(
    ("tag", "text", "expected"),
    [
        ("str", "1", "1"), ("int", "0x10", 16), ("float", "3", 3), ("float", "1.5", 1.5), ("bool", "yes", True),
        ("null", "~", None), ("timestamp", "2001-01-01", "2001-01-01"), ("binary", "aG\nk=", "hi"),
        ("binary", "/w==", "\ufffd"), ("set", "x", "x"),
    ],
)  # fmt: skip
def test_core_tags_convert_scalars(tag: str, text: str, expected: object) -> None:
    """Core tags convert, others leave text."""
    assert expected == resolve_tagged(f"tag:yaml.org,2002:{tag}", text)
    assert text == resolve_tagged("!mine", text)


@pytest.mark.parametrize(("tag", "text"), [("int", "x"), ("bool", "1"), ("null", "x"), ("binary", "***")])
def test_tag_that_does_not_fit_is_refused(tag: str, text: str) -> None:
    """A value that is not of its tag is an error."""
    with pytest.raises(ValueError, match=r"tag|base64"):
        resolve_tagged(f"tag:yaml.org,2002:{tag}", text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", "a"), ("yes", "true"), ("off", "false"), ("010", "8"), ("1.10", "1.1"), ("5e8", "5e+08"),
        ("1e5", "100000"),
        ("1e-5", "1e-05"), (".inf", ".inf"), ("-.inf", "-.inf"), (".nan", ".nan"), ("1e300", ".inf"), ("0.1", "0.1"),
    ],
)  # fmt: skip
def test_keys_are_spelled_as_upstream_does(text: str, expected: str) -> None:
    """Keys that are not strings are spelled as sigs.k8s.io/yaml spells them (floats with 32 bits)."""
    assert expected == key_text(text, None, plain=True)
    assert text == key_text(text, None, plain=False)


@pytest.mark.parametrize("text", ["~", "", "9223372036854775808"])
def test_key_that_has_no_text_is_refused(text: str) -> None:
    """Null and integers beyond 64 bits cannot be keys."""
    with pytest.raises(ValueError, match="key"):
        key_text(text, None, plain=True)
