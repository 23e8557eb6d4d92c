"""`Warning` headers."""

from __future__ import annotations

from kubesandbox.http.warnings import warning_headers


def test_texts_that_no_header_can_hold_are_left_out() -> None:
    """Kubernetes drops them silently, too."""
    assert ['299 - "a"', '299 - "b \\"q\\" \\\\"'] == warning_headers(["a", "", "two\nlines", 'b "q" \\', "\x7f", "a"])


def test_many_long_texts_are_cut() -> None:
    """Together they may have 4096 characters; beyond that each has 256 at most, and the last ones are left out."""
    assert 4096 + 8 == len(warning_headers(["x" * 4096])[0])
    cut = warning_headers([f"{number:02}" + "x" * 1000 for number in range(30)])
    assert {256 + 8} == {len(header) for header in cut}
    assert 16 == len(cut)
