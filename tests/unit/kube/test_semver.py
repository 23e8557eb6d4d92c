"""Versions and ranges as blang/semver has them."""

import pytest

from pyverno.errors import ValueSyntaxError
from pyverno.kube.semver import parse_range, parse_version, try_version


@pytest.mark.parametrize("text", ["", "1.2", "v1.2.3", "01.2.3", "1.2.3-", "1.2.3-01", "1.2.3+", "1.2.٣", "1_0.2.3"])
def test_only_three_numbers_make_a_version(text):
    """No prefix, no leading zeros, no other digits."""
    assert try_version(text) is None


def test_precedence_orders_versions():
    """Pre-releases come first, numbers before words, build metadata does not count."""
    ordered = ["1.0.0-1", "1.0.0-2", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0", "1.2.0", "1.10.0"]
    assert ordered == [str(version) for version in sorted(map(parse_version, reversed(ordered)))]
    assert parse_version("1.0.0+a") == parse_version("1.0.0+b")


@pytest.mark.parametrize(
    ("text", "version", "expected"),
    [
        (">=4.1.x", "4.1.3", True),
        (">=1.2.3 <2.0.0 || >3.0.0", "2.5.0", False),
        (">=1.2.3 <2.0.0 || >3.0.0", "3.0.1", True),
        ("1.x", "1.9.9", True),
        ("!1.x", "1.9.9", False),
        ("<=1.2.x", "1.2.9", True),
        (">= 1.2.3", "1.2.3", True),
        (">=1.2.2", "1.2.3-rc1", True),
        ("!=1.2.3", "1.2.3", False),
    ],
)
def test_ranges(text, version, expected):
    """Comparators, alternatives, wildcards."""
    assert expected is parse_range(text)(parse_version(version))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("^1.0.0", 'Could not parse Range "^1.0.0": Could not parse comparator "^" in "^1.0.0"'),
        (
            "1.2",
            'Could not parse Range "1.2": Could not parse version "1.2" in "1.2": No Major.Minor.Patch elements found',
        ),
        ("||1.0.0", 'Could not parse Range "||1.0.0": Could not parse comparator "||" in "||1.0.0"'),
        ("1.0.0 ||", "Last element in range is '||'"),
        ("abc", 'Could not get version from string: "abc"'),
    ],
)
def test_errors_have_blangs_texts(text, message):
    """They reach users through semver_compare."""
    with pytest.raises(ValueSyntaxError) as caught:
        parse_range(text)
    assert message == str(caught.value)
