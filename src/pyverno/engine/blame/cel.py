"""The field of the object that a CEL expression is false of: its sub-expression that decided, and what that reads.

On DELETE that is a field of `oldObject`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from pyverno.engine.blame.paths import Path, deepest, elements, value_at
from pyverno.engine.cel.session import CelSession, CelVariable
from pyverno.errors import EvaluationError
from pyverno.kube.json import JSON
from pyverno.lang.cel import Program
from pyverno.lang.cel.syntax import ast
from pyverno.lang.cel.values import Value
from pyverno.value import dataclass, replace

__all__ = ["blamed_expression"]

_Roots = Mapping[str, tuple[Path, ...]]
_OBJECT: _Roots = {"object": ((),)}
_DELETED: _Roots = {"oldObject": ((),)}


@dataclass(frozen=True, slots=True)
class _Visit:
    """One visit of a node during the evaluation, and the value that it had."""

    node: ast.Node
    value: Value


def blamed_expression(program: Program, session: CelSession, document: JSON, template: Path) -> Path | None:
    """Return the field that made an expression false or fail; None when it reads nothing of the object.

    `template` is the path of the pod template's spec, where the variable `images` comes from.
    """
    trace: list[tuple[ast.Node, Value, str]] = []
    with suppress(EvaluationError):
        program.evaluate_traced(session.bindings, session.run.runtime, host=session.host, trace=trace)
    visits = [_Visit(node, value) for node, value, _ in trace]
    variables = {each.name: each for each in session.variables}
    roots = _DELETED if session.run.is_delete else _OBJECT
    found = _Finder(document, variables, visits, template, roots).why(program.root, 0, roots)
    return deepest(found)


@dataclass(frozen=True, slots=True)
class _Finder:
    """Looks for reasons in one evaluation; `visits` are its sub-expressions in the order in which they ended."""

    document: JSON
    variables: Mapping[str, CelVariable]
    visits: Sequence[_Visit]
    template: Path
    objects: _Roots
    depth: int = 0

    def why(self, node: ast.Node, start: int, roots: _Roots) -> list[Path]:
        """Return the fields that made a node false (or fail), looking at visits from `start` on."""
        match node:
            case ast.Logical(operator="_&&_"):
                for term in node.terms:
                    last = self._last(term, start)
                    if last is not None and last.value is not True:
                        return self.why(term, start, roots)
            case ast.Logical():
                reasons = [self.why(term, start, roots) for term in node.terms]
                best = deepest(path for paths in reasons for path in paths)
                return [] if best is None else [best]
            case ast.Ternary():
                last = self._last(node.condition, start)
                branch = node.truthy if last is not None and last.value is True else node.falsy
                return self.why(branch, start, roots) or self.reads(node.condition, roots)
            case ast.Comprehension(kind="all") if node.condition is not None:
                return self._element(node, start, roots)
            case ast.Comprehension(kind="exists" | "existsOne"):
                return self.reads(node.range, roots)
            case ast.Bind():
                bound = {**roots, node.name: tuple(self.reads(node.value, roots))}
                return self.why(node.body, start, bound)
        return self.reads(node, roots)

    def _element(self, node: ast.Comprehension, start: int, roots: _Roots) -> list[Path]:
        """Return why the condition is false for the element that ended the loop."""
        ranges = self.reads(node.range, roots)
        begin = max(
            (at for at, each in enumerate(self.visits) if at >= start and each.node is node.range), default=start
        )
        assert node.condition is not None  # noqa: S101 - the caller looked
        ended = [at for at, each in enumerate(self.visits) if at > begin and each.node is node.condition]
        items = [path for each in ranges for path in elements(self.document, each)]
        if not ended or not items or len(ended) > len(items):
            return ranges
        # the loop stops at the first false element; one that errs may be followed by others
        wrong = next((n for n, at in enumerate(ended) if self.visits[at].value is not True), len(ended) - 1)
        item = items[wrong]
        key: Path = item
        names = dict.fromkeys(node.variables[-1:], (key,))
        if isinstance(value_at(self.document, item[:-1]), dict) and len(node.variables) == 1:
            names = {node.variables[0]: (item,)}
        inner = self.why(node.condition, ended[wrong - 1] if wrong else begin, {**roots, **names})
        return inner or [item]

    def _last(self, node: ast.Node, start: int) -> _Visit | None:
        return next((each for each in reversed(self.visits[start:]) if each.node is node), None)

    def reads(self, node: ast.Node, roots: _Roots) -> list[Path]:
        """Return the fields of the object that a node reads; of a chain of fields, its end."""
        match node:
            case ast.Ident():
                return list(roots.get(node.name, ()))
            case ast.Select() | ast.Has():
                return self._select(node, roots)
            case ast.Index():
                below = self.reads(node.operand, roots)
                if isinstance(node.index, ast.Literal) and isinstance(node.index.value, (str, int)):
                    return [(*path, node.index.value) for path in below]
                return below + self.reads(node.index, roots)
            case ast.Comprehension():
                ranges = self.reads(node.range, roots)
                return ranges if node.kind in ("map", "filter") else self._inside(node, ranges, roots)
            case ast.Bind():
                return self.reads(node.body, {**roots, node.name: tuple(self.reads(node.value, roots))})
            case ast.OptionalMap():
                return self.reads(node.body, {**roots, node.name: tuple(self.reads(node.target, roots))})
        return [path for child in ast.children(node) for path in self.reads(child, roots)]

    def _inside(self, node: ast.Comprehension, ranges: list[Path], roots: _Roots) -> list[Path]:
        return ranges or [path for part in (node.condition, node.body) if part for path in self.reads(part, roots)]

    def _select(self, node: ast.Select | ast.Has, roots: _Roots) -> list[Path]:
        operand, name = node.operand, node.field
        if isinstance(operand, ast.Ident):
            if operand.name == "variables" and name in self.variables and self.depth < 20:
                inner = replace(self, depth=self.depth + 1)
                return inner.reads(self.variables[name].program.root, self.objects)
            if operand.name == "request" and name in self.objects:
                return [()]
            if operand.name == "images":
                return [(*self.template, name)]
        return [(*path, name) for path in self.reads(operand, roots)]
