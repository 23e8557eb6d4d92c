"""Fields that policies read, each with the constants that they hold it against: what objects must differ in.

Rules are read by the inference of types, expressions in CEL here; both note their evidence in one tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from pyverno.compiler.branches.expressions import parse_any
from pyverno.compiler.migration.inference import Evidence, read_rule
from pyverno.kube.json import JSON, JSONObject
from pyverno.lang.cel.syntax import ast
from pyverno.value import dataclass

__all__ = ["Reading", "readings_of"]

_DEEPEST: Final = 16
_MOST: Final = 160
_LISTS: Final = ("matchConditions", "variables", "validations", "mutations", "auditAnnotations")
_KEPT: Final = frozenset({"filter", "sort", "distinct", "reverse", "flatten"})
"""Calls and loops whose result has the elements of the list that they are called on."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A field that policies read: names of fields, with 0 for the elements of a list, and constants beside it.

    `lists` are those constants that a policy writes as one list.
    """

    steps: tuple[str | int, ...]
    constants: tuple[JSON, ...]
    lists: tuple[tuple[JSON, ...], ...] = ()


def readings_of(documents: Iterable[JSONObject]) -> tuple[Reading, ...]:
    """Return what policies of any kind read of their objects, in the order of the first mention.

    >>> check = {"expression": "object.spec.ports.all(p, p.?name.orValue('') != 'http')"}
    >>> [(each.steps, each.constants) for each in readings_of([{"spec": {"validations": [check]}}])][-1]
    (('spec', 'ports', 0, 'name'), ('', 'http'))
    """
    root = Evidence()
    for document in documents:
        spec = document.get("spec")
        if not isinstance(spec, dict):
            continue
        rules = spec.get("rules")
        for rule in rules if isinstance(rules, list) else ():
            if isinstance(rule, dict):
                read_rule(rule, root)
                for section in ("match", "exclude"):
                    _read_blocks(rule.get(section), root.field("metadata"))
                _Expressions(root).read((rule.get("validate") or {}).get("cel"))
        _Expressions(root).read(spec)
    found = (
        Reading(steps, tuple(below.constants.values()), tuple(below.lists.values())) for steps, below in _walk(root, ())
    )
    return tuple(each for _, each in zip(range(_MOST), found, strict=False))


def _read_blocks(section: JSON, metadata: Evidence) -> None:
    """Note the names, namespaces, labels and annotations by which a rule matches."""
    if not isinstance(section, dict):
        return
    listed = [each for name in ("any", "all") for each in section.get(name) or ()]
    for block in (section, *listed):
        resources = block.get("resources") if isinstance(block, dict) else None
        if not isinstance(resources, dict):
            continue
        for word, name in (("name", "name"), ("names", "name"), ("namespaces", "namespace")):
            if resources.get(word):
                metadata.field(name).remember(resources[word])
        selector = resources.get("selector")
        labels = selector if isinstance(selector, dict) else {}
        for key, value in (labels.get("matchLabels") or {}).items():
            metadata.field("labels").field(_fill(key)).remember(value)
        for each in labels.get("matchExpressions") or ():
            metadata.field("labels").field(str(each.get("key"))).remember(each.get("values"))
        for key, value in (resources.get("annotations") or {}).items():
            metadata.field("annotations").field(_fill(key)).remember(value)


def _fill(key: str) -> str:
    return key.replace("*", "x").replace("?", "x")


def _walk(found: Evidence, above: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Evidence]]:
    if len(above) > _DEEPEST:
        return
    for step, below in found.below():
        if below.constants or not any(below.below()):
            yield (*above, step), below
        yield from _walk(below, (*above, step))


class _Expressions:
    """Reads the expressions of a policy; a value is the places of the object that it can be taken from."""

    def __init__(self, root: Evidence) -> None:
        self.names: dict[str, tuple[Evidence, ...]] = {"object": (root,), "oldObject": (root,)}
        self.written: dict[str, str] = {}

    def read(self, spec: JSON) -> None:
        """Read all expressions below a spec; variables where they are used, and then themselves."""
        if not isinstance(spec, dict):
            return
        for each in spec.get("variables") or ():
            if isinstance(each, dict) and isinstance(each.get("expression"), str):
                self.written[str(each.get("name"))] = each["expression"]
        for name in (*_LISTS, "expressions", "conditions"):
            for each in spec.get(name) or () if isinstance(spec.get(name), list) else ():
                if isinstance(each, dict) and isinstance(each.get("expression"), str):
                    self._text(each["expression"], self.names)

    def _text(self, text: str, names: Mapping[str, tuple[Evidence, ...]]) -> tuple[Evidence, ...]:
        tree = parse_any(text)
        return () if tree is None else self._places(tree, names)

    def _variable(self, name: str) -> tuple[Evidence, ...]:
        key = f"variables.{name}"
        if key not in self.names:
            self.names[key] = ()  # a variable cannot read itself
            self.names[key] = self._text(self.written.get(name, "null"), self.names)
        return self.names[key]

    def _places(self, node: ast.Node, names: Mapping[str, tuple[Evidence, ...]]) -> tuple[Evidence, ...]:
        method = _METHODS.get(type(node))
        if method is not None:
            return method(self, node, names)
        for child in ast.children(node):
            self._places(child, names)
        return ()

    def _ident(self, node: ast.Ident, names: Mapping[str, tuple[Evidence, ...]]) -> tuple[Evidence, ...]:
        return names.get(node.name, ())

    def _select(self, node: ast.Select | ast.Has, names: Mapping[str, tuple[Evidence, ...]]) -> tuple[Evidence, ...]:
        if isinstance(node.operand, ast.Ident) and node.operand.name == "variables":
            return self._variable(node.field)
        return tuple(each.field(node.field) for each in self._places(node.operand, names))

    def _index(self, node: ast.Index, names: Mapping[str, tuple[Evidence, ...]]) -> tuple[Evidence, ...]:
        found = self._places(node.operand, names)
        match node.index:
            case ast.Literal(value=str(key)):
                return tuple(each.field(key) for each in found)
            case ast.Literal(value=int()):
                return tuple(each.element() for each in found)
        self._places(node.index, names)
        return ()

    def _call(self, node: ast.Call, names: Mapping[str, tuple[Evidence, ...]]) -> tuple[Evidence, ...]:
        operands = node.args if node.target is None else (node.target, *node.args)
        places = [self._places(each, names) for each in operands]
        constants = [found for each in operands for found in self._constants(each)]
        for each in (one for found in places for one in found):
            for constant in constants:
                each.remember(constant)
        if node.function == "_+_":
            return tuple(one for found in places for one in found)
        return places[0] if places else ()

    def _constants(self, node: ast.Node, depth: int = 0) -> Iterator[JSON]:
        """Yield the constant that an expression is, or the list of constants, written in place or as a variable."""
        match node:
            case ast.Literal(value=str() | int() | float() as value):
                yield value
            case ast.ListLiteral():
                yield [found for each in node.elements for found in self._constants(each, depth)]
            case ast.Call(function=("quantity" | "duration" | "semver" | "timestamp"), args=(single,)):
                yield from self._constants(single, depth)
            case ast.Select(operand=ast.Ident(name="variables"), field=name) if depth < _DEEPEST:
                tree = parse_any(self.written.get(name, "null"))
                if tree is not None:
                    yield from self._constants(tree, depth + 1)

    def _ternary(self, node: ast.Ternary, names: Mapping[str, tuple[Evidence, ...]]) -> tuple[Evidence, ...]:
        self._places(node.condition, names)
        return (*self._places(node.truthy, names), *self._places(node.falsy, names))

    def _loop(self, node: ast.Comprehension, names: Mapping[str, tuple[Evidence, ...]]) -> tuple[Evidence, ...]:
        found = self._places(node.range, names)
        is_map = any(each.name in _MAPS for each in found)
        elements = () if is_map else tuple(each.element() for each in found)
        inner = {**names, **dict.fromkeys(node.variables, ()), node.variables[-1]: elements}
        if node.condition is not None:
            self._places(node.condition, inner)
        made = () if node.body is None else self._places(node.body, inner)
        return found if node.kind in _KEPT else made

    def _bind(self, node: ast.Bind, names: Mapping[str, tuple[Evidence, ...]]) -> tuple[Evidence, ...]:
        return self._places(node.body, {**names, node.name: self._places(node.value, names)})

    def _optional(self, node: ast.OptionalMap, names: Mapping[str, tuple[Evidence, ...]]) -> tuple[Evidence, ...]:
        return self._places(node.body, {**names, node.name: self._places(node.target, names)})


_MAPS: Final = frozenset({"labels", "annotations", "matchLabels", "nodeSelector", "data", "stringData", "limits"})
_METHODS: Final[Mapping[type[ast.Node], Callable[[_Expressions, Any, Any], tuple[Evidence, ...]]]] = {
    ast.Ident: _Expressions._ident,
    ast.Select: _Expressions._select,
    ast.Has: _Expressions._select,
    ast.Index: _Expressions._index,
    ast.Call: _Expressions._call,
    ast.Ternary: _Expressions._ternary,
    ast.Comprehension: _Expressions._loop,
    ast.Bind: _Expressions._bind,
    ast.OptionalMap: _Expressions._optional,
}
