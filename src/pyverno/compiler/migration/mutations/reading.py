"""The variables, conditions and lists of a rule in CEL, at one place of it: an adapter of `migration.expressions`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyverno.compiler.migration.expressions import Names, translate, translate_query
from pyverno.compiler.migration.expressions.value import INTEGER, Value, of_reference
from pyverno.compiler.migration.outcome import UnconvertibleError
from pyverno.compiler.migration.text import Cel, CelType, Reference, literal
from pyverno.compiler.migration.variables import inlined
from pyverno.kube.json import JSON, JSONObject
from pyverno.value import dataclass

__all__ = ["Conditions", "RuleExpressions"]

Conditions = Callable[[JSON, Names, str], Cel]
"""Returns whether preconditions hold; raises UnconvertibleError."""


@dataclass(frozen=True, slots=True, eq=False)
class RuleExpressions:
    """The expressions of a rule in CEL, under the names that they may use."""

    names: Names
    preconditions: Conditions

    def value(self, text: str, path: str) -> Cel:
        """Return the value of a text with variables."""
        found = translate(text, self.names, path)
        if found.is_null:
            raise UnconvertibleError("null-value", path, "the value is always null", "remove the field with null")
        if found.sequence is not None:
            return found.sequence.written(total=False)
        return found.cel

    def conditions(self, written: JSON, path: str) -> Cel:
        """Return whether preconditions hold."""
        return self.preconditions(written, self.names, path)

    def list_of(self, query: str, path: str) -> tuple[Cel, Reference | None]:
        """Return the list of a query, and the field that it is, if it is one."""
        found = translate_query(query, self.names, path, loud=True)
        if found.default is not None and found.default[1] == [] and found.default[0].reference is not None:
            reference = found.default[0].reference
            return reference.or_value(literal([])), reference
        if found.cel.type not in (CelType.LIST, CelType.DYN) or found.is_null:
            reason = "what is no list counts as one element"
            raise UnconvertibleError("foreach-list", path, reason, "write the rule without foreach")
        if found.sequence is not None:
            return found.sequence.written(total=False), None
        return found.cel, found.reference

    def within(self, element: Reference, index: Cel, depth: int) -> RuleExpressions:
        """Return the expressions inside of a loop over elements."""
        names = self.names.with_element(of_reference(element), Value(index, INTEGER), depth, index.text)
        return RuleExpressions(names, self.preconditions)

    def with_context(self, entries: Sequence[JSONObject], path: str) -> RuleExpressions:
        """Return the expressions that also read the entries of a context, written out where they are used."""
        return RuleExpressions(inlined(entries, self.names, path), self.preconditions)
