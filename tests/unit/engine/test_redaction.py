"""Texts of errors show variables as the policy has them written, in whatever form a text quotes their values."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis.strategies import integers, text

from pyverno.engine.redaction import redact_texts, redact_values
from pyverno.kube.json import encode
from pyverno.lang.template import compile_template

LONG = "s3cret-" * 30


@pytest.mark.parametrize(
    ("value", "message", "expected"),
    [
        ("s3cret", 'pods "s3cret" not found', 'pods "{{ x }}" not found'),
        ("S3cret", "https://s3cret.example.com/ refused", "https://{{ x }}.example.com/ refused"),
        ("s3 cr/et", "path /api/s3%20cr%2Fet is not known", "path /api/{{ x }} is not known"),
        ("s3 cr/et", "path /api/s3%20cr/et is not known", "path /api/{{ x }} is not known"),
        ('s3"c\nret', 'object named "s3\\"c\\nret" is gone', 'object named "{{ x }}" is gone'),
        (LONG, f"`{LONG[:50]}...` is too long", "`{{ x }}...` is too long"),
        ("pw", "ConfigMap `a/pw` in pwd", "ConfigMap `a/{{ x }}` in pwd"),
        ("", "nothing is said", "nothing is said"),
        ("s3cret", "s3crets3cret", "{{ x }}{{ x }}"),
        ("registry.test/a/secret:v5", "cannot read `registry.test/a/secret:v5`", "cannot read `{{ x }}`"),
        (f"{LONG}?{LONG}", f"`{LONG}?{LONG}` is not known", "`{{ x }}` is not known"),
        (f"{LONG}?{LONG}", f"`{LONG}?{LONG[:40]}...` is not known", "`{{ x }}...` is not known"),
    ],
)
def test_a_value_is_shown_as_its_variable(value: str, message: str, expected: str) -> None:
    """As it is, in JSON, in a URL, in small letters, and cut off."""
    assert expected == redact_values(message, compile_template("/api/{{ x }}"), f"/api/{value}")


@given(value=text(alphabet='aB1:/?% "\\\n-é', min_size=17, max_size=600), cut=integers(min_value=16))
def test_nothing_of_a_value_stays(value: str, cut: int) -> None:
    """Whatever form a text quotes, and wherever it ends."""
    for form in (value, quote(value), quote(value, safe=""), encode(value)[1:-1]):
        message = f"<{form[:cut]}>"
        assert redact_values(message, compile_template("{{ x }}"), value) == "<{{ x }}>"


def test_what_would_take_long_to_look_through_is_not_shown() -> None:
    """Values with many texts, and long messages, are left out whole."""
    texts = [f"s3cret-{number}" for number in range(64)]
    assert redact_texts("no s3cret-9 here", texts, "x") == "no (8 characters) here"
    hidden = "an error of 16 characters that shows values"
    assert redact_texts("no s3cret-9 here", [*texts, "one more"], "x") == hidden
    assert redact_texts("x" * 8192, ["s3cret"], "x") == "x" * 8192
    assert redact_texts("x" * 8193, ["s3cret"], "x") == "an error of 8193 characters that shows values"
