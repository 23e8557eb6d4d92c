"""Tests of `schema.formats`."""

from __future__ import annotations

import pytest

from kubesandbox.schema.formats import format_test


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date-time", "2024-01-02T03:04:05.6Z", "2024-01-02"),
        ("date", "2024-01-02", "2024-13-02"),
        ("duration", "22 ns", "x"),
        ("duration", "1h3m", "1x"),
        ("byte", "eA==", "%"),
        ("uri", "https://a/b", "a b"),
        ("email", "a@b", "a"),
        ("hostname", "a.b", "-a"),
        ("ipv4", "1.2.3.4", "::1"),
        ("ipv6", "::1", "1.2.3.4"),
        ("cidr", "10.0.0.0/8", "10.0.0.0"),
        ("mac", "00:11:22:33:44:55", "00:11"),
        ("uuid", "00000000-0000-0000-0000-000000000000", "0"),
        ("uuid4", "00000000-0000-4000-8000-000000000000", "00000000-0000-3000-8000-000000000000"),
        ("hexcolor", "#fff", "#ff"),
        ("k8s-short-name", "a-b", "a.b"),
    ],
)
def test_a_format_separates_good_from_bad(name: str, good: str, bad: str) -> None:
    """Each format has a valid and an invalid value."""
    test = format_test(name)
    assert test is not None
    assert (True, False) == (test(good), test(bad))
