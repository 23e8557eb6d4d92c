"""Values beside a constant of a policy: those on both sides of a boundary, and other ways to write the same amount."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from pyverno.kube.json import JSON

__all__ = ["numbers_near", "texts_near"]

_AMOUNT: Final = re.compile(r"(\d{1,12})(m|k|M|G|Ki|Mi|Gi|h|s|ms|%)?")
_VERSION: Final = re.compile(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})")
_SMALLER: Final = {
    "Gi": ("Mi", 1024),
    "Mi": ("Ki", 1024),
    "G": ("M", 1000),
    "M": ("k", 1000),
    "h": ("m", 60),
    "m": ("s", 60),
}
_SECONDS: Final = {"h": 3600, "s": 1}


def texts_near(text: str) -> Iterator[str]:
    """Yield texts that distinguish a condition with this constant from a slightly different one.

    >>> [*texts_near("1h")]
    ['1h', '0h', '2h', '60m', '3600', '3601']
    >>> [*texts_near("ab")]
    ['ab', 'abx', 'xab', 'AB', 'a', '*b', 'a?', 'ab,x']
    """
    yield text
    if (amount := _AMOUNT.fullmatch(text)) is not None:
        number, unit = int(amount[1]), amount[2] or ""
        yield from (f"{each}{unit}" for each in (number - 1, number + 1) if each >= 0)
        if unit in _SMALLER:
            smaller, factor = _SMALLER[unit]
            yield f"{number * factor}{smaller}"
        if unit in _SECONDS:
            yield from (str(number * _SECONDS[unit]), str(number * _SECONDS[unit] + 1))
        if not unit:
            yield from (f"{number * 1000}m", f"{number + 1}k", f"{number}s", f"{number + 1}.5")
        return
    if (version := _VERSION.fullmatch(text)) is not None:
        major, minor, patch = (int(each) for each in version.groups())
        yield from (
            f"{major}.{minor + 1}.{patch}",
            f"{major}.{max(minor - 1, 0)}.{patch}",
            f"{major}.{minor}",
            f"v{text}",
        )
        return
    if text and not any(each.isalnum() for each in text):
        yield from (f"a{text}b", f"a{text}b{text}c")  # what is split or searched by it
    if text:
        yield from (f"{text}x", f"x{text}", text.swapcase(), text[:-1], f"*{text[1:]}", f"{text[:-1]}?", f"{text},x")


def numbers_near(constants: Iterable[JSON]) -> list[int]:
    """Return the whole numbers among constants, texts of numbers too, with the ones beside them.

    >>> numbers_near([2, "10", "x", True])
    [1, 2, 3, 9, 10, 11]
    """
    found: dict[int, None] = {}
    for each in constants:
        is_number = isinstance(each, int) and not isinstance(each, bool)
        if is_number or (isinstance(each, str) and each.isdecimal() and len(each) < 10):
            found.update(dict.fromkeys((int(each) - 1, int(each), int(each) + 1)))
    return [*found]
