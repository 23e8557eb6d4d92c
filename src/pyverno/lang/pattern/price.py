"""The cost of a condition beyond reading its sides once: wildcards that meet every item of the other side.

Membership compares items without wildcards by a set, so only items with wildcards cost a comparison each.
"""

from __future__ import annotations

from pyverno.kube.json import JSON, go_text
from pyverno.kube.wildcard import has_wildcard, match_price

__all__ = ["condition_price"]

_FREE_PAIRS = 10_000
_FREE_CHARACTERS = 1_024
_FREE_ITEMS = 64
_CHARACTERS_PER_STEP = 16
_SCANNED_PER_STEP = 1_024


def condition_price(key: JSON, value: JSON) -> int:
    """Return the steps that a condition on these two sides may take; short texts and lists are free.

    >>> condition_price("nginx", "nginx*"), condition_price(["a*"] * 1000, ["b"] * 1000)
    (0, 1001101)
    """
    if isinstance(key, str):
        return _text_price(key, value)
    if not isinstance(key, list) or not isinstance(value, (list, str)) or (_is_short(key) and _is_short(value)):
        return 0
    keys = _texts(key)
    values = _texts(value) if isinstance(value, list) else [value]
    sizes = sum(map(len, keys)), sum(map(len, values))
    steps = sum(size // _CHARACTERS_PER_STEP for size in sizes if size > _FREE_CHARACTERS)
    if isinstance(value, str):
        # it may be a list in JSON; each of its wildcards stands for a pattern at most
        pairs = _wildcards(keys) * len(value) + (value.count("*") + value.count("?")) * len(keys)
    else:
        pairs = _wildcards(keys) * len(values) + _wildcards(values) * len(keys)
    if not pairs:
        return steps
    scanned = (_wildcards(keys) * sizes[1] + _wildcards(values) * sizes[0]) // _SCANNED_PER_STEP
    single = match_price("".join(text for text in (*keys, *values) if "?" in text), " " * max(sizes))
    return steps + (pairs if pairs > _FREE_PAIRS else 0) + scanned + single


def _text_price(key: str, value: JSON) -> int:
    if isinstance(value, str):
        size = len(key) + len(value)
        return 0 if size <= _FREE_CHARACTERS else size // _CHARACTERS_PER_STEP + match_price(key, value)
    return condition_price([key], value) if isinstance(value, list) else len(key) // _FREE_CHARACTERS


def _is_short(side: list[JSON] | str) -> bool:
    """Return whether so few texts, and so short ones, are on a side that no comparison with such another is dear."""
    if len(side) > _FREE_ITEMS:
        return False
    try:
        return len(side if isinstance(side, str) else "".join(side)) <= _FREE_CHARACTERS
    except TypeError:  # an item is no text
        return False


def _texts(items: list[JSON]) -> list[str]:
    return [item if isinstance(item, str) else go_text(item) for item in items]


def _wildcards(texts: list[str]) -> int:
    return sum(map(has_wildcard, texts))
