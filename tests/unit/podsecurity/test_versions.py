"""Versions of the standards."""

import pytest

from pyverno.errors import ValueSyntaxError
from pyverno.podsecurity.versions import LATEST, parse_version, since


@pytest.mark.parametrize(
    ("text", "expected"), [("", LATEST), ("latest", LATEST), ("v1.0", since(0)), ("v1.34", since(34))]
)
def test_a_version_is_latest_or_v1_n(text, expected):
    """The empty text means latest."""
    assert parse_version(text) == expected


@pytest.mark.parametrize("text", ["1.24", "v1", "v2.0", "v1.01", "v1.24.1", "v1.24\n", "Latest", "v1.-1", "v1.٣"])
def test_any_other_text_is_refused(text):
    """The error has the text of Kubernetes."""
    with pytest.raises(ValueSyntaxError, match=r'must be "latest" or "v1\.x"'):
        parse_version(text)


def test_latest_is_newer_than_every_number():
    """Numbered versions order by number, not by text."""
    assert sorted([LATEST, since(100), since(9), since(25)]) == [since(9), since(25), since(100), LATEST]
