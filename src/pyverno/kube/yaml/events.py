"""Build a JSON value, or a tree of positions, from the text of one YAML document with libyaml's parse events.

The builder is iterative (depth is limited by number, not by Python's stack) and shares aliased values instead of
copying them. Errors are a `Fault` with line and column inside the given text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import yaml
from yaml.events import (
    AliasEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from pyverno.kube.json import JSON
from pyverno.kube.yaml.scalars import Scalar, key_text, resolve_plain, resolve_tagged

__all__ = [
    "MAX_ALIAS_BYTES",
    "MAX_ALIAS_RATIO",
    "MAX_DEPTH",
    "MAX_FLOW_DEPTH",
    "Fault",
    "Position",
    "build_positions",
    "build_value",
]

MAX_DEPTH: Final = 10_000
"""Levels of nesting that a document may have."""

MAX_FLOW_DEPTH: Final = 500
"""Levels that may be written in brackets and braces: libyaml looks at every open one for each node."""

MAX_ALIAS_RATIO: Final = 10
"""Alias expansion may produce at most this many times the size of the document's text."""

MAX_ALIAS_BYTES: Final = 3 * 1024 * 1024
"""Alias expansion may produce at most this many bytes."""

_MERGE_TAG: Final = "tag:yaml.org,2002:merge"


class Fault(Exception):  # noqa: N818  # an internal carrier; documents.py turns it into DocumentError
    """A document that cannot be read: reason, and line and column in its text counted from 1."""

    def __init__(self, reason: str, line: int, column: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.column = column


class Position:
    """The location of one node: its line and column, those of its key, and its children by key or index."""

    __slots__ = ("children", "column", "key_column", "key_line", "line")

    def __init__(self, line: int, column: int) -> None:
        self.line = line
        self.column = column
        self.key_line = line
        self.key_column = column
        self.children: dict[str | int, Position] = {}

    def at_key(self, line: int, column: int) -> Position:
        """The same node under a key at `line`, `column`."""
        node = Position(self.line, self.column)
        node.key_line, node.key_column, node.children = line, column, self.children
        return node


# ---------------------------------------------------------------------------------------------------------- events


def _parser(text: str) -> Any:
    """libyaml's parser, or PyYAML's own where it was built without libyaml: same events, slower."""
    try:
        from yaml._yaml import CParser
    except ImportError:
        return yaml.SafeLoader(text)
    return CParser(text)


def _events(text: str) -> Iterator[Any]:
    """libyaml's events of one document, without stream and document marks."""
    try:
        parser = _parser(text)
        parser.get_event()
        if type(parser.get_event()) is yaml.StreamEndEvent:
            return
        while True:
            event = parser.get_event()
            if type(event) is yaml.DocumentEndEvent:
                break
            yield event
        extra = parser.get_event()
    except yaml.MarkedYAMLError as error:
        raise _marked_fault(error) from None
    except yaml.YAMLError as error:
        raise Fault(str(getattr(error, "reason", None) or error), 1, 1) from None
    if type(extra) is not yaml.StreamEndEvent:
        raise _fault("a second document starts here without `---`", extra)


def _fault(reason: str, event: Any) -> Fault:
    mark = event.start_mark
    return Fault(reason, mark.line + 1, mark.column + 1)


# libyaml's context and problem (parts of its texts) -> our error text; `^` where the error points at the start
# of the construct.
_PROBLEMS: Final[tuple[tuple[str, str, str], ...]] = (
    ("quoted scalar", "unexpected end of stream", "^the quote that opens here is never closed"),
    ("quoted scalar", "document indicator", "^the quote that opens here is not closed before the document ends"),
    ("quoted scalar", "unknown escape character", "unknown escape sequence in a double-quoted string"),
    ("quoted scalar", "invalid Unicode character escape", "the escape sequence is not a Unicode character"),
    ("quoted scalar", "expected hexdecimal number", "the escape sequence lacks hexadecimal digits"),
    ("", "cannot start any token", "no value can start with this character (tabs cannot indent; text needs quotes)"),
    ("", "tab character", "a tab cannot be used for indentation"),
    ("", "mapping values are not allowed", "`:` is not allowed here (missing quotes or wrong indentation?)"),
    ("simple key", "could not find expected ':'", "^expected `:` after this key"),
    ("", "block sequence entries are not allowed", "`- ` is not allowed here (wrong indentation?)"),
    ("", "mapping keys are not allowed", "`? ` is not allowed here"),
    (
        "block mapping",
        "did not find expected key",
        "expected a key here (wrong indentation or a stray quote or bracket?)",
    ),
    ("block collection", "expected '-' indicator", "expected `- ` here (wrong indentation?)"),
    ("flow mapping", "expected ',' or '}'", "^the `{` that opens here is not closed (expected `,` or `}`)"),
    ("flow sequence", "expected ',' or ']'", "^the `[` that opens here is not closed (expected `,` or `]`)"),
    ("flow node", "expected node content", "expected a value here"),
    ("block scalar", "leading", "a block text starts with blank lines that are indented deeper than its text"),
    ("alias", "expected alphabetic", "^`*` starts an alias and needs a name (text that starts with `*` needs quotes)"),
    (
        "anchor",
        "expected alphabetic",
        "^`&` starts an anchor and needs a name (text that starts with `&` needs quotes)",
    ),
    ("", "undefined tag handle", "undefined tag prefix"),
    ("", "expected <document start>", "expected `---` or the end of the document here"),
    ("directive", "", "^this line starts with `%` and is not a directive that YAML knows"),
)


def _marked_fault(error: yaml.MarkedYAMLError) -> Fault:
    """libyaml's error with our wording; unknown problems keep theirs."""
    context, problem = error.context or "", error.problem or "the text is not YAML"
    mark, reason = error.problem_mark or error.context_mark, problem
    for in_context, in_problem, text in _PROBLEMS:
        if in_context in context and in_problem in problem:
            reason = text.removeprefix("^")
            if text.startswith("^") and error.context_mark:
                mark = error.context_mark
            break
    if mark is None:
        return Fault(reason, 1, 1)
    return Fault(reason, mark.line + 1, mark.column + 1)


# ---------------------------------------------------------------------------------------------------------- values


class _Frame:
    """A collection that is being filled."""

    __slots__ = ("anchor", "is_flow", "is_map", "key", "key_event", "lines", "merging", "start_weight", "value")

    def __init__(self, value: Any, *, is_map: bool, is_flow: bool, anchor: str | None, start_weight: int) -> None:
        self.value = value
        self.is_map = is_map
        self.is_flow = is_flow
        self.anchor = anchor
        self.start_weight = start_weight
        self.key: str | None = None
        self.key_event: Any = None
        self.merging = False
        self.lines: dict[str, int] = {}


class _Anchors:
    """Anchored values of one document, with the size that each use of them adds."""

    __slots__ = ("limit", "open", "spent", "values")

    def __init__(self, size: int) -> None:
        self.values: dict[str, tuple[JSON, int]] = {}
        self.open: set[str] = set()
        self.limit = min(size * MAX_ALIAS_RATIO, MAX_ALIAS_BYTES)
        self.spent = 0

    def use(self, event: Any) -> tuple[JSON, int]:
        name = event.anchor
        if name in self.open:
            raise _fault(f"anchor `{name}` contains itself", event)
        if name not in self.values:
            raise _fault(f"unknown anchor `{name}`", event)
        value, weight = self.values[name]
        self.spent += weight
        if self.spent > self.limit:
            raise _fault(
                f"aliases expand to more than {self.limit} bytes "
                f"({MAX_ALIAS_RATIO} times the document, at most {MAX_ALIAS_BYTES})",
                event,
            )
        return value, weight


def build_value(text: str, *, unique_keys: bool = True) -> JSON:
    """The JSON value of the one document in `text`; None when it is empty.

    Raises Fault. With `unique_keys` a mapping that names a key twice is a fault, else the last one counts.

    >>> build_value("a: [1, yes, ~]")
    {'a': [1, True, None]}
    """
    scalars: dict[str, Scalar] = {}
    anchors = _Anchors(len(text))
    stack: list[_Frame] = []
    frame: _Frame | None = None
    root: JSON = None
    weight = flow = 0
    value: Any
    for event in _events(text):
        kind = type(event)
        if kind is ScalarEvent:
            raw = event.value
            weight += len(raw) + 2
            if frame is not None and frame.is_map and frame.key_event is None:
                _take_key(frame, event, unique_keys)
                if event.anchor:
                    anchors.values[event.anchor] = (_scalar(event, scalars), len(raw) + 2)
                continue
            value = _scalar(event, scalars)
            if event.anchor:
                anchors.values[event.anchor] = (value, len(raw) + 2)
        elif kind is MappingStartEvent or kind is SequenceStartEvent:
            if frame is not None and frame.is_map and frame.key_event is None:
                raise _fault("a mapping key must be a scalar", event)
            if len(stack) >= MAX_DEPTH:
                raise _fault(f"the document is nested deeper than {MAX_DEPTH} levels", event)
            is_map = kind is MappingStartEvent
            is_flow = bool(event.flow_style)
            flow += is_flow
            if flow > MAX_FLOW_DEPTH:
                raise _fault(f"the document is nested deeper than {MAX_FLOW_DEPTH} levels of brackets", event)
            frame = _Frame(
                {} if is_map else [], is_map=is_map, is_flow=is_flow, anchor=event.anchor, start_weight=weight
            )
            weight += 2
            if event.anchor:
                anchors.open.add(event.anchor)
            stack.append(frame)
            continue
        elif kind is MappingEndEvent or kind is SequenceEndEvent:
            done = stack.pop()
            flow -= done.is_flow
            value = done.value
            if done.anchor:
                anchors.open.discard(done.anchor)
                anchors.values[done.anchor] = (value, weight - done.start_weight)
            frame = stack[-1] if stack else None
        elif kind is AliasEvent:
            value, added = anchors.use(event)
            weight += added
            if frame is not None and frame.is_map and frame.key_event is None:
                _take_alias_key(frame, event, value, unique_keys)
                continue
        else:
            raise _fault("unexpected content", event)
        if frame is None:
            root = value
        elif frame.is_map:
            if frame.merging:
                _merge(frame, value)
            else:
                frame.value[frame.key] = value
            frame.key_event = None
        else:
            frame.value.append(value)
    return root


def _scalar(event: Any, scalars: dict[str, Scalar]) -> Scalar:
    text: str = event.value
    try:
        if event.tag:
            return resolve_tagged(event.tag, text)
        if not event.implicit[0]:
            return text
        if text in scalars:
            return scalars[text]
        value = scalars[text] = resolve_plain(text)
    except ValueError as error:
        raise _fault(str(error), event) from None
    return value


def _is_merge(event: Any) -> bool:
    return event.value == "<<" and (event.tag == _MERGE_TAG or (not event.tag and event.implicit[0]))


def _take_key(frame: _Frame, event: Any, unique_keys: bool) -> None:
    frame.key_event = event
    frame.merging = _is_merge(event)
    if frame.merging:
        return
    try:
        key = key_text(event.value, event.tag, plain=event.implicit[0])
    except ValueError as error:
        raise _fault(str(error), event) from None
    _set_key(frame, key, event, unique_keys)


def _take_alias_key(frame: _Frame, event: Any, value: JSON, unique_keys: bool) -> None:
    if value is None or isinstance(value, dict | list):
        raise _fault("a mapping key must be a scalar", event)
    text = value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else f"{value}"
    frame.key_event, frame.merging = event, False
    _set_key(frame, text, event, unique_keys)


def _set_key(frame: _Frame, key: str, event: Any, unique_keys: bool) -> None:
    if unique_keys:
        if key in frame.lines:
            raise _fault(f"key `{key}` is already set on line {frame.lines[key]}", event)
        frame.lines[key] = event.start_mark.line + 1
    frame.key = key


def _merge(frame: _Frame, value: JSON) -> None:
    """`<<`: keys of one mapping, or of several of which earlier ones win, are set where the merge is."""
    # go-yaml v2: a merge overwrites keys that were written before it and is overwritten by those that follow.
    sources = value if isinstance(value, list) else [value]
    for source in reversed(sources):
        if not isinstance(source, dict):
            raise _fault("`<<` needs a mapping or a list of mappings", frame.key_event)
        frame.value.update(source)


# ------------------------------------------------------------------------------------------------------- positions


def build_positions(text: str) -> Position | None:
    """Positions of all nodes of the one document in `text`; None when it is empty. Raises Fault like `build_value`.

    >>> root = build_positions("a:\\n  - b")
    >>> root.children["a"].key_line, root.children["a"].children[0].line
    (1, 2)
    """
    anchors: dict[str, Position] = {}
    stack: list[tuple[Position, bool]] = []
    keys: list[tuple[str, int, int] | None] = []
    root: Position | None = None
    for event in _events(text):
        kind = type(event)
        if kind is MappingEndEvent or kind is SequenceEndEvent:
            stack.pop()
            keys.pop()
            continue
        mark = event.start_mark
        if kind is AliasEvent:
            node = anchors.get(event.anchor) or Position(mark.line + 1, mark.column + 1)
        else:
            node = Position(mark.line + 1, mark.column + 1)
            if event.anchor:
                anchors[event.anchor] = node
        if not stack:
            root = node
        else:
            parent, is_map = stack[-1]
            pending = keys[-1]
            if is_map and pending is None:
                keys[-1] = (_position_key(event), mark.line + 1, mark.column + 1)
                continue
            if pending is not None:
                name, line, column = pending
                keys[-1] = None
                parent.children[name] = node = node if kind is not AliasEvent else node.at_key(line, column)
                node.key_line, node.key_column = line, column
                if name == "<<":
                    _merge_positions(parent, node)
            else:
                parent.children[len(parent.children)] = node
        if kind is MappingStartEvent or kind is SequenceStartEvent:
            stack.append((node, kind is MappingStartEvent))
            keys.append(None)
    return root


def _position_key(event: Any) -> str:
    if type(event) is not ScalarEvent:
        return str(getattr(event, "anchor", ""))
    try:
        return key_text(event.value, event.tag, plain=event.implicit[0])
    except ValueError:
        return str(event.value)


def _merge_positions(parent: Position, node: Position) -> None:
    sources = list(node.children.values()) if 0 in node.children else [node]
    for source in sources:
        for name, child in source.children.items():
            parent.children.setdefault(name, child)
