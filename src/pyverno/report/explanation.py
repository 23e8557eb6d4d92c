"""An explanation as lines of text: a tree for people, with the places in the policy and in the manifest.

Lines are ASCII except for contents of policies and objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from pyverno.engine.explain.nodes import (
    BlockNode,
    CheckNode,
    ConditionNode,
    ConditionsNode,
    ContextNode,
    ControlNode,
    EffectNode,
    ElementNode,
    ExceptionNode,
    ExpressionNode,
    FieldPath,
    ForeachNode,
    GroupNode,
    Held,
    Hidden,
    MatchNode,
    Node,
    OmittedNode,
    PartNode,
    PatchNode,
    PatternNode,
    RuleTrace,
)
from pyverno.errors import Location
from pyverno.kube.json import JSON, encode

if TYPE_CHECKING:
    from pyverno.engine.explain.change import Change

__all__ = ["NO_PLACES", "Line", "Places", "change_lines", "rule_lines"]

_ROOM = 100
_MANY = 12
"""The number of listed values that satisfy a pattern, and of sub-expressions; the others are counted."""


class Line(NamedTuple):
    """One line: its depth, its text, the word that colours it (`Pass`, `Fail`, ... or ""), and its place."""

    depth: int
    text: str
    word: str = ""
    place: Location | None = None


class Places(NamedTuple):
    """Locations of paths in the object and of places in a rule; each function returns None for an unknown one."""

    of_object: Callable[[FieldPath], Location | None]
    of_rule: Callable[[RuleTrace, FieldPath], Location | None]


NO_PLACES: Final = Places(lambda _: None, lambda *_: None)
"""For objects and policies without a file."""


def rule_lines(trace: RuleTrace, places: Places) -> Iterator[Line]:
    """Yield the lines of one rule: its result and the reasons."""
    info = trace.rule
    name = f"{info.policy.key}/{info.name}" if info.name else info.policy.key
    statuses = ", ".join(dict.fromkeys(result.status.value for result in trace.results))
    word = statuses.partition(",")[0].capitalize()
    if not trace.matched:
        statuses, word = "not matched", "Skip"
    elif trace.is_old:
        statuses, word = "the object before the update", ""
    yield Line(0, f"{name}: {statuses or 'no result'}", word, places.of_rule(trace, ()))
    for result in trace.results:
        if result.message:
            yield Line(1, _brief(result.message, 4 * _ROOM))
    yield from _Tree(trace, places).lines(trace.children, 1)


def change_lines(change: Change | None, places: Places) -> Iterator[Line]:
    """Yield the smallest change, an edit a line."""
    if change is None:
        yield Line(1, "no change of the object was found that turns this result")
        return
    yield Line(1, f"smallest change, checked by the engine (the rule is then {change.status.value}):")
    for edit in change.edits:
        text = f"remove {_dotted(edit.path)}" if edit.is_removal else f"set {_dotted(edit.path)} to {_json(edit.value)}"
        yield Line(2, text, "", places.of_object(edit.path))


class _Tree:
    """The lines of the nodes of one rule."""

    def __init__(self, trace: RuleTrace, places: Places) -> None:
        self._trace = trace
        self._places = places

    def lines(self, nodes: Sequence[Node], depth: int) -> Iterator[Line]:
        for node in nodes:
            yield from self._line(node, depth)

    def _rule_place(self, place: FieldPath) -> Location | None:
        return self._places.of_rule(self._trace, place)

    def _line(self, node: Node, depth: int) -> Iterator[Line]:
        match node:
            case MatchNode():
                yield from self._match(node, depth)
            case ContextNode():
                what = f"error: {node.error}" if node.error else _format_held(node.value)
                yield Line(depth, f"context {node.name} ({node.source}): {what}", "", self._rule_place(node.place))
            case ConditionsNode():
                met = "error" if node.met is None else "met" if node.met else "not met"
                yield Line(depth, f"{_dotted(node.place)}: {met}", "", self._rule_place(node.place))
                yield from self.lines(node.children, depth + 1)
            case GroupNode():
                yield from self.lines(node.children, depth)
            case ConditionNode():
                yield self._condition(node, depth)
            case CheckNode():
                yield from self._check(node, depth)
            case PatternNode():
                yield from self._pattern(node, depth)
            case ForeachNode():
                count = f"error: {node.error}" if node.count is None else f"{node.count} elements"
                yield Line(depth, f"foreach {node.list}: {count}", "", self._rule_place(node.place))
            case ElementNode():
                yield Line(depth, f"element {node.index}: {_format_held(node.value)}")
                yield from self.lines(node.children, depth + 1)
            case ExpressionNode():
                yield from self._expression(node, depth)
            case PartNode():
                yield Line(depth, f"{node.text}: {f'error: {node.error}' if node.error else _format_held(node.value)}")
            case ControlNode():
                if not node.allowed:
                    text = f"control {node.control or node.check}: {node.reason}: {', '.join(node.fields)}"
                    yield Line(depth, text, "Fail", self._places.of_object(_parse(node.fields)))
            case ExceptionNode():
                applies = {True: "applies", False: "does not apply", None: f"error: {node.error}"}[node.applies]
                yield Line(depth, f"exception {node.key}: {applies}")
                yield from self.lines(node.children, depth + 1)
            case PatchNode():
                for each in node.operations:
                    value = f" {_json(each['value'])}" if "value" in each else ""
                    yield Line(depth, f"{each['op']} {each['path']}{value}")
            case EffectNode():
                yield Line(depth, f"{node.action} {node.target}")
            case OmittedNode():
                yield Line(depth, f"({node.count} more parts are left out)")

    def _match(self, node: MatchNode, depth: int) -> Iterator[Line]:
        role = "" if node.role == "rule" else f"{node.role} "
        if node.matched:
            fitting = next((block for block in node.children if block.holds), None)
            fields = "" if fitting is None else f" ({', '.join(field.field for field in fitting.children)})"
            place = node.place if fitting is None else fitting.place
            where = _dotted(place) if place else ""
            yield Line(depth, f"{role}matched{f' by {where}{fields}' if where else ''}", "", self._rule_place(place))
            return
        yield Line(depth, f"{role}not matched: {node.reason}", "", self._rule_place(node.place))
        for block in node.children:
            yield from self._block(block, depth + 1)

    def _block(self, block: BlockNode, depth: int) -> Iterator[Line]:
        is_exclude = "exclude" in block.place
        if is_exclude and not block.holds:
            return
        reason = next((field.reason for field in block.children if not field.holds), "fits")
        yield Line(depth, f"{_dotted(block.place)}: {reason}", "", self._rule_place(block.place))

    def _condition(self, node: ConditionNode, depth: int) -> Line:
        outcome = "error" if node.holds is None else "true" if node.holds else "false"
        key, value = (
            _render_value(written) if _is_same(held, written) else f"{_render_value(written)} = {_format_held(held)}"
            for written, held in ((node.key_text, node.key), (node.value_text, node.value))
        )
        tail = f" ({node.error})" if node.error else ""
        return Line(depth, f"{key} {node.operator} {value}: {outcome}{tail}", "", self._rule_place(node.place))

    def _check(self, node: CheckNode, depth: int) -> Iterator[Line]:
        statuses = ", ".join(dict.fromkeys(node.statuses)) or "no result"
        controls = [child for child in node.children if isinstance(child, ControlNode)]
        held = sum(child.allowed for child in controls)
        tail = f", {held} of {len(controls)} controls hold" if controls else ""
        name = "" if node.kind == "check" else f"{node.kind}: "
        yield Line(
            depth, f"{name}{statuses}{tail}", statuses.partition(",")[0].capitalize(), self._rule_place(node.place)
        )
        yield from self.lines(node.children, depth + 1)

    def _pattern(self, node: PatternNode, depth: int) -> Iterator[Line]:
        """Yield the parts that decided the pattern: failing ones first, then values that satisfy it."""
        decisive: list[PatternNode] = []
        held: list[PatternNode] = []
        pending: list[Node] = [node]
        while pending:
            part = pending.pop()
            if not isinstance(part, PatternNode):
                continue
            below = [child for child in part.children if isinstance(child, PatternNode)]
            if part.outcome != "pass" and not any(child.outcome != "pass" for child in below):
                decisive.append(part)
            elif part.outcome == "pass" and part.part == "value":
                held.append(part)
            pending.extend(reversed(below))
        for part in decisive:
            yield Line(depth, _part_text(part), part.outcome.capitalize(), self._places.of_object(part.path))
        for part in held[:_MANY]:
            yield Line(depth, _part_text(part), "", self._places.of_object(part.path))
        if len(held) > _MANY:
            yield Line(depth, f"({len(held) - _MANY} more values fit)")

    def _expression(self, node: ExpressionNode, depth: int) -> Iterator[Line]:
        value = f"error: {node.error}" if node.error else _format_held(node.value)
        text = _brief(" ".join(node.text.split()))
        yield Line(depth, f"{_dotted(node.place)}: {text}: {value}", "", self._rule_place(node.place))
        below = [child for child in node.children if isinstance(child, ExpressionNode)]
        others = [child for child in node.children if not isinstance(child, ExpressionNode)]
        yield from self.lines(below, depth + 1)
        yield from self.lines(others[-_MANY:], depth + 1)
        if len(others) > _MANY:
            yield Line(depth + 1, f"({len(others) - _MANY} earlier values are in the JSON output)")


def _part_text(node: PatternNode) -> str:
    where = _dotted(node.path) or "the object"
    if node.part == "key" and node.anchor == "X":
        return f"{where}: must be absent, {'it is there' if node.is_present else 'it is'}"
    if node.part == "key" and not node.is_present:
        wanted = f", wanted {_format_held(node.wanted)}" if node.wanted is not None else ""
        return f"{where}: missing{wanted}"
    if node.part in ("map", "list") and not node.is_present:
        return f"{where}: is no {node.part}"
    wanted = "" if node.wanted is None else f": wanted {_format_held(node.wanted)}"
    found = "" if node.found is None else f", found {_format_held(node.found)}"
    key = f" [{node.key}]" if node.anchor else ""
    return f"{where}{wanted}{found}{key}" + ("" if node.outcome != "skip" else " (does not apply)")


def _format_held(held: Held | None) -> str:
    if held is None:
        return "(not known)"
    return f"(hidden: from {held.source})" if isinstance(held, Hidden) else _json(held.value)


def _is_same(held: Held | None, written: JSON) -> bool:
    return held is None or (not isinstance(held, Hidden) and held.value == written)


def _render_value(value: JSON) -> str:
    return _brief(value) if isinstance(value, str) else _json(value)


def _json(value: JSON) -> str:
    return _brief(encode(value))


def _brief(text: str, room: int = _ROOM) -> str:
    text = " ".join(text.split("\n"))
    return text if len(text) <= room else f"{text[:room]}..."


def _dotted(path: FieldPath) -> str:
    """Return a path as people write it.

    >>> _dotted(("spec", "containers", 0, "image"))
    'spec.containers[0].image'
    """
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _parse(fields: Sequence[str]) -> FieldPath:
    from pyverno.engine.explain.edits import parse_field

    return parse_field(fields[0]) if fields else ()
