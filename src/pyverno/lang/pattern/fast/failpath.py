"""Generated functions that check whether a resource matches a pattern, and find the first mismatch.

Law: the path that is returned is the path of a FAIL of the exact match, "" means that the exact match gives PASS, and
an exception proves nothing. They exist for patterns of plain keys, equality and negation anchors, lists of one map and
scalars, which is what most rules are made of: the order of keys and all paths are then known beforehand. This module
must decline everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from pyverno.kube.json import JSON, JSONObject
from pyverno.lang.codegen import MAX_INDENT, Source
from pyverno.lang.pattern.anchors import Anchor, Modifier, parse_anchor
from pyverno.lang.pattern.checks import compile_scalar
from pyverno.lang.pattern.leaf import Leaf, literal_texts
from pyverno.lang.pattern.metadata import TAGS, KeyResolver, compile_key, find_tag

__all__ = ["FailPath", "compile_failpath"]

FailPath: TypeAlias = Callable[[JSON], str]

_DEEPEST = MAX_INDENT - 8


class _UnsuitableError(Exception):
    """The pattern has a form that generated paths are not made for."""


class _Place(NamedTuple):
    """The state of the writer: the map of the pattern, the path so far, and the indentation.

    `path` holds keys as texts, and the variables of indexes and of resolved keys as integers.
    """

    path: tuple[str | int, ...]
    indent: int
    is_metadata: bool = False
    is_labels: bool = False

    def indented(self) -> _Place:
        return self._replace(indent=self.indent + 1)


class _Entry(NamedTuple):
    text: str
    key: str
    pattern: JSON
    modifier: Modifier | None


def compile_failpath(pattern: JSON, *, float_numbers: bool = False) -> FailPath | None:
    """Generate the function of a pattern, or None when it has another form than these functions are made for.

    >>> failing_path = compile_failpath({"spec": {"=(hostPID)": False}})
    >>> failing_path({"spec": {"hostPID": True}}), failing_path({"spec": {}})
    ('/spec/hostPID/', '')
    """
    writer = _Writer(float_numbers)
    try:
        writer.value(0, pattern, _Place((), 0))
        writer.source.line(0, "return c{}", writer.source.constant(""))
        function: FailPath = writer.source.build()
    except (_UnsuitableError, ValueError, RecursionError):
        return None
    return function


class _Writer:
    def __init__(self, float_numbers: bool) -> None:
        self.source = Source(arguments=1)
        self.floats = float_numbers

    def refuse(self, place: _Place) -> None:
        """Write the return of a path: fixed texts with the indexes between them."""
        text = "/"
        template, numbers = "return ", []
        for step in place.path:
            if isinstance(step, str):
                text += f"{step}/"
                continue
            template += "c{} + str(v{}) + "
            numbers += [self.source.constant(text), step]
            text = "/"
        self.source.line(place.indent, template + "c{}", *numbers, self.source.constant(text))

    def refuse_if(self, template: str, *numbers: int, place: _Place) -> None:
        self.source.line(place.indent, template, *numbers)
        self.refuse(place.indented())

    def value(self, variable: int, pattern: JSON, place: _Place) -> None:
        if place.indent > _DEEPEST:
            raise _UnsuitableError
        if isinstance(pattern, dict):
            self.map(variable, pattern, place)
        elif isinstance(pattern, list):
            self.list(variable, pattern, place)
        else:
            self.scalar(variable, pattern, place)

    def map(self, variable: int, pattern: JSONObject, place: _Place) -> None:
        self.refuse_if("if not type(v{}) is dict:", variable, place=place)
        if place.is_labels and not _is_literal(pattern):
            self.labels(variable, pattern, place)
            return
        metadata = find_tag(pattern, "metadata")
        tags = {find_tag(pattern, tag) for tag in TAGS} if place.is_metadata else set()
        for entry in _order(pattern):
            path = (*place.path, entry.key)
            below = _Place(path, place.indent, is_metadata=entry.text == metadata, is_labels=entry.text in tags)
            self.entry(variable, entry, place, below)

    def entry(self, variable: int, entry: _Entry, place: _Place, below: _Place) -> None:
        key = self.source.constant(entry.key)
        if entry.modifier is Modifier.NEGATION:
            self.refuse_if("if c{} in v{}:", key, variable, place=below)
            return
        child = self.source.variable()
        if entry.modifier is Modifier.EQUALITY:
            self.source.line(place.indent, "if c{} in v{}:", key, variable)
            self.source.line(place.indent + 1, "v{} = v{}[c{}]", child, variable, key)
            below = below.indented()
        else:
            self.source.line(place.indent, "v{} = v{}.get(c{})", child, variable, key)
            if entry.pattern == "*":
                self.refuse_if("if v{} is None:", child, place=place)
                return
        self.value(child, entry.pattern, below)

    def labels(self, variable: int, pattern: JSONObject, place: _Place) -> None:
        """Write labels whose keys depend on the resource as one call that names the key that does not fit."""
        name = self.source.variable()
        failing_key = self.source.constant(_labels(pattern, self.floats))
        self.source.line(place.indent, "v{} = c{}(v{})", name, failing_key, variable)
        self.refuse_if("if v{} is not None:", name, place=_Place((*place.path, name), place.indent))

    def list(self, variable: int, pattern: list[JSON], place: _Place) -> None:
        if not pattern or isinstance(pattern[0], list):
            raise _UnsuitableError
        self.refuse_if("if not type(v{}) is list:", variable, place=place)
        if not isinstance(pattern[0], dict):
            self.scalar(variable, pattern[0], place)
            return
        index, element = self.source.variable(), self.source.variable()
        self.source.line(place.indent, "v{} = 0", index)
        self.source.line(place.indent, "for v{} in v{}:", element, variable)
        self.value(element, pattern[0], _Place((*place.path, index), place.indent + 1))
        self.source.line(place.indent + 1, "v{} = v{} + 1", index, index)

    def scalar(self, variable: int, pattern: JSON, place: _Place) -> None:
        """Write a leaf: literal texts are compared right here, everything else is left to the exact leaf."""
        leaf = self.source.constant(compile_scalar(pattern, float_numbers=self.floats))
        texts = literal_texts(pattern) if isinstance(pattern, str) else None
        if texts is None:
            self.refuse_if("if not c{}(v{}):", leaf, variable, place=place)
            return
        test = "v{} != c{}" if len(texts) == 1 else "v{} not in c{}"
        constant = self.source.constant(next(iter(texts)) if len(texts) == 1 else texts)
        numbers = [variable, constant]
        for text, template in (("true", " and v{} is not True"), ("false", " and v{} is not False")):
            if text in texts:
                test += template
                numbers.append(variable)
        # a list fits when all its elements do; it is tested first, because a list cannot be in a set
        whole = f"if not c{{}}(v{{}}) if type(v{{}}) is list else {test}:"
        self.refuse_if(whole, leaf, variable, variable, *numbers, place=place)


def _order(pattern: JSONObject) -> Iterator[_Entry]:
    """Yield the entries of a map in the order of the exact tier: anchors, then keys with anchors below, then others."""
    anchors: list[_Entry] = []
    front: list[_Entry] = []
    back: list[_Entry] = []
    for text in sorted(pattern):
        anchor, child = parse_anchor(text), pattern[text]
        if anchor is None:
            (front if _has_anchors(child) else back).append(_Entry(text, text, child, None))
        elif anchor.modifier in (Modifier.EQUALITY, Modifier.NEGATION):
            anchors.append(_Entry(text, anchor.key, child, anchor.modifier))
        else:
            raise _UnsuitableError
    yield from anchors
    yield from reversed(front)
    yield from back


def _has_anchors(pattern: JSON) -> bool:
    if isinstance(pattern, dict):
        return any(parse_anchor(key) is not None or _has_anchors(child) for key, child in pattern.items())
    return isinstance(pattern, list) and any(_has_anchors(item) for item in pattern)


def _is_literal(labels: JSONObject) -> bool:
    """Return whether labels are the same for every resource: no wildcards in keys, and nothing but texts as values."""
    return all(isinstance(text, str) and compile_key(key) is None for key, text in labels.items())


def _labels(pattern: JSONObject, floats: bool) -> Callable[[JSONObject], str | None]:
    """Compile optional labels with wildcard keys into what names the first key that does not fit, in order."""
    entries: list[tuple[Anchor, KeyResolver | None, Leaf]] = []
    for key, text in pattern.items():
        anchor = parse_anchor(key)
        if anchor is None or anchor.modifier is not Modifier.EQUALITY or not isinstance(text, str):
            raise _UnsuitableError
        entries.append((anchor, compile_key(key), compile_scalar(text, float_numbers=floats)))

    def failing_key(labels: JSONObject) -> str | None:
        failing: list[tuple[str, str]] = []
        for anchor, resolve, leaf in entries:
            for text, found in ((str(anchor), anchor),) if resolve is None else resolve(labels):
                resolved = found or anchor
                if resolved.key in labels and not leaf(labels[resolved.key]):
                    failing.append((text, resolved.key))
        return min(failing)[1] if failing else None

    return failing_key
