"""Values beside constants."""

from __future__ import annotations

import pytest

from pyverno.compiler.equivalence.variations import numbers_near, texts_near


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1Gi", {"0Gi", "2Gi", "1024Mi"}),
        ("1h", {"60m", "2h", "3600", "3601"}),
        ("5", {"4", "6", "5000m", "5s"}),
        ("1.9.0", {"1.10.0", "1.8.0", "1.9", "v1.9.0"}),
        ("web", {"webx", "xweb", "WEB", "we", "*eb", "we?"}),
        ("", set()),
    ],
)
def test_a_text_has_the_neighbours_that_distinguish_conditions(text: str, expected: set[str]) -> None:
    """Both sides of a boundary, equal amounts, wildcards, other case."""
    assert expected <= {*texts_near(text)}


def test_numbers_come_with_the_ones_beside_them() -> None:
    """Texts of numbers count, truth values do not."""
    assert [0, 1, 2, 8, 9, 10] == numbers_near([1, "9", True, "x", None])
