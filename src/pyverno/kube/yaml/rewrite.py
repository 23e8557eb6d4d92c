"""Texts of documents changed to hold other values: what stays keeps its comments, quotes and order.

Removed entries are cut out, new ones are inserted, and maps and lists that moved keep their text, at another
indentation. None is returned for what is not supported (aliases, entries of flow maps that change), and for a result
that would not read as the new value: the caller then writes the document anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from pyverno.errors import DocumentError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.documents import load_documents
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.value import dataclass

__all__ = ["rewrite"]

Edit: TypeAlias = tuple[int, int, str]
"""The characters from `start` to `end` become a text."""

_INDENT: Final = 2


class _NotPossibleError(Exception):
    """The text has a form that is not edited here."""


def rewrite(text: str, old: Sequence[JSON], new: Sequence[JSON]) -> str | None:
    """Return a text whose documents have new values, None where that is not possible by edits.

    `old` are the values of the documents of `text`; parts of `new` that are the same objects are moved with their text.

    >>> old = {"a": 1, "b": {"c": 2}}
    >>> print(rewrite("a: 1  # one\\nb: # two\\n  c: 2\\n", [old], [{"a": 1, "d": {"e": old["b"]}}]), end="")
    a: 1  # one
    d:
      e:
        c: 2
    """
    if "&" in text and any(each in text for each in ("*", "<<")):
        return None
    try:
        edits = _Editor(text, old).edits(new)
    except (_NotPossibleError, RecursionError):
        return None
    pieces: list[str] = []
    position = 0
    for start, end, replacement in sorted(edits):
        if start < position:
            return None
        pieces += (text[position:start], replacement)
        position = end
    changed = "".join((*pieces, text[position:]))
    try:
        found = [document.value for document in load_documents(changed)]
    except DocumentError:
        return None
    return changed if found == list(new) else None


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry of a block map: its key and value nodes, and where its lines begin and end."""

    key: Any
    value: Any
    start: int
    end: int


class _Editor:
    """Compares the nodes of a text with new values."""

    def __init__(self, text: str, old: Sequence[JSON]) -> None:
        import yaml

        self._text = text
        self._starts = [0]
        for line in text.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        if any(each in text for each in "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\r\ufeff"):
            raise _NotPossibleError  # lines of other programs are other lines
        nodes = [node for node in yaml.compose_all(text, Loader=yaml.CSafeLoader) if node is not None]
        if len(nodes) != len(old):
            raise _NotPossibleError
        self._pairs = list(zip(nodes, old, strict=True))
        self._known: dict[int, Any] = {}
        for node, value in self._pairs:
            self._note(node, value)

    def edits(self, new: Sequence[JSON]) -> list[Edit]:
        """Return the edits that make the new values of the old ones."""
        if len(new) != len(self._pairs):
            raise _NotPossibleError
        found: list[Edit] = []
        for (node, old), value in zip(self._pairs, new, strict=True):
            found += self._change(node, old, value)
        return found

    # -------------------------------------------------------------------------------------------------------- changes

    def _change(self, node: Any, old: JSON, new: JSON) -> Iterator[Edit]:
        if old is new or old == new:
            return
        match old, new:
            case dict(), dict() if not node.flow_style and node.value:
                yield from self._change_map(node, old, new)
            case list(), list() if len(old) == len(new) and not node.flow_style:
                for child, before, after in zip(node.value, old, new, strict=True):
                    yield from self._change(child, before, after)
            case _:
                raise _NotPossibleError

    def _change_map(self, node: Any, old: JSONObject, new: JSONObject) -> Iterator[Edit]:
        entries = {each.key.value: each for each in map(self._entry, *zip(*node.value, strict=True))}
        if entries.keys() != old.keys():
            raise _NotPossibleError
        column = node.value[0][0].start_mark.column
        kept = [key for key in new if key in entries]
        if kept != [key for key in entries if key in new] or not kept:
            raise _NotPossibleError
        for key in old.keys() - new.keys():
            yield self._cut(entries[key])
        before: str | None = None
        waiting: list[str] = []
        for key, value in new.items():
            if key not in entries:
                waiting.append(self._render_entry(key, value, column))
                continue
            if waiting:
                yield self._insert(before, entries, key, waiting, column)
                waiting = []
            yield from self._change_value(entries[key], old[key], value, column)
            before = key
        if waiting:
            yield self._insert(before, entries, None, waiting, column)

    def _change_value(self, entry: _Entry, old: JSON, new: JSON, column: int) -> list[Edit]:
        try:
            return [*self._change(entry.value, old, new)]
        except _NotPossibleError:
            rendered = self._render_entry(entry.key.value, new, column)
            start = self._index(entry.key.start_mark)
            return [(start, self._line_end(entry.end), rendered.lstrip(" ").removesuffix("\n"))]

    def _cut(self, entry: _Entry) -> Edit:
        """Take an entry out with its lines; comments above it stay."""
        first = self._index(entry.key.start_mark)
        line = self._line_start(first)
        if self._text[line:first].strip():
            raise _NotPossibleError  # the first of a list's item is behind its dash
        return line, min(self._line_end(entry.end) + 1, len(self._text)), ""

    def _insert(
        self, before: str | None, entries: Mapping[str, _Entry], after: str | None, parts: Sequence[str], column: int
    ) -> Edit:
        text = "".join(parts)
        if before is not None:
            end = self._line_end(entries[before].end)
            return end, end, f"\n{text.removesuffix(chr(10))}"
        assert after is not None  # noqa: S101 - some entry of the map is kept
        start = self._index(entries[after].key.start_mark)
        return start, start, f"{text.lstrip(' ')}{' ' * column}"

    # ------------------------------------------------------------------------------------------------------ rendering

    def _render_entry(self, key: str, value: JSON, column: int) -> str:
        """Return the lines of an entry of a block map at a column."""
        pad = " " * column
        name = dump_yaml({key: None}).partition(": null")[0] if "\n" not in key else None
        if name is None:
            raise _NotPossibleError
        if not isinstance(value, dict | list) or not value:
            lines = dump_yaml({key: value}, sort_keys=False)
            return "".join(f"{pad}{line}\n" if line else "\n" for line in lines.splitlines())
        known = self._known.get(id(value))
        if known is not None and known.flow_style:
            return f"{pad}{name}: {self._source(known)}\n"
        deeper = column if isinstance(value, list) else column + _INDENT
        return f"{pad}{name}:\n{self._render(value, deeper)}"

    def _render(self, value: JSON, column: int) -> str:
        """Return the lines of a map or list at a column; one that is in the text is taken from there."""
        known = self._known.get(id(value))
        if known is not None and not known.flow_style:
            return self._shift(known, column)
        if isinstance(value, dict):
            return "".join(self._render_entry(key, item, column) for key, item in value.items())
        if not isinstance(value, list):
            raise _NotPossibleError
        return "".join(self._render_item(item, column) for item in value)

    def _render_item(self, item: JSON, column: int) -> str:
        pad = " " * column
        if not isinstance(item, dict | list) or not item:
            return "".join(f"{pad}{line}\n" for line in dump_yaml([item]).splitlines())
        known = self._known.get(id(item))
        if known is not None and known.flow_style:
            return f"{pad}- {self._source(known)}\n"
        lines = self._render(item, column + _INDENT)
        first = len(lines) - len(lines.lstrip(" \n"))
        if lines[first:].startswith("#"):
            raise _NotPossibleError  # a comment is where the dash must be
        return f"{pad}- {lines[first:]}"

    def _shift(self, node: Any, column: int) -> str:
        """Return the text of a block map or list, moved to another column."""
        start = self._index(node.start_mark)
        lines = f"{' ' * node.start_mark.column}{self._text[start : self._line_end(self._end(node))]}".split("\n")
        delta = column - node.start_mark.column
        found = []
        for line in lines:
            if delta < 0 and line.strip() and line[:-delta].strip():
                raise _NotPossibleError
            found.append(f"{' ' * delta}{line}" if delta > 0 and line.strip() else line[-delta:] if delta < 0 else line)
        return "\n".join(found) + "\n"

    def _source(self, node: Any) -> str:
        text = self._text[self._index(node.start_mark) : self._index(node.end_mark)]
        if "\n" in text:
            raise _NotPossibleError
        return text

    # ------------------------------------------------------------------------------------------------------ positions

    def _note(self, node: Any, value: JSON) -> None:
        if isinstance(value, dict):
            self._known[id(value)] = node
            for key, child in node.value:
                self._note(child, value.get(key.value))
        elif isinstance(value, list):
            self._known[id(value)] = node
            for child, item in zip(node.value, value, strict=True):
                self._note(child, item)

    def _entry(self, key: Any, value: Any) -> _Entry:
        return _Entry(key, value, self._index(key.start_mark), max(self._index(key.end_mark), self._end(value)))

    def _end(self, node: Any) -> int:
        """Return the index behind the last character of a node that is no comment and no space."""
        import yaml

        if isinstance(node, yaml.ScalarNode) or node.flow_style or not node.value:
            end = self._index(node.end_mark)
            start = self._index(node.start_mark)
            while end > start and self._text[end - 1].isspace():
                end -= 1
            return end
        last = node.value[-1]
        return max(self._end(each) for each in (last if isinstance(last, tuple) else (last,)))

    def _index(self, mark: Any) -> int:
        index: int = self._starts[mark.line] + mark.column
        return index

    def _line_start(self, index: int) -> int:
        return self._text.rfind("\n", 0, index) + 1

    def _line_end(self, index: int) -> int:
        found = self._text.find("\n", index)
        return len(self._text) if found < 0 else found
