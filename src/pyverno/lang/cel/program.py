"""A compiled expression: run it, trace it, or ask what it uses.

A program is immutable and may run in many threads at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from pyverno.errors import BudgetExceededError, EvaluationError, HostError
from pyverno.lang.cel.checking.checked import Checked
from pyverno.lang.cel.declarations import StructProvider
from pyverno.lang.cel.fast.passcheck import compile_pass_check
from pyverno.lang.cel.faults import OperandError, converted
from pyverno.lang.cel.host import NO_CEL_HOST, CelHost
from pyverno.lang.cel.runtime.evaluation import COST, EVALUATION, CostMeter, Evaluation, Traced
from pyverno.lang.cel.runtime.plan import CostRules, Plan, plan
from pyverno.lang.cel.syntax import ast
from pyverno.lang.cel.types import Type
from pyverno.lang.cel.values import Value
from pyverno.lang.runtime import Runtime
from pyverno.value import dataclass, field

if TYPE_CHECKING:
    from pyverno.lang.cel.runtime.evaluation import Frame

__all__ = ["EvaluationSettings", "Program", "SubExpression"]


class EvaluationSettings(Protocol):
    """The settings that a program keeps of its environment."""

    @property
    def structs(self) -> StructProvider:
        """The provider of struct types."""
        ...

    @property
    def cost_rules(self) -> CostRules:
        """The rules for counting cost."""
        ...

    @property
    def strict_presence(self) -> bool:
        """Whether it is an error to ask a scalar or null for a field."""
        ...

    @property
    def cost_limit(self) -> int:
        """The limit of one evaluation."""
        ...

    @property
    def globals(self) -> Mapping[str, Value]:
        """Values of the libraries' own variables."""
        ...


@dataclass(frozen=True, slots=True)
class SubExpression:
    """A traced node: its offset in the text, its kind, its type, and its value or error."""

    offset: int
    kind: str
    type: Type
    value: Value
    error: str


@dataclass(frozen=True, slots=True)
class Program:
    """One compiled expression.

    `type` is what the checker deduced; `variables` are the names it needs from the caller; `functions` those it calls.
    """

    text: str
    checked: Checked = field(repr=False)
    settings: EvaluationSettings = field(repr=False)
    _plan: Plan | None = field(init=False, repr=False, compare=False)
    _globals: Mapping[str, Value] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_plan", None)

    def _prepare(self) -> Plan:
        """Make the closures on first use: many expressions (messages, copies for other kinds) never run."""
        made = self._build_plan()
        object.__setattr__(self, "_plan", made)
        return made

    def _prepare_traced(self) -> Plan:
        """Make closures that record what they find; a program that is traced often keeps them."""
        return self._build_plan(traced=True)

    def _build_plan(self, *, traced: bool = False) -> Plan:
        around = self.settings
        try:
            made = plan(
                self.checked, around.structs, around.cost_rules, strict_presence=around.strict_presence, traced=traced
            )
        except RecursionError:
            raise EvaluationError("the expression or its data is nested too deeply") from None
        bound = around.globals
        object.__setattr__(self, "_globals", {name: bound[name] for name, _ in made.slots if name in bound})
        return made

    @property
    def type(self) -> Type:
        """The type of the result."""
        return self.checked.type

    @property
    def variables(self) -> frozenset[str]:
        """The names of the variables that the expression reads."""
        references = self.checked.references.values()
        return frozenset(each.name for each in references if not each.local and each.constant is None)

    @property
    def functions(self) -> frozenset[str]:
        """The names of the functions that the expression calls, operators included."""
        return frozenset(resolution.function for resolution in self.checked.resolutions.values())

    @property
    def fields(self) -> frozenset[str]:
        """The dotted paths that the expression selects from variables (`variables.x`, `object.spec`)."""
        found = (_path(node) for node in ast.walk(self.checked.root) if isinstance(node, (ast.Select, ast.Has)))
        return frozenset(path for path in found if path)

    def evaluate(
        self,
        bindings: Mapping[str, Value],
        runtime: Runtime | None = None,
        *,
        host: CelHost = NO_CEL_HOST,
        meter: CostMeter | None = None,
    ) -> Value:
        """Return the value of the expression for these variables.

        A variable without binding is an error where it is used. `meter` counts the cost of several expressions.
        Raises EvaluationError for CEL errors, BudgetExceededError for limits (cost, deadline, sizes).

        >>> from pyverno.lang.cel import STANDARD, types
        >>> program = STANDARD.with_variables({"x": types.DYN}).compile("x.all(i, i < 3)")
        >>> program.evaluate({"x": [1, 2]})
        True
        """
        made = self._plan or self._prepare()
        frame, _ = self._frame(made, bindings, runtime, host, meter)
        return self._run(made, frame, meter)

    def cost(self, bindings: Mapping[str, Value], runtime: Runtime | None = None) -> int:
        """Return the cost of one evaluation, its errors included."""
        meter = CostMeter(limit=self.settings.cost_limit)
        with suppress(EvaluationError):
            self.evaluate(bindings, runtime, meter=meter)
        return meter.spent

    def trace(
        self, bindings: Mapping[str, Value], runtime: Runtime | None = None, *, host: CelHost = NO_CEL_HOST
    ) -> tuple[SubExpression, ...]:
        """Return the value or error of every sub-expression that ran, in order of completion.

        Shows loops with every visit; errors of the whole expression are in the last entry.
        """
        found: list[tuple[ast.Node, Value, str]] = []
        with suppress(EvaluationError):
            self.evaluate_traced(bindings, runtime, host=host, trace=found)
        types = self.checked.types
        return tuple(
            SubExpression(node.offset, type(node).__name__, types[node.id], value, error)
            for node, value, error in found
        )

    def evaluate_traced(
        self,
        bindings: Mapping[str, Value],
        runtime: Runtime | None = None,
        *,
        host: CelHost = NO_CEL_HOST,
        meter: CostMeter | None = None,
        trace: list[tuple[ast.Node, Value, str]],
    ) -> Value:
        """Do what `evaluate` does, and append every node that ran to `trace`, with its value or error."""
        made = self._prepare_traced()
        frame, evaluation = self._frame(made, bindings, runtime, host, meter)
        entries: list[Traced] = []
        evaluation.trace = entries
        try:
            return self._run(made, frame, meter)
        finally:
            nodes = {node.id: node for node in ast.walk(self.checked.root)}
            trace += [(nodes[entry.node], entry.value, entry.error) for entry in entries]

    @property
    def root(self) -> ast.Node:
        """The tree of the expression."""
        return self.checked.root

    def pass_check(self) -> Callable[[Mapping[str, Value]], bool] | None:
        """Return the generated pass-check, or None when the expression has parts that it does not cover.

        The law: when it returns True, `evaluate` returns True; False or an exception proves nothing.
        """
        return compile_pass_check(self.checked, limit=self.settings.cost_limit)

    def _frame(
        self,
        made: Plan,
        bindings: Mapping[str, Value],
        runtime: Runtime | None,
        host: CelHost,
        meter: CostMeter | None,
    ) -> tuple[Frame, Evaluation]:
        limit = self.settings.cost_limit
        if meter is not None:
            limit = min(limit, max(meter.left, 0))
        frame = made.frame.copy()
        evaluation = Evaluation(runtime if runtime is not None else Runtime(), host, limit, frame)
        frame[COST] = made.step.cost
        frame[EVALUATION] = evaluation
        for name, slot in made.slots:
            if name in bindings:
                frame[slot] = bindings[name]
            elif name in self._globals:
                frame[slot] = self._globals[name]
        return frame, evaluation

    def _run(self, made: Plan, frame: Frame, meter: CostMeter | None) -> Value:
        evaluation: Evaluation = frame[EVALUATION]
        try:
            evaluation.checkpoint(frame)
            value = made.step.run(frame)
            if frame[COST] > evaluation.limit:
                evaluation.checkpoint(frame)
            return value
        except OperandError as error:
            raise EvaluationError(error.message) from None
        except (EvaluationError, BudgetExceededError, HostError):
            raise
        except Exception as error:
            raise converted("the expression", error) from None
        finally:
            if meter is not None:
                meter.spent += frame[COST]
            # the evaluation and its frame hold each other, and the frame holds the object
            frame.clear()


def _path(node: ast.Node) -> str | None:
    parts: list[str] = []
    while isinstance(node, (ast.Select, ast.Has)):
        parts.append(node.field)
        node = node.operand
    return ".".join([node.name, *reversed(parts)]) if isinstance(node, ast.Ident) else None
