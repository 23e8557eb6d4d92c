"""The fields of the object that a JMESPath expression reads, and those that conditions read.

Expressions are followed on the object: projections lead to its elements, context variables to what they are
computed from. The host is not called.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pyverno.engine.blame.paths import Path, common, elements, exists, value_at
from pyverno.engine.rule import Binding, Run
from pyverno.engine.rules.bindings import VariableBinding
from pyverno.engine.rules.conditions import Condition, Conditions, as_float
from pyverno.errors import PyvernoError
from pyverno.kube.json import JSON
from pyverno.lang.jmespath.ast import Node, NodeType
from pyverno.lang.pattern.operators import compile_operator
from pyverno.lang.template import Template
from pyverno.lang.template.expression_text import ExpressionText
from pyverno.value import dataclass, replace

__all__ = ["Reader", "blamed_condition", "judged_object"]

_HOLE = "\ue000"
_MOST_TRIED = 1000
"""Fields that are tried one by one: each is looked for among the values of all."""

_TEMPLATES: Mapping[str, Path] = {"Pod": ("spec",), "CronJob": ("spec", "jobTemplate", "spec", "template", "spec")}
_CHAINS = frozenset({NodeType.SUBEXPRESSION, NodeType.PIPE, NodeType.INDEX_EXPRESSION})


def judged_object(run: Run) -> JSON:
    """Return the object that the places of a run are in: on DELETE the one that goes."""
    return run.request.old if run.is_delete else run.resource


@dataclass(frozen=True, slots=True)
class _Place:
    """The position of an expression: below the object, or still above it (`scope`, `request`, `images`)."""

    path: Path = ()
    above: str = ""


_SCOPE = _Place(above="scope")


@dataclass(frozen=True, slots=True)
class Reader:
    """Follows expressions of one rule on one object; `roots` are the places of variables such as `element`."""

    document: JSON
    kind: str
    bindings: Mapping[str, Binding]
    roots: Mapping[str, Path]
    depth: int = 0
    is_delete: bool = False

    @classmethod
    def of(cls, run: Run, roots: Mapping[str, Path] | None = None, bindings: Iterable[Binding] = ()) -> Reader:
        """Return the reader of a run; `bindings` are further context entries."""
        known = {each.name: each for each in (*run.rule.bindings, *bindings)}
        return cls(judged_object(run), run.request.gvk.kind, known, roots or {}, is_delete=run.is_delete)

    def query(self, query: ExpressionText) -> list[Path]:
        """Return the paths that an expression of its own reads."""
        return self._paths(query.expression.ast)

    def template(self, template: Template) -> list[Path]:
        """Return the paths that the variables of a template read, in their order."""
        found = (self._paths(each.expression.ast) for each in template.variables if each.expression is not None)
        return list(dict.fromkeys(path for paths in found for path in paths))

    def _paths(self, node: Node) -> list[Path]:
        if self.depth > 20:
            return []
        return [place.path for place in self._follow(node, [_SCOPE]) if not place.above]

    def _follow(self, node: Node, current: list[_Place]) -> list[_Place]:
        match node.type:
            case NodeType.FIELD:
                return [found for place in current for found in self._field(place, str(node.value))]
            case NodeType.INDEX:
                return [self._index(place, node.value) for place in current]
            case NodeType.IDENTITY | NodeType.CURRENT:
                return current
            case NodeType.LITERAL | NodeType.EXPREF:
                return []
            case NodeType.FUNCTION:
                return self._function(node, current)
            case NodeType.PROJECTION:
                left, right = node.children
                found = self._follow(left, current)
                items = found if left.type is NodeType.FLATTEN else self._items(found)
                return self._follow(right, items)
            case NodeType.VALUE_PROJECTION:
                return self._follow(node.children[1], self._items(self._follow(node.children[0], current)))
            case NodeType.FILTER_PROJECTION:
                return self._follow(node.children[1], self._items(self._follow(node.children[0], current)))
            case NodeType.FLATTEN:
                return self._flat(self._items(self._follow(node.children[0], current)))
            case NodeType.OR:
                found = self._follow(node.children[0], current)
                present = [place for place in found if not place.above and exists(self.document, place.path)]
                return present or [*found, *self._follow(node.children[1], current)]
        if node.type in _CHAINS:
            for child in node.children:
                current = self._follow(child, current)
            return current
        return [place for child in node.children for place in self._follow(child, current)]

    def _field(self, place: _Place, name: str) -> Iterator[_Place]:
        if _HOLE in name:
            yield place
            return
        match place.above, name:
            case "", _:
                yield _Place((*place.path, name))
            case "scope", "request":
                yield _Place(above="request")
            case "scope", "images":
                yield _Place(above="images")
            case "request", "object":
                yield _Place()
            case "request", "oldObject" if self.is_delete:
                yield _Place()
            case "images", _:
                yield _Place((*_TEMPLATES.get(self.kind, ("spec", "template", "spec")), name))
            case "scope", _ if name in self.roots:
                yield _Place(self.roots[name])
            case "scope", _ if isinstance(self.bindings.get(name), VariableBinding):
                yield from map(_Place, self._variable(name))

    def _variable(self, name: str) -> list[Path]:
        """Return what a context variable is computed from."""
        binding = self.bindings[name]
        assert isinstance(binding, VariableBinding)  # noqa: S101 - the caller looked
        others = {key: each for key, each in self.bindings.items() if key != name}
        inner = replace(self, bindings=others, depth=self.depth + 1)
        found: list[Path] = []
        if binding.value is not None:
            found += inner.template(binding.value)
        elif binding.query is not None:
            found += inner.query(binding.query)
        return found

    def _index(self, place: _Place, index: JSON) -> _Place:
        if place.above or not isinstance(index, int):
            return place
        items = value_at(self.document, place.path)
        if index < 0 and isinstance(items, list):
            index += len(items)
        return _Place((*place.path, index))

    def _items(self, places: list[_Place]) -> list[_Place]:
        return [_Place(path) for place in places if not place.above for path in elements(self.document, place.path)]

    def _flat(self, places: list[_Place]) -> list[_Place]:
        return [
            _Place(path)
            for place in places
            for path in (
                elements(self.document, place.path)
                if isinstance(value_at(self.document, place.path), list)
                else [place.path]
            )
        ]

    def _function(self, node: Node, current: list[_Place]) -> list[_Place]:
        found: list[_Place] = []
        for child in node.children:
            if child.type is NodeType.EXPREF:
                found = self._follow(child.children[0], self._items(found)) or found
            else:
                found = [*found, *self._follow(child, current)]
        return found


def blamed_condition(conditions: Conditions, reader: Reader, run: Run) -> Path | None:
    """Return the field that made conditions hold: of those that hold, the one that reads deepest into the object."""
    found: list[Path] = []
    for condition in _conditions(conditions):
        try:
            holds = condition.holds(run.scope, run.runtime, delete_request=run.is_delete)
        except PyvernoError:
            continue  # the review has reported these errors
        path = _field_of(condition, reader, run) if holds else None
        if path is not None:
            found.append(path)
    return max(found, key=_rank, default=None)


def _rank(path: Path) -> tuple[bool, int]:
    return path[:1] not in ((), ("kind",), ("apiVersion",)), len(path)


def _conditions(conditions: Conditions) -> Iterator[Condition]:
    for block in conditions.blocks:
        yield from (*(block.any or ()), *block.all)
    yield from conditions.listed


def _field_of(condition: Condition, reader: Reader, run: Run) -> Path | None:
    paths = reader.template(condition.key)
    if 1 < len(paths) <= _MOST_TRIED and condition.value.is_static:
        single = _single(condition, paths, reader, run)
        if single is not None:
            return single
    paths = paths or reader.template(condition.value)
    if not paths:
        return None
    return paths[0] if len(paths) == 1 else common(paths)


def _single(condition: Condition, paths: list[Path], reader: Reader, run: Run) -> Path | None:
    """Return the first of several fields for which the condition holds by itself."""
    check = compile_operator(condition.operator, as_float(condition.value.document), condition.sides)
    try:
        read = condition.key.render(run.scope, run.runtime, delete_request=run.is_delete)
        for path in paths:
            value = value_at(reader.document, path)
            if check is not None and isinstance(read, list) and value in read and check([value]):
                return path
    except PyvernoError:
        return None
    return None
