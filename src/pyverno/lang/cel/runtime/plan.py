"""The planner: a checked tree to closures.

Each node becomes a `Step`; its static cost follows cel-go's cost tracker (interpreter/runtimecost.go) over the
expansions that macros stand for. Constant lists, maps and conversions are computed once.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from pyverno.errors import EvaluationError
from pyverno.lang.cel.checking.checked import Checked
from pyverno.lang.cel.checking.unification import is_optional
from pyverno.lang.cel.declarations import StructProvider
from pyverno.lang.cel.faults import OperandError, converted, with_operands
from pyverno.lang.cel.regex import Pattern, kept_pattern
from pyverno.lang.cel.runtime import loops, steps
from pyverno.lang.cel.runtime.calls import call_run, static_cost
from pyverno.lang.cel.runtime.evaluation import EVALUATION, FIRST_SLOT, UNSET, Evaluation, Frame, Traced
from pyverno.lang.cel.runtime.operators import OPERATORS
from pyverno.lang.cel.runtime.steps import Step
from pyverno.lang.cel.syntax import ast
from pyverno.lang.cel.values import Optional, Value, new_map
from pyverno.lang.runtime import Runtime
from pyverno.value import dataclass

__all__ = ["KUBERNETES_COSTS", "CostRules", "Plan", "plan"]

LIST_COST: Final = 10
MAP_COST: Final = 30
STRUCT_COST: Final = 40


_CONVERSIONS: Final = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)


@dataclass(frozen=True, slots=True)
class CostRules:
    """Rules for counting cost: Kubernetes folds constants for free and does not charge `has()`."""

    folds_constants: bool = True
    presence_is_free: bool = True


KUBERNETES_COSTS: Final = CostRules()


@dataclass(frozen=True, slots=True)
class Plan:
    """A runnable expression: its step, the slots of its variables, and a frame to copy for each run.

    `patterns` are the regular expressions that it writes.
    """

    step: Step
    slots: tuple[tuple[str, int], ...]
    frame: Frame
    patterns: tuple[Pattern, ...] = ()


def plan(
    checked: Checked,
    structs: StructProvider,
    rules: CostRules,
    *,
    strict_presence: bool = False,
    traced: bool = False,
) -> Plan:
    """Return the closures of a checked tree.

    With `strict_presence` it is an error to ask a scalar or null for a field. With `traced` every node records its
    value. Raises EvaluationError for constants that cannot be computed.
    """
    planner = _Planner(checked, structs, rules, strict_presence=strict_presence, traced=traced)
    step = planner.visit(checked.root)
    slots = tuple(planner.slots.items())
    return Plan(step, slots, [0, 0, None] + [UNSET] * (planner.size - FIRST_SLOT), tuple(planner.patterns))


class _Planner:
    def __init__(
        self, checked: Checked, structs: StructProvider, rules: CostRules, *, strict_presence: bool, traced: bool
    ) -> None:
        self._checked = checked
        self._structs = structs
        self._rules = rules
        self._strict = strict_presence
        self._traced = traced
        self._locals: list[tuple[str, Step]] = []
        self._made: dict[int, Step] = {}
        self.slots: dict[str, int] = {}
        self.size = FIRST_SLOT
        self.patterns: list[Pattern] = []

    def visit(self, node: ast.Node) -> Step:
        """Return the step of a node."""
        made = self._made.pop(node.id, None)
        if made is not None:
            return made
        for inner in ast.left_calls(node)[:-1]:
            self._made[inner.id] = self._finish(inner)
        return self._finish(node)

    def _finish(self, node: ast.Node) -> Step:
        step = _VISITORS[type(node)](self, node)
        return self._record_step(node, step) if self._traced and not isinstance(node, ast.Literal) else step

    def _record_step(self, node: ast.Node, step: Step) -> Step:
        run, id_ = step.run, node.id

        def record(f: Frame) -> Value:
            trace = f[EVALUATION].trace
            try:
                value = run(f)
            except EvaluationError as error:
                trace.append(Traced(id_, None, error.message))
                raise
            trace.append(Traced(id_, value))
            return value

        return Step(record, step.cost, step.attribute, step.base, step.constant)

    def _new_slot(self) -> int:
        self.size += 1
        return self.size - 1

    # names

    def _literal(self, node: ast.Literal) -> Step:
        return steps.constant_step(node.value)

    def _ident(self, node: ast.Ident) -> Step:
        return self._plan_name(node) or _failing(f"undeclared reference to '{node.name}' (in container '')")

    def _plan_name(self, node: ast.Node) -> Step | None:
        """Return the step of a name that the checker resolved."""
        reference = self._checked.references.get(node.id)
        if reference is None:
            return None
        if reference.constant is not None:
            return steps.constant_step(reference.constant.value)
        if reference.local:
            return next(step for name, step in reversed(self._locals) if name == reference.name)
        slot = self.slots.get(reference.name)
        if slot is None:
            slot = self.slots[reference.name] = self._new_slot()
        # the names of libraries (`resource`, `json`) hold no data
        is_library = self._checked.types[node.id].kind == "opaque"
        return steps.variable_step(slot, reference.name, is_written=is_library)

    # selections

    def _operand(self, node: ast.Node) -> tuple[Step, int]:
        """Return an operand's step and the cost up to it; cel-go wraps what is no attribute into one, for 1."""
        step = self.visit(node)
        return (step, step.cost) if step.attribute else (step, step.cost + 1)

    def _is_optional(self, node: ast.Node) -> bool:
        return is_optional(self._checked.types[node.id])

    def _select(self, node: ast.Select) -> Step:
        named = self._plan_name(node)
        if named is not None:
            return named
        operand, cost = self._operand(node.operand)
        base = operand.base if operand.attribute else 1
        if node.optional or self._is_optional(node.operand):
            found = steps.optional_field_run(operand.run, node.field, strict=self._strict)
            return Step(found, cost, attribute=True, base=base)
        run = steps.field_run(operand.run, node.field, strict=self._strict)
        if operand.root < 0 or self._traced:
            return Step(run, cost + 1, attribute=True, base=base)
        path = (*operand.path, node.field)
        # the exact closure behind a fused chain finds the right error and reads unusual maps
        fast = steps.chain_run(operand.root, path, run)
        return Step(fast, cost + 1, attribute=True, base=base, root=operand.root, path=path)

    def _has(self, node: ast.Has) -> Step:
        operand, cost = self._operand(node.operand)
        free = self._rules.presence_is_free
        run = steps.has_run(operand.run, node.field, strict=self._strict)
        return Step(run, cost + (0 if free else 1), attribute=True, base=int(not free))

    def _index(self, node: ast.Index) -> Step:
        operand, cost = self._operand(node.operand)
        key = self.visit(node.index)
        if not key.is_constant:
            cost += key.cost - (1 if key.attribute else 0)
        base = operand.base if operand.attribute else 1
        if node.optional or self._is_optional(node.operand):
            found = steps.optional_index_run(operand.run, key.run, strict=self._strict)
            return Step(found, cost, attribute=True, base=base)
        run = steps.index_run(operand.run, key.run, is_written=key.is_written, strict=self._strict)
        return Step(run, cost + 1, attribute=True, base=base)

    # operators and calls

    def _logical(self, node: ast.Logical) -> Step:
        terms = tuple(self.visit(term) for term in node.terms)
        return Step(steps.logical_run(terms, decisive=node.operator == "_||_"), terms[0].cost)

    def _ternary(self, node: ast.Ternary) -> Step:
        condition = self.visit(node.condition)
        run = steps.ternary_run(condition, self.visit(node.truthy), self.visit(node.falsy))
        return Step(run, condition.cost, attribute=True, base=0)

    def _call(self, node: ast.Call) -> Step:
        resolution = self._checked.resolutions.get(node.id)
        if resolution is None:
            return _failing(f"unknown function: {node.function}")
        operands = node.args if node.target is None or resolution.drops_target else (node.target, *node.args)
        args = tuple(self.visit(operand) for operand in operands)
        cost = sum(step.cost for step in args)
        is_written = all(step.is_written for step in args)
        special = OPERATORS.get(resolution.function)
        if special is not None:
            made = special(resolution, args, cost, self._rules.folds_constants)
            return Step(made.run, made.cost, is_written=True) if is_written else made
        self._keep_pattern(resolution.overloads[0].pattern, args)
        # a call to the host returns data, whatever its operands are
        gives_data = any(overload.in_context and not overload.metered for overload in resolution.overloads)
        step = Step(
            call_run(resolution.function, resolution.overloads, args, is_written=is_written),
            cost + static_cost(resolution.overloads),
            is_written=is_written and not gives_data,
        )
        if resolution.function in _CONVERSIONS and len(args) == 1 and args[0].is_constant:
            return self._fold(step)
        return step

    def _keep_pattern(self, position: int, args: tuple[Step, ...]) -> None:
        """Compile a regular expression that is a literal of the expression; an invalid one fails when it is used."""
        text = args[position].constant if 0 <= position < len(args) else None
        if isinstance(text, str):
            with suppress(EvaluationError):
                self.patterns.append(kept_pattern(text))

    def _fold(self, step: Step) -> Step:
        if not self._rules.folds_constants:
            return step
        evaluation = Evaluation(Runtime())
        evaluation.trace = [] if self._traced else None
        frame: Frame = [0, 0, evaluation]
        try:
            value = step.run(frame)
            # a traced node runs with its parts, so that each of them is recorded
            return Step(step.run, constant=value, is_written=True) if self._traced else steps.constant_step(value)
        except EvaluationError:
            # the error shows when the expression runs, as it does for arguments that are not constant
            return step

    # literals with parts

    def _list(self, node: ast.ListLiteral) -> Step:
        parts = tuple(self.visit(element) for element in node.elements)
        runs = tuple(part.run for part in parts)
        optionals = node.optionals
        cost = sum(part.cost for part in parts) + LIST_COST
        if all(part.is_constant for part in parts) and not optionals:
            folded = 0 if self._rules.folds_constants else cost
            return steps.constant_step([part.constant for part in parts], folded)
        is_written = all(part.is_written for part in parts)
        if not optionals:
            return Step(lambda f: [run(f) for run in runs], cost, is_written=is_written)
        marked = tuple((run, position in optionals) for position, run in enumerate(runs))

        def run(f: Frame) -> Value:
            result: list[Value] = []
            for element, optional in marked:
                value = element(f)
                if not optional:
                    result.append(value)
                elif not isinstance(value, Optional):
                    raise EvaluationError("cannot initialize optional list element from non-optional value")
                elif value.present:
                    result.append(value.value)
            return result

        return Step(run, cost)

    def _map(self, node: ast.MapLiteral) -> Step:
        parts = tuple((self.visit(entry.key), self.visit(entry.value), entry.optional) for entry in node.entries)
        cost = sum(key.cost + value.cost for key, value, _ in parts) + MAP_COST
        runs = tuple((key.run, value.run, optional) for key, value, optional in parts)
        has_written_keys = all(key.is_written for key, _, _ in parts)

        def run(f: Frame) -> Value:
            pairs: list[tuple[Value, Value]] = []
            for key, compute, optional in runs:
                name = key(f)
                value = compute(f)
                if optional:
                    if not isinstance(value, Optional):
                        entry = f"entry '{name}'" if has_written_keys else "entry"
                        raise EvaluationError(f"cannot initialize optional {entry} from non-optional value")
                    if not value.present:
                        continue
                    value = value.value
                pairs.append((name, value))
            try:
                return new_map(pairs)
            except OperandError as error:
                raise (with_operands(error) if has_written_keys else error) from None

        step = Step(run, cost, is_written=has_written_keys and all(value.is_written for _, value, _ in parts))
        if all(key.is_constant and value.is_constant and not optional for key, value, optional in parts):
            return self._fold(step)
        return step

    def _struct(self, node: ast.StructLiteral) -> Step:
        name = self._checked.struct_names.get(node.id)
        if name is None:
            return _failing(f"unknown type: {node.type_name}")
        parts = tuple((member.name, self.visit(member.value), member.optional) for member in node.fields)
        runs = tuple((field, step.run, optional) for field, step, optional in parts)
        structs = self._structs

        def run(f: Frame) -> Value:
            fields: dict[str, Value] = {}
            for field, compute, optional in runs:
                value = compute(f)
                if optional:
                    if not isinstance(value, Optional):
                        raise EvaluationError(f"cannot initialize optional entry '{field}' from non-optional value")
                    if not value.present:
                        continue
                    value = value.value
                fields[field] = value
            try:
                return structs.construct(name, fields)
            except Exception as error:
                raise converted(name, error) from None

        return Step(run, sum(step.cost for _, step, _ in parts) + STRUCT_COST)

    # macros

    def _comprehension(self, node: ast.Comprehension) -> Step:
        range_ = self.visit(node.range)
        slots = tuple(self._new_slot() for _ in node.variables)
        before = len(self._locals)
        self._locals += [(name, steps.local_step(slot)) for name, slot in zip(node.variables, slots, strict=True)]
        predicate = self.visit(node.condition) if node.condition is not None else None
        body = self.visit(node.body) if node.body is not None else None
        del self._locals[before:]
        if node.kind in ("all", "exists") and predicate is not None:
            run = loops.quantifier_run(range_, slots, predicate, decisive=node.kind == "exists")
            return Step(run, range_.cost + 1)
        if node.kind == "existsOne" and predicate is not None:
            return Step(loops.exactly_one_run(range_, slots, predicate), range_.cost + 2)
        folds = self._rules.folds_constants
        if node.kind in ("map", "filter", "transformList"):
            literal = 0 if folds and body is not None and body.is_constant else LIST_COST
            run = loops.collect_run(range_, slots, predicate, body, literal)
            return Step(run, range_.cost + 1 + (0 if folds else LIST_COST))
        if body is None:
            return _failing(f"{node.kind} without a body")
        run = loops.insert_run(range_, slots, predicate, body, entries=node.kind == "transformMapEntry")
        return Step(run, range_.cost + 1 + (0 if folds else MAP_COST))

    def _bind(self, node: ast.Bind) -> Step:
        value = self.visit(node.value)
        slot = self._new_slot()
        bound = steps.bound_step(slot, value) if not value.is_constant else steps.constant_step(value.constant, 1)
        # a constant is charged as the name that stands for it
        self._locals.append((node.name, Step(bound.run, 1, attribute=True, base=1)))
        body = self.visit(node.body)
        self._locals.pop()
        return Step(loops.bind_run(slot, body.run), body.cost + (0 if self._rules.folds_constants else LIST_COST))

    def _optional_map(self, node: ast.OptionalMap) -> Step:
        target = self.visit(node.target)
        slot = self._new_slot()
        self._locals.append((node.name, steps.local_step(slot)))
        body = self.visit(node.body)
        self._locals.pop()
        extra = 0 if self._rules.folds_constants else LIST_COST
        run = loops.optional_map_run(target, slot, body, flat=node.flat, extra=extra)
        return Step(run, target.cost + 1, attribute=True, base=0)


def _failing(message: str) -> Step:
    def run(_: Frame) -> Value:
        raise EvaluationError(message)

    return Step(run, 1)


_VISITORS: Final[dict[type[ast.Node], Callable[..., Step]]] = {
    ast.Literal: _Planner._literal,
    ast.Ident: _Planner._ident,
    ast.Select: _Planner._select,
    ast.Has: _Planner._has,
    ast.Index: _Planner._index,
    ast.Call: _Planner._call,
    ast.Logical: _Planner._logical,
    ast.Ternary: _Planner._ternary,
    ast.ListLiteral: _Planner._list,
    ast.MapLiteral: _Planner._map,
    ast.StructLiteral: _Planner._struct,
    ast.Comprehension: _Planner._comprehension,
    ast.Bind: _Planner._bind,
    ast.OptionalMap: _Planner._optional_map,
}
