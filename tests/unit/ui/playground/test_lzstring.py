"""LZ-string: the expected values are those of LZ-string 1.5.0 itself."""

from __future__ import annotations

import pytest

from pyverno.errors import UsageError
from pyverno.ui.playground.lzstring import decompress


@pytest.mark.parametrize(
    ("compressed", "text"),
    [
        ("BYUwNmD2Q===", "hello"),
        ("Q===", ""),
        ("IZA=", "a"),
        ("IY18ZXTVA===", "a" * 63),
        (
            "BYS4NmD2AEDuBvAnMATagUcmoXg3AAe9AHoUcSaWeRZVdTbXfQ408y62+x519z73/wMFDhI0WPETJU6TNlz5CxUuUrVa9Rs1btO3Xv0HDR4ydNnzFy1euWgA",
            "héllo wörld ✔ 😀 " + "x" * 3000,
        ),
    ],
)
def test_texts_come_back(compressed: str, text: str) -> None:
    """Repetitions and characters beyond 16 bits are decompressed."""
    assert text == decompress(compressed)


@pytest.mark.parametrize("text", ["", "B", "BYUw", "%%", "////", "é", "BYUwNmD2Q==="[:6]])
def test_what_is_cut_or_no_compression_is_one_error(text: str) -> None:
    """Truncated input never gives a part of the text."""
    with pytest.raises(UsageError, match="damaged"):
        decompress(text)
