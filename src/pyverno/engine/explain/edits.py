"""Edits of an object, and the edits that a trace suggests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pyverno.engine.explain.nodes import (
    CheckNode,
    ConditionNode,
    ConditionsNode,
    ControlNode,
    ElementNode,
    ExpressionNode,
    FieldPath,
    ForeachNode,
    Node,
    PatternNode,
    RuleTrace,
    Shown,
)
from pyverno.engine.explain.reads import jmespath_reads
from pyverno.engine.explain.samples import MISSING, alternatives, samples, skeleton
from pyverno.kube.json import JSON
from pyverno.value import dataclass

__all__ = ["Edit", "applied", "candidates", "parse_field", "value_at"]

MAX_CANDIDATES = 400
_MAX_EXPANDED = 40
_DEEPEST = 12

_CONTROL_VALUES: Final[Mapping[str, Sequence[JSON]]] = {
    "allowPrivilegeEscalation": (False,),
    "privileged": (False,),
    "runAsNonRoot": (True,),
    "runAsUser": (1000,),
    "type": ("RuntimeDefault", "container_t"),
    "seccompProfile": ({"type": "RuntimeDefault"},),
    "drop": (["ALL"],),
    "procMount": ("Default",),
}
_PATH: Final = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")


@dataclass(frozen=True, slots=True)
class Edit:
    """One field set to a value, or removed. `path` ends in a new index to add to a list."""

    path: FieldPath
    value: JSON = None
    is_removal: bool = False


def applied(document: JSON, edits: Sequence[Edit]) -> JSON:
    """Return the object with the edits; None when a path leads through what is no map or list.

    >>> applied({"a": [1]}, [Edit(("a", 0), 2), Edit(("b", "c"), 3)])
    {'a': [2], 'b': {'c': 3}}
    """
    for edit in edits:
        changed = _set(document, edit.path, edit)
        if changed is None:
            return None
        document = changed
    return document


def _set(document: JSON, path: FieldPath, edit: Edit) -> JSON:
    key, *rest = path
    if isinstance(document, list):
        if not isinstance(key, int) or not 0 <= key <= len(document):
            return None
        below = document[key] if key < len(document) else None
        if not rest and edit.is_removal:
            return [*document[:key], *document[key + 1 :]]
        value = _set({} if below is None else below, tuple(rest), edit) if rest else edit.value
        return None if rest and value is None else [*document[:key], value, *document[key + 1 :]]
    if not isinstance(document, dict) or not isinstance(key, str):
        return None
    if not rest:
        if edit.is_removal:
            return {name: value for name, value in document.items() if name != key}
        return {**document, key: edit.value}
    if edit.is_removal and key not in document:
        return document
    below = document.get(key)
    value = _set(({} if isinstance(rest[0], str) else []) if below is None else below, tuple(rest), edit)
    return None if value is None else {**document, key: value}


def candidates(traces: Sequence[RuleTrace], document: JSON) -> Iterator[Edit]:
    """Yield edits that may turn the result of a rule, the likeliest first, each once."""
    seen: set[str] = set()
    for edit in _all(traces, document):
        text = repr(edit)
        if text not in seen:
            seen.add(text)
            yield edit
            if len(seen) >= MAX_CANDIDATES:
                return


def _all(traces: Sequence[RuleTrace], document: JSON) -> Iterator[Edit]:
    nodes = [node for trace in traces for node in trace.walk()]
    blamed = [node for node in nodes if isinstance(node, PatternNode) and node.outcome == "fail"]
    others = [node for node in nodes if isinstance(node, PatternNode) and node.outcome != "fail"]
    # the innermost part is where the pattern failed
    rounds = [_of_patterns(reversed(blamed), document), _of_patterns(reversed(others), document)]
    rounds.insert(1, _of_controls(nodes, document))
    rounds += [_of_conditions(traces, document), _of_expressions(nodes, document)]
    for each in rounds:
        yield from each


# --- patterns -------------------------------------------------------------------------------------------------------


def _of_patterns(nodes: Iterator[PatternNode] | Sequence[PatternNode], document: JSON) -> Iterator[Edit]:
    for node in nodes:
        if not node.path or not isinstance(node.wanted, Shown):
            continue
        is_whole = isinstance(node.wanted.value, (dict, list)) and node.outcome == "fail" and bool(node.children)
        wanted, path = node.wanted.value, node.path
        if node.part == "key":
            yield from _of_key(node, wanted, document)
        for value in samples(wanted) if not isinstance(wanted, (dict, list)) else ():
            yield Edit(path, value)
        # below a map that was looked into, a smaller edit does
        yield from () if is_whole else _alternatives(path, document, [wanted])


def _of_key(node: PatternNode, wanted: JSON, document: JSON) -> Iterator[Edit]:
    if node.anchor == "X":
        yield Edit(node.path, is_removal=True)
        yield Edit(node.path, "x")
    elif node.anchor == "^":
        value = value_at(document, node.path)
        made = skeleton(wanted)
        if isinstance(value, list) and isinstance(made, list):
            for each in made:
                yield Edit((*node.path, len(value)), each)
        yield Edit(node.path, made)
    elif not node.is_present:
        yield Edit(node.path, skeleton(wanted))
    elif node.anchor == "=":
        yield Edit(node.path, is_removal=True)
    elif isinstance(wanted, (dict, list)) and type(value_at(document, node.path)) is not type(wanted):
        yield Edit(node.path, skeleton(wanted))


# --- podSecurity ----------------------------------------------------------------------------------------------------


def _of_controls(nodes: Sequence[Node], document: JSON) -> Iterator[Edit]:
    for node in nodes:
        if not isinstance(node, ControlNode):
            continue
        for field in node.fields:
            path = parse_field(field)
            if path[:2] == ("spec", "template") and value_at(document, ("spec", "template")) is None:
                path = path[2:]  # Kyverno names the annotations of a bare Pod as those of a template
            name = str(path[-1]) if path else ""
            for value in _CONTROL_VALUES.get(name, ()):
                yield Edit(path, value)
            if path[-2:-1] == ("volumes",):
                yield Edit(path, {"name": "volume", "emptyDir": {}})
            if path:
                yield Edit(path, is_removal=True)
            if len(path) > 1 and isinstance(path[-2], int):
                yield Edit(path[:-1], is_removal=True)  # an item of a list that is nothing without the field
        if not node.allowed and not node.fields:
            yield from (Edit(path, is_removal=True) for path in _probe_hosts(document, ()))
        if node.allowed and node.check == "hostNamespaces":
            yield Edit(("spec", "hostPID"), True)
            yield Edit(("spec", "template", "spec", "hostPID"), True)


def _probe_hosts(value: JSON, path: FieldPath) -> Iterator[FieldPath]:
    """Yield the hosts of probes and lifecycle handlers, which the control names no field for."""
    if path[-1:] == ("host",) and path[-2:-1] in (("httpGet",), ("tcpSocket",)):
        yield path
    elif isinstance(value, dict) and len(path) < _DEEPEST:
        for key, below in value.items():
            yield from _probe_hosts(below, (*path, key))
    elif isinstance(value, list) and len(path) < _DEEPEST:
        for index, below in enumerate(value[:_MAX_EXPANDED]):
            yield from _probe_hosts(below, (*path, index))


def parse_field(text: str) -> FieldPath:
    """Return a path as the message of a rule has it: `spec.containers[0].image`."""
    parts: list[str | int] = []
    for found in _PATH.finditer(text):
        name, index = found.groups()
        parts.append(int(index) if index and index.isdigit() else (name or index or "").strip("'\""))
    return tuple(parts)


# --- conditions -----------------------------------------------------------------------------------------------------


def _of_conditions(traces: Sequence[RuleTrace], document: JSON) -> Iterator[Edit]:
    for trace in traces:
        yield from _below(trace.children, {"request.object": ()}, document)


def _below(nodes: Sequence[Node], names: Mapping[str, FieldPath], document: JSON) -> Iterator[Edit]:
    lists: list[FieldPath] = []
    for node in nodes:
        if isinstance(node, ForeachNode):
            lists = [*jmespath_reads(node.list, names)]
        elif isinstance(node, ElementNode):
            for path in lists:
                here = tuple(node.index if part == "*" else part for part in path)
                here = here if "*" in path else (*here, node.index)
                inner = {**names, "element": here, **{f"element{depth}": here for depth in range(3)}}
                yield from _below(node.children, inner, document)
        elif isinstance(node, ConditionNode):
            yield from _of_condition(node, names, document)
        elif isinstance(node, (CheckNode, ConditionsNode)) or hasattr(node, "children"):
            yield from _below(node.children, names, document)


def _of_condition(node: ConditionNode, names: Mapping[str, FieldPath], document: JSON) -> Iterator[Edit]:
    constants = [each.value for each in (node.value, node.key) if isinstance(each, Shown)]
    for text in node.reads:
        for path in jmespath_reads(text, names):
            for place in _expand(path, document):
                yield from _alternatives(place, document, constants)


# --- CEL ------------------------------------------------------------------------------------------------------------


def _of_expressions(nodes: Sequence[Node], document: JSON) -> Iterator[Edit]:
    found = [node for node in nodes if isinstance(node, ExpressionNode)]
    constants = [each for node in found for each in node.constants]
    paths = dict.fromkeys(path for node in found for path in node.reads)
    for path in paths:
        for place in _expand(path, document):
            yield from _alternatives(place, document, constants)


# --- paths ----------------------------------------------------------------------------------------------------------


def _alternatives(path: FieldPath, document: JSON, constants: Sequence[JSON]) -> Iterator[Edit]:
    if not path:
        return
    for value in alternatives(value_at(document, path), constants):
        if value is MISSING:
            yield Edit(path, is_removal=True)
        else:
            yield Edit(path, value)


def _expand(path: FieldPath, document: JSON) -> Iterator[FieldPath]:
    """Yield the paths that `*` matches in the object."""
    found: list[FieldPath] = [()]
    for position, part in enumerate(path):
        if part != "*":
            found = [(*each, part) for each in found]
            continue
        wider: list[FieldPath] = []
        for each in found:
            items = value_at(document, each)
            keys: Sequence[str | int] = range(len(items)) if isinstance(items, list) else ()
            if isinstance(items, dict):
                keys = [*items]
            wider += [(*each, key) for key in keys]
        found = wider[:_MAX_EXPANDED]
        if not found:
            return
        if position == len(path) - 1:
            break
    yield from found


def value_at(document: JSON, path: FieldPath) -> JSON:
    """Return the value at a path, None where there is none.

    >>> value_at({"a": [{"b": 1}]}, ("a", 0, "b"))
    1
    """
    for part in path:
        if isinstance(document, dict) and isinstance(part, str):
            document = document.get(part)
        elif isinstance(document, list) and isinstance(part, int) and 0 <= part < len(document):
            document = document[part]
        else:
            return None
    return document
