"""Run one expression for `pyverno cel eval`: its value, its cost, and the values of its sub-expressions.

There is no cluster and no network. The second run, which traces, gets the same times and random values as the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyverno.cli.cel.values import CUT, Printer
from pyverno.errors import EvaluationError, HostUnavailableError, PyvernoError
from pyverno.kube.json import JSON, JSONObject
from pyverno.lang.cel import CostMeter, Environment, Program, SubExpression
from pyverno.lang.cel.syntax import ast
from pyverno.lang.cel.syntax.spans import Span, Spans
from pyverno.lang.cel.values import Value
from pyverno.lang.runtime import Budget, Runtime
from pyverno.offline.system import System
from pyverno.value import dataclass

__all__ = ["Outcome", "Row", "as_json", "run"]

MAX_ROWS = 1_000
MAX_VISITS = 5
MAX_VALUE = 4_096
_SILENT = (ast.Literal, ast.Entry, ast.Field)


@dataclass(frozen=True, slots=True)
class Row:
    """A sub-expression in a trace: its depth, text, location and type, and its value at each visit.

    `values` are the first visits, `visits` counts all; none means that it was not evaluated.
    """

    depth: int
    text: str
    line: int
    column: int
    type: str
    values: tuple[tuple[Value, str], ...]
    visits: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one expression: a value or an error; `rows` is its trace, `hidden` the number of omitted rows."""

    expression: str
    type: str
    value: JSON
    error: str
    cost: int
    rows: tuple[Row, ...] | None = None
    hidden: int = 0


class _Recorded:
    """Clock and randomness of this machine, which can be replayed; host names are not resolved."""

    def __init__(self) -> None:
        self._system = System()
        self._now = self._system.now()
        self._drawn: list[int] = []
        self._next = 0

    def rewind(self) -> None:
        """Replay from the first value."""
        self._next = 0

    def now(self) -> int:
        """Return the time of the first call, always."""
        return self._now

    def random_bits(self, bits: int) -> int:
        """Return the next recorded bits, then new ones."""
        if self._next == len(self._drawn):
            self._drawn.append(self._system.random_bits(bits))
        self._next += 1
        return self._drawn[self._next - 1]

    def lookup_host(self, name: str) -> tuple[str, ...]:
        """Raise: there is no network."""
        raise HostUnavailableError("name look-ups are not available here")


def run(
    text: str, environment: Environment, bindings: Mapping[str, Value], *, deadline: float, is_traced: bool = False
) -> Outcome:
    """Evaluate one expression within the cost limit of its environment and until a deadline (monotonic seconds).

    Errors of the evaluation are part of the outcome; raises CompileError for what does not compile.
    """
    program = environment.compile(text)
    host, printer = _Recorded(), Printer(environment.names)
    runtime = Runtime(host, Budget(deadline=deadline))
    meter = CostMeter(limit=environment.cost_limit)
    value: JSON = None
    error = ""
    try:
        value = printer.plain(program.evaluate(bindings, runtime, meter=meter))
    except PyvernoError as problem:
        error = str(problem)
    rows: tuple[Row, ...] | None = None
    hidden = 0
    if is_traced:
        host.rewind()
        try:
            rows, hidden = _rows(program, program.trace(bindings, Runtime(host, Budget(deadline=deadline))))
        except PyvernoError as problem:
            # a limit or a failed call of the host ends the trace, as it ends the evaluation
            error = error or str(problem)
        except RecursionError:
            raise EvaluationError("the expression is nested too deeply to be traced") from None
    return Outcome(text, str(program.type), value, error, meter.spent, rows, hidden)


def _rows(program: Program, traced: tuple[SubExpression, ...]) -> tuple[tuple[Row, ...], int]:
    """Return the rows of a trace, outer expressions first, and how many do not fit."""
    visits: dict[tuple[int, str], list[SubExpression]] = {}
    for entry in traced:
        visits.setdefault((entry.offset, entry.kind), []).append(entry)
    spans = Spans(program.text, program.checked.root)
    rows: list[Row] = []
    hidden = 0
    for node, depth in _with_depth(program.checked.root, spans):
        if len(rows) == MAX_ROWS:
            hidden += 1
            continue
        seen = visits.get((node.offset, type(node).__name__), [])
        before = program.text[: (start := spans.start(node))]
        rows.append(
            Row(
                depth,
                spans.text(node),
                before.count("\n") + 1,
                start - before.rfind("\n"),
                str(program.checked.types[node.id]),
                tuple((entry.value, entry.error) for entry in seen[:MAX_VISITS]),
                len(seen),
            )
        )
    return tuple(rows), hidden


def _with_depth(root: ast.Node, spans: Spans) -> Iterator[tuple[ast.Node, int]]:
    """Yield the nodes that a trace shows: no constants, and no nodes that a macro expanded to."""
    waiting: list[tuple[ast.Node, int, Span | None]] = [(root, 0, None)]
    while waiting:
        node, depth, around = waiting.pop()
        span = spans.span(node)
        shown = span is not None and span != around and not isinstance(node, _SILENT)
        if shown:
            yield node, depth
        waiting.extend((child, depth + shown, span or around) for child in reversed(tuple(ast.children(node))))


def as_json(outcome: Outcome, printer: Printer) -> JSONObject:
    """Return an outcome for programs; a value of a trace that is long is its beginning, under `shortened`."""
    found: JSONObject = {"expression": outcome.expression, "type": outcome.type, "cost": outcome.cost}
    found |= {"error": outcome.error} if outcome.error else {"value": outcome.value}
    if outcome.rows is not None:
        found["trace"] = [_row_json(row, printer) for row in outcome.rows]
    if outcome.hidden:
        found["hidden"] = outcome.hidden
    return found


def _row_json(row: Row, printer: Printer) -> JSONObject:
    return {
        "expression": row.text,
        "line": row.line,
        "column": row.column,
        "type": row.type,
        "visits": row.visits,
        "results": [_result_json(value, error, printer) for value, error in row.values],
    }


def _result_json(value: Value, error: str, printer: Printer) -> JSONObject:
    if error:
        return {"error": error}
    brief = printer.brief(value, MAX_VALUE)
    if brief.endswith(CUT):
        return {"shortened": brief}
    return {"value": printer.plain(value)}
