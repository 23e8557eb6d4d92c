"""Lists in JSON and YAML whose items are texts already, in the layout of a document that is written at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from pyverno.kube.json import JSON, encode_indent

__all__ = ["indented", "json_list"]

_STEP: Final = "  "


def indented(value: JSON, depth: int = 1) -> str:
    r"""Return a value as JSON for a place at a depth.

    >>> indented({"a": "<"})
    '{\n    "a": "<"\n  }'
    """
    return encode_indent(value, escape_html=False).replace("\n", "\n" + _STEP * depth)


def json_list(items: Iterable[str], depth: int = 0) -> Iterator[str]:
    r"""Yield a list of texts of `indented` at one more than the depth of the list.

    >>> "".join(json_list(["1", "2"])), "".join(json_list([]))
    ('[\n  1,\n  2\n]', '[]')
    """
    start = f"[\n{_STEP * (depth + 1)}"
    for item in items:
        yield start + item
        start = f",\n{_STEP * (depth + 1)}"
    yield "[]" if start.startswith("[") else f"\n{_STEP * depth}]"
