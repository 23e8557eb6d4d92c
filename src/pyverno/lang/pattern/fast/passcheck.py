"""The fast tier of the pattern language: generated functions that answer only "passes".

    passes(x) is True  =>  the exact checks pass x

Anything else, an exception inside included, means "ask the exact tier". A generated function may therefore treat
whatever is rare as not passing: texts for numbers, lists under scalar patterns, skipped elements next to global
anchors. Several patterns become one function that looks up each shared key once. This module writes templates and
integers only (see `codegen`); it must never decide a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, TypeGuard

from pyverno.kube.json import JSON
from pyverno.kube.meter import FREE_OF_CHARGE
from pyverno.kube.wildcard import compile_wildcard, has_wildcard
from pyverno.lang.codegen import Source
from pyverno.lang.pattern.anchors import GO_SPACE, Anchor, Modifier, parse_anchor
from pyverno.lang.pattern.checks import compile_labels, compile_metadata, compile_scalar, element_check
from pyverno.lang.pattern.leaf import Leaf, as_float, compile_leaf, integer_range, literal_texts
from pyverno.lang.pattern.metadata import TAGS, compile_key, find_tag, text_entries
from pyverno.lang.pattern.steps import Ledger
from pyverno.value import dataclass, field

__all__ = ["MatchedPattern", "PassCheck", "compile_passes", "fuse"]

PassCheck = Callable[[JSON], bool]

_MAX_LOOPS = 12
_MAX_INDENT = 40


class MatchedPattern(Protocol):
    """The parts of a pattern that a pass-check needs."""

    @property
    def tree(self) -> JSON:
        """The pattern as written."""
        ...

    @property
    def float_numbers(self) -> bool:
        """Whether integers of the pattern count as floats."""
        ...


def compile_passes(pattern: MatchedPattern) -> PassCheck | None:
    """Generate the pass-check of one pattern; None when the pattern is too large or can never pass."""
    return fuse((pattern,))


def fuse(patterns: Iterable[MatchedPattern | Sequence[MatchedPattern]]) -> PassCheck | None:
    """Generate one function that answers True only when every pattern passes.

    A sequence among the patterns stands for alternatives (anyPattern), of which one must pass. None when there is
    nothing to generate: no pattern at all, one that never passes, or a function that would grow too large.
    """
    items = tuple(patterns)
    if not items:
        return None
    writer = _Writer()
    try:
        together = [_Node(item.tree, item.float_numbers) for item in items if not isinstance(item, Sequence)]
        writer.source.line(0, "try:")
        if together:
            writer.value(0, together, _Place(1, 0))
        for item in items:
            if isinstance(item, Sequence):
                writer.either([check for one in item if (check := fuse((one,))) is not None])
        writer.source.line(1, "return True")
        writer.source.line(0, "except (KeyError, TypeError, AttributeError, ValueError, RecursionError):")
        writer.source.line(1, "return False")
        function: PassCheck = writer.source.build()
    except (_NeverPassesError, ValueError, RecursionError):
        return None
    return function


class _NeverPassesError(Exception):
    """The patterns contradict each other, or one of them accepts nothing."""


class _Node(NamedTuple):
    """One pattern at one place.

    `is_metadata` and `is_labels` mean that its keys may hold wildcards, `is_item` that a scalar judges one element of
    a list, where a list inside the list never matches.
    """

    pattern: JSON
    floats: bool
    is_metadata: bool = False
    is_labels: bool = False
    is_item: bool = False

    def exact(self) -> Leaf:
        """Compile the exact tier's verdict on one element, true or false."""
        if not isinstance(self.pattern, (dict, list)):
            compile_one = compile_leaf if self.is_item else compile_scalar
            return compile_one(self.pattern, float_numbers=self.floats)
        if self.is_labels and isinstance(self.pattern, dict):
            check = compile_labels(self.pattern, float_numbers=self.floats).check
        elif self.is_metadata and isinstance(self.pattern, dict):
            check = compile_metadata(self.pattern, float_numbers=self.floats).check  # guard: a condition has wildcards
        else:
            check = element_check(self.pattern, float_numbers=self.floats)
        return lambda value: check(value, (), Ledger(FREE_OF_CHARGE)) is None


class _Place(NamedTuple):
    """The state of the writer: its indentation, and the number of loops around it."""

    indent: int
    loops: int

    def indented(self, indent: int = 1, loops: int = 0) -> _Place:
        return _Place(self.indent + indent, self.loops + loops)

    @property
    def is_too_deep(self) -> bool:
        return self.loops >= _MAX_LOOPS or self.indent >= _MAX_INDENT


@dataclass(slots=True)
class _Slot:
    """The requirements of all patterns for one key of a map."""

    required: list[_Node] = field(default_factory=list)
    optional: list[_Node] = field(default_factory=list)
    exists: list[_Node] = field(default_factory=list)
    conditions: list[_Node] = field(default_factory=list)
    is_present: bool = False
    is_absent: bool = False

    def add(self, anchor: Anchor | None, node: _Node) -> None:
        modifier = anchor.modifier if anchor is not None else Modifier.ADD_IF_ABSENT
        match modifier:
            case Modifier.CONDITION:
                self.conditions.append(node)
            case Modifier.NEGATION:
                self.is_absent = True
            case Modifier.EXISTENCE:
                self.exists.append(node)
            case Modifier.EQUALITY | Modifier.GLOBAL:
                self.optional.append(node)
            case _ if node.pattern == "*":
                self.is_present = True
            case _ if _accepts_null(node):
                self.optional.append(node)  # a missing key is handed on as null
            case _:
                self.required.append(node)

    @property
    def is_required(self) -> bool:
        return bool(self.required or self.is_present or self.conditions)


def _accepts_null(node: _Node) -> bool:
    if isinstance(node.pattern, (dict, list)):
        return False
    return compile_leaf(node.pattern, float_numbers=node.floats)(None)


class _Writer:
    def __init__(self) -> None:
        self.source = Source(arguments=1)

    def call(self, function: Leaf, variable: int, place: _Place) -> None:
        self.source.line(place.indent, "if not c{}(v{}):", self.source.constant(function), variable)
        self.source.line(place.indent + 1, "return False")

    def refuse_unless(self, place: _Place, template: str, *numbers: int) -> None:
        self.source.line(place.indent, template, *numbers)
        self.source.line(place.indent + 1, "return False")

    def either(self, checks: list[PassCheck]) -> None:
        if not checks:
            raise _NeverPassesError
        name = self.source.variable()
        self.source.line(1, "v{} = False", name)
        for check in checks:
            self.source.line(1, "if not v{}:", name)
            self.source.line(2, "v{} = c{}(v0)", name, self.source.constant(check))
        self.refuse_unless(_Place(1, 0), "if not v{}:", name)

    # --- values -----------------------------------------------------------------------------------------------------

    def value(self, variable: int, nodes: list[_Node], place: _Place) -> None:
        """Write what all these patterns ask of one value."""
        if place.is_too_deep:
            for node in nodes:
                self.call(node.exact(), variable, place)
            return
        maps = [node for node in nodes if isinstance(node.pattern, dict)]
        lists = [node for node in nodes if isinstance(node.pattern, list)]
        for node in nodes:
            if not isinstance(node.pattern, (dict, list)):
                self.scalar(variable, node, place)
        if maps:
            self.refuse_unless(place, "if type(v{}) is not dict:", variable)
            self.entries(variable, [entry for node in maps for entry in self.children(variable, node, place)], place)
        if lists:
            self.refuse_unless(place, "if type(v{}) is not list:", variable)
            self.list(variable, lists, place)

    def scalar(self, variable: int, node: _Node, place: _Place) -> None:
        pattern = node.pattern
        if isinstance(pattern, bool):
            template = "if v{} is not True:" if pattern else "if v{} is not False:"
            self.refuse_unless(place, template, variable)
        elif pattern is None:
            self.refuse_unless(place, "if v{} is not None:", variable)
        elif isinstance(pattern, (int, float)):
            number = self.source.constant(as_float(pattern) if node.floats else pattern)
            template = "if v{} != c{} or type(v{}) is not int and type(v{}) is not float:"
            self.refuse_unless(place, template, variable, number, variable, variable)
        elif pattern == "?*":
            self.refuse_unless(place, "if not v{} or type(v{}) is not str:", variable, variable)
        elif isinstance(pattern, str) and (texts := literal_texts(pattern)) is not None:
            self.literal(variable, texts, place)
        elif isinstance(pattern, str) and (bounds := integer_range(pattern)) is not None:
            self.number(variable, node, bounds, place)
        else:
            self.call(node.exact(), variable, place)

    def literal(self, variable: int, texts: frozenset[str], place: _Place) -> None:
        test = "if v{} != c{}" if len(texts) == 1 else "if v{} not in c{}"
        test += " and v{} is not True" * ("true" in texts) + " and v{} is not False" * ("false" in texts)
        constant = self.source.constant(next(iter(texts)) if len(texts) == 1 else texts)
        variables = (variable,) * (("true" in texts) + ("false" in texts))
        self.refuse_unless(place, test + ":", variable, constant, *variables)

    def number(self, variable: int, node: _Node, bounds: tuple[int | None, int | None], place: _Place) -> None:
        """Compare integers right here and leave everything else, zero included, to the leaf."""
        self.source.line(place.indent, "if type(v{}) is not int or not v{}:", variable, variable)
        self.call(node.exact(), variable, place.indented())
        for bound, template in zip(bounds, ("elif v{} < c{}:", "elif v{} > c{}:"), strict=True):
            if bound is not None:
                self.refuse_unless(place, template, variable, self.source.constant(bound))

    # --- maps -------------------------------------------------------------------------------------------------------

    def children(self, variable: int, node: _Node, place: _Place) -> list[_Entry]:
        """Give the keys of a map; keys that depend on the resource are written as one call instead."""
        if node.is_labels and any(compile_key(key) is not None for key in node.pattern):
            self.call(_labels_check(node), variable, place)
            return []
        return list(_children(node))

    def entries(self, variable: int, entries: Iterable[_Entry], place: _Place) -> None:
        slots: dict[str, _Slot] = {}
        for key, anchor, child in entries:
            slots.setdefault(key if anchor is None else anchor.key, _Slot()).add(anchor, child)
        for key, slot in slots.items():
            self.slot(variable, key, slot, place)

    def slot(self, variable: int, key: str, slot: _Slot, place: _Place) -> None:
        name = self.source.constant(key)
        if slot.is_absent:
            if slot.is_required:
                raise _NeverPassesError
            self.refuse_unless(place, "if c{} in v{}:", name, variable)
            return
        child = self.source.variable()
        if not slot.is_required:
            self.source.line(place.indent, "if c{} in v{}:", name, variable)
            place = place.indented()
        self.source.line(place.indent, "v{} = v{}[c{}]", child, variable, name)
        if slot.is_present:
            self.refuse_unless(place, "if v{} is None:", child)
        for node in slot.conditions:
            self.call(node.exact(), child, place)
        self.value(child, slot.required + slot.optional, place)
        for node in slot.exists:
            self.existence(child, node, place)

    def existence(self, variable: int, node: _Node, place: _Place) -> None:
        self.refuse_unless(place, "if type(v{}) is not list:", variable)
        if not isinstance(node.pattern, list) or not all(isinstance(item, dict) for item in node.pattern):
            raise _NeverPassesError
        for item in node.pattern:
            element = self.source.variable()
            check = self.source.constant(_Node(item, node.floats).exact())
            self.source.line(place.indent, "for v{} in v{}:", element, variable)
            self.source.line(place.indent + 1, "if c{}(v{}):", check, element)
            self.source.line(place.indent + 2, "break")
            self.source.line(place.indent, "else:")
            self.source.line(place.indent + 1, "return False")

    # --- lists ------------------------------------------------------------------------------------------------------

    def list(self, variable: int, nodes: list[_Node], place: _Place) -> None:
        together: list[_Node] = []
        conditional: list[tuple[_Node, int]] = []
        for node in nodes:
            if not node.pattern:
                raise _NeverPassesError
            first = _Node(node.pattern[0], node.floats, is_item=True)
            if isinstance(first.pattern, list) or _has_indented_anchor(first.pattern):
                self.call(node.exact(), variable, place)
            elif _has_condition(first):
                conditional.append((first, self.source.variable()))
            else:
                together.append(first)
        if not together and not conditional:
            return
        for _, applied in conditional:
            self.source.line(place.indent, "v{} = False", applied)
        element = self.source.variable()
        self.source.line(place.indent, "for v{} in v{}:", element, variable)
        inside = place.indented(loops=1)
        self.value(element, together, inside)
        for node, applied in conditional:
            self.conditional_element(element, node, applied, inside)
        for _, applied in conditional:
            self.refuse_unless(place, "if not v{} and v{}:", applied, variable)

    def conditional_element(self, element: int, node: _Node, applied: int, place: _Place) -> None:
        """Write an element that skips when one of its conditions does not hold; all others must pass."""
        self.refuse_unless(place, "if type(v{}) is not dict:", element)
        rest: list[_Entry] = []
        for entry in _children(node):
            if not _is_condition(entry.anchor):
                rest.append(entry)
                continue
            name = self.source.constant(entry.anchor.key)
            holds = self.source.constant(entry.node.exact())
            self.source.line(place.indent, "if c{} in v{} and c{}(v{}[c{}]):", name, element, holds, element, name)
            place = place.indented()
        self.source.line(place.indent, "v{} = True", applied)
        self.entries(element, rest, place)


class _Entry(NamedTuple):
    key: str
    anchor: Anchor | None
    node: _Node


def _is_condition(anchor: Anchor | None) -> TypeGuard[Anchor]:
    return anchor is not None and anchor.modifier is Modifier.CONDITION


def _has_condition(node: _Node) -> bool:
    return isinstance(node.pattern, dict) and any(_is_condition(parse_anchor(key)) for key in node.pattern)


def _has_indented_anchor(pattern: JSON) -> bool:
    # conditions are judged first because `(` sorts before the other anchors; a blank before an anchor breaks that
    return isinstance(pattern, dict) and any(key[:1] in GO_SPACE and parse_anchor(key) for key in pattern if key)


def _children(node: _Node) -> Iterable[_Entry]:
    """Give the keys of a map pattern, a literal key with `+( )` as plain, with the nodes of their values."""
    entries = text_entries(node.pattern) if node.is_labels else node.pattern
    metadata = find_tag(node.pattern, "metadata")
    tags = {find_tag(node.pattern, tag) for tag in TAGS} if node.is_metadata else set()
    for key, pattern in entries.items():
        anchor = parse_anchor(key)
        if anchor is not None and anchor.modifier is Modifier.ADD_IF_ABSENT:
            anchor = None
        is_map = isinstance(pattern, dict)
        child = _Node(pattern, node.floats, is_map and key == metadata, is_map and key in tags)
        yield _Entry(key, anchor, child)


def _labels_check(node: _Node) -> Leaf:
    """Answer without the exact tier where no key of the resource meets a wildcard that a missing key satisfies."""
    exact = node.exact()
    wildcards: list[Callable[[str], bool]] = []
    for key in text_entries(node.pattern):
        anchor = parse_anchor(key)
        if anchor is None or anchor.modifier not in _OPTIONAL or not has_wildcard(key):
            return exact
        wildcards.append(compile_wildcard(anchor.key))
    matches = wildcards[0] if len(wildcards) == 1 else lambda name: any(fits(name) for fits in wildcards)

    def passes(labels: JSON) -> bool:
        return not any(map(matches, labels)) or exact(labels)

    return passes


_OPTIONAL = frozenset({Modifier.EQUALITY, Modifier.EXISTENCE, Modifier.NEGATION, Modifier.GLOBAL})
