"""Texts of errors show variables as the policy has them written, in whatever form a text quotes their values."""

from __future__ import annotations

import pytest

from pyverno.engine.redaction import redact_values
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
    ],
)
def test_a_value_is_shown_as_its_variable(value: str, message: str, expected: str) -> None:
    """As it is, in JSON, in a URL, in small letters, and cut off."""
    assert expected == redact_values(message, compile_template("/api/{{ x }}"), f"/api/{value}")
