"""Documents and lists in JSON and YAML that are written item by item, in the layout of one that is written at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Final

from pyverno.kube.json import JSON, encode, encode_indent
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.sinks.records import json_text

__all__ = ["indented", "json_document", "json_list", "yaml_document"]

_STEP: Final = "  "


def indented(value: JSON, depth: int = 1, *, escape_html: bool = False) -> str:
    r"""Return a value as JSON for a place at a depth.

    >>> indented({"a": "<"})
    '{\n    "a": "<"\n  }'
    """
    text = json_text(encode_indent(value, escape_html=escape_html))
    return text.replace("\n", "\n" + _STEP * depth)


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


def json_document(fields: Mapping[str, JSON], *, escape_html: bool = False) -> Iterator[str]:
    r"""Yield an object with its keys sorted; a field that is an iterator is a list whose items come one by one.

    >>> "".join(json_document({"b": iter([1]), "a": 2}))
    '{\n  "a": 2,\n  "b": [\n    1\n  ]\n}'
    """
    start = "{\n"
    for key, value in sorted(fields.items()):
        yield f"{start}{_STEP}{encode(key)}: "
        if isinstance(value, Iterator):
            yield from json_list((indented(item, 2, escape_html=escape_html) for item in value), 1)
        else:
            yield indented(value, escape_html=escape_html)
        start = ",\n"
    yield "\n}"


def yaml_document(fields: Mapping[str, JSON]) -> Iterator[str]:
    r"""Yield the same as YAML.

    >>> "".join(yaml_document({"b": iter([1]), "a": iter([])}))
    'a: []\nb:\n- 1\n'
    """
    for key, value in sorted(fields.items()):
        first = next(value, value) if isinstance(value, Iterator) else value
        if first is value:
            yield dump_yaml({key: [] if isinstance(value, Iterator) else value})
        else:
            yield f"{key}:\n"
            yield from (dump_yaml([item]) for item in chain([first], value))
