"""CEL expressions that record their value and that of every sub-expression that ran."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from pyverno.engine.explain.nodes import ExpressionNode, FieldPath, Held, Hidden, Node, PartNode, Shown
from pyverno.engine.explain.recorder import Recorder
from pyverno.engine.explain.secrecy import Secrecy, shortened
from pyverno.errors import EvaluationError, PyvernoError
from pyverno.kube.json import JSON
from pyverno.lang.cel import CostMeter, Program
from pyverno.lang.cel.host import NO_CEL_HOST, CelHost
from pyverno.lang.cel.json_values import to_json
from pyverno.lang.cel.runtime.plan import Plan
from pyverno.lang.cel.syntax import ast
from pyverno.lang.cel.syntax.spans import Spans
from pyverno.lang.cel.values import Value, type_name
from pyverno.lang.runtime import Runtime

__all__ = ["RecordedProgram"]

MAX_PARTS = 500
"""Sub-expressions that one evaluation records; loops have more."""
MAX_CONSTANTS = 50


class RecordedProgram(Program):
    """An expression that records its evaluation. `place` is where it is in the policy."""

    __slots__ = ("_constants", "_place", "_reads", "_recorder", "_secrecy", "_tainted", "_texts", "_traced")
    _secrecy: Secrecy
    _constants: tuple[JSON, ...]
    _place: FieldPath
    _reads: tuple[FieldPath, ...]
    _recorder: Recorder
    _tainted: dict[int, str]
    _texts: Mapping[int, str]
    _traced: Plan | None

    @classmethod
    def of(cls, program: Program, recorder: Recorder, secrecy: Secrecy, place: FieldPath) -> RecordedProgram:
        """Return the same expression, recorded."""
        made = cls(program.text, program.checked, program.settings)
        for name, value in (
            ("_recorder", recorder),
            ("_secrecy", secrecy),
            ("_place", place),
            ("_tainted", secrecy.tainted(program)),
            ("_traced", None),
        ):
            object.__setattr__(made, name, value)
        return made

    def _prepare_traced(self) -> Plan:
        """Make the closures with the first evaluation, and what its records say of the text."""
        made = self._traced
        if made is None:
            root = self.checked.root
            object.__setattr__(self, "_reads", self._secrecy.fields(self))
            object.__setattr__(self, "_constants", _constants(root))
            object.__setattr__(self, "_texts", _texts(self.text, root))
            made = self._build_plan(traced=True)
            object.__setattr__(self, "_traced", made)
        return made

    def evaluate(
        self,
        bindings: Mapping[str, Value],
        runtime: Runtime | None = None,
        *,
        host: CelHost = NO_CEL_HOST,
        meter: CostMeter | None = None,
    ) -> Value:
        """Evaluate by the exact closures, and record what they found."""
        trace: list[tuple[ast.Node, Value, str]] = []
        computed: list[Node] = []
        try:
            with self._recorder.inside() as computed:
                found = self.evaluate_traced(bindings, runtime, host=host, meter=meter, trace=trace)
        except PyvernoError as error:
            self._record(trace, computed, None, error.message)
            raise
        value = self._record_value(self.checked.root.id, found, is_outcome=isinstance(found, bool))
        self._record(trace, computed, value, "")
        return found

    def _record(
        self, trace: list[tuple[ast.Node, Value, str]], computed: list[Node], value: Held | None, error: str
    ) -> None:
        children = (*computed, *self._parts(trace))
        self._recorder.add(ExpressionNode(self._place, self.text, value, error, self._reads, self._constants, children))

    def _parts(self, trace: list[tuple[ast.Node, Value, str]]) -> Iterator[PartNode]:
        for node, value, error in trace[-MAX_PARTS:]:
            is_field = isinstance(node, (ast.Ident, ast.Select)) and isinstance(value, (dict, list))
            if node is self.checked.root or (is_field and not error):
                continue  # a map on the way to a field decides nothing
            yield PartNode(
                node.offset, self._texts.get(node.id, ""), None if error else self._record_value(node.id, value), error
            )

    def _record_value(self, node: int, value: Value, *, is_outcome: bool = False) -> Held:
        source = self._tainted.get(node, "")
        if source and not is_outcome:
            return Hidden(source)
        return Shown(_plain(value))


def _texts(text: str, root: ast.Node) -> Mapping[int, str]:
    """Return the texts of the nodes that have one."""
    try:
        spans = Spans(text, root)
    except Exception:  # a text that was made from parts has no spans; offsets remain
        return {}
    found: dict[int, str] = {}
    for node in ast.walk(root):
        with suppress(KeyError, IndexError):
            found[node.id] = spans.text(node)
    return found


def _constants(root: ast.Node) -> tuple[JSON, ...]:
    found = [_plain(node.value) for node in ast.walk(root) if isinstance(node, ast.Literal)]
    return tuple(each for number, each in enumerate(found) if each not in found[:number])[:MAX_CONSTANTS]


def _plain(value: Value) -> JSON:
    if isinstance(value, (dict, list)):
        value = shortened(value)
    try:
        return shortened(to_json(value))
    except (EvaluationError, RecursionError):
        return f"({type_name(value)})"
