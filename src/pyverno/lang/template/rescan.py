"""Compatibility: templates whose values are scanned for variables again, as Kyverno does.

Off by default, because it lets data act as a template. Every round looks at the deadline and at the size of the
text, and there are at most 16 of them. Nothing else may import this module's way of reading values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyverno.errors import BudgetExceededError, SubstitutionError
from pyverno.kube.json import JSON, JSONObject
from pyverno.lang.runtime import Runtime
from pyverno.lang.template.location import join_path
from pyverno.lang.template.slot import Query, byte_length, compile_slot, text_of
from pyverno.lang.template.syntax import MAX_ROUNDS, PRIVATE, VARIABLE, Occurrence, split_expression
from pyverno.value import dataclass

__all__ = ["render_rescanning"]

_DATA = "a variable out of a value"
MAX_EXPRESSION = 4096
"""Longest expression that is taken out of a value, in characters."""


def render_rescanning(
    document: JSON, path: str, queries: Mapping[str, Query]
) -> Callable[[Mapping[str, JSON], Runtime, bool, str], JSON]:
    """Return the closure that renders a document and scans results again; `queries` are those compiled at load."""

    def render(scope: Mapping[str, JSON], runtime: Runtime, deleting: bool, prefix: str) -> JSON:
        return _Pass(scope, runtime, deleting, prefix, queries).node(document, path, 0)

    return render


@dataclass(frozen=True, slots=True)
class _Pass:
    """One rendering."""

    scope: Mapping[str, JSON]
    runtime: Runtime
    deleting: bool
    prefix: str
    queries: Mapping[str, Query]

    def node(self, value: JSON, path: str, depth: int) -> JSON:
        """Render a value; `depth` counts values inside values."""
        if isinstance(value, str):
            value = self.text(value, path)
            if not isinstance(value, dict | list):
                return value
            depth += 1
            if depth > MAX_ROUNDS:
                raise _too_many_rounds()
        if isinstance(value, dict | list):
            self.runtime.budget.charge_steps(1 + len(value))
        if isinstance(value, dict):
            return self.map(value, path, depth)
        if isinstance(value, list):
            return [self.node(item, join_path(path, index), depth) for index, item in enumerate(value)]
        return value

    def map(self, entries: JSONObject, path: str, depth: int) -> JSON:
        result: JSONObject = {}
        for key, value in entries.items():
            name = self.text(key, path)
            if name is not None and not isinstance(name, str):
                raise SubstitutionError("expected string after substituting variables in a key")
            result[key if name is None else name] = self.node(value, join_path(path, key), depth)
        return result

    def text(self, text: str, path: str) -> JSON:
        """Render a string: scan, replace, and scan the result again."""
        for _ in range(MAX_ROUNDS):
            found = VARIABLE.findall(text) if "{{" in text else ()
            if not found:
                return text.replace("\\{{", "{{")
            self.runtime.budget.check_deadline()
            self.runtime.budget.charge_bytes(len(text), per_step=64)
            original = text
            is_shallow = False
            for before, variable in found:
                expression, is_shallow = split_expression(variable)
                value = self.value(expression, path)
                if variable == original:
                    return value
                inserted = text_of(value, self.runtime.budget)
                if is_shallow:
                    inserted = inserted.replace("{{", "\\{{")
                size = byte_length(text) + byte_length(inserted)
                self.runtime.budget.charge_bytes(size)
                self.runtime.budget.produce(size)
                text = text.replace(before + variable, before + inserted, 1)
            if is_shallow:
                return text.replace("\\{{", "{{")
        if VARIABLE.search(text):
            raise _too_many_rounds()
        return text.replace("\\{{", "{{")

    def value(self, text: str, path: str) -> JSON:
        self.runtime.budget.charge_steps()
        text_now = text.replace("request.object", "request.oldObject") if self.deleting else text
        if text != "@" and (known := self.queries.get(text_now)) is not None:
            return known.evaluate(self.scope, self.runtime, (), self.prefix + path)
        if PRIVATE.search(text):  # would read as a placeholder
            raise Query(text, None, source=_DATA).failure("incorrect query: invalid character", self.prefix + path)
        self.runtime.budget.charge_bytes(len(text), per_step=1)  # parsed now, and never remembered
        if len(text) > MAX_EXPRESSION:
            raise BudgetExceededError(
                f"a variable out of a value is longer than {MAX_EXPRESSION} characters", resource="bytes"
            )
        slot = compile_slot(Occurrence(text, (), _DATA), path, is_data=True)
        try:
            return slot.evaluate(self.scope, self.runtime, self.deleting, self.prefix, ())
        except SubstitutionError as error:
            # the reason may quote the expression, which is data
            problem = Query(text, None, source=_DATA)
            raise problem.failure("it has no value", self.prefix + path, is_missing=error.is_missing) from None


def _too_many_rounds() -> BudgetExceededError:
    return BudgetExceededError(f"variables were substituted more than {MAX_ROUNDS} times", resource="steps")
