"""Base64, JSON and YAML: what is accepted, and Go's texts for what is not."""

import pytest

from pyverno.errors import EvaluationError
from tests.unit.lang.jmespath.hosts import evaluate


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("base64_decode('SGVs\nbG8=\r\n')", "Hello"),
        ("base64_decode('/+==')", "\ufffd"),
        ("base64_decode('4oI=')", "\ufffd\ufffd"),
        ("base64_decode('')", ""),
        ("parse_yaml('')", None),
        ("parse_yaml('a: 1\n---\nb: 2')", {"a": 1}),
        ("parse_yaml('a: 1\na: 2')", {"a": 2}),
        ("parse_yaml('1: x')", {"1": "x"}),
        ('parse_json(\'{"a": 1, "a": 2}\')', {"a": 2}),
        ("base64_decode(base64_encode('héllo'))", "héllo"),
    ],
)
def test_decoding(text, expected):
    """Line ends do not count; bytes that are not UTF-8 are replaced one by one."""
    assert expected == evaluate(text)


@pytest.mark.parametrize(
    ("text", "offset"),
    [("aGVsbG8", 4), ("a", 0), ("=", 0), ("ab=", 3), ("ab=c", 2), ("ab==c", 4), ("a-_b", 1), ("abc=d", 4), ("éé==", 0)],
)
def test_illegal_base64_names_the_byte(text, offset):
    """Offsets are Go's."""
    with pytest.raises(EvaluationError) as caught:
        evaluate(f"base64_decode('{text}')")
    assert f"illegal base64 data at input byte {offset}" == caught.value.message
