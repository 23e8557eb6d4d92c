"""Elements of a foreach: the list, and the variables element, elementIndex and their numbered twins."""

from __future__ import annotations

from collections.abc import Iterator

from pyverno.engine.rule import Binding, Run
from pyverno.engine.rules.guards import Preconditions
from pyverno.errors import EvaluationError
from pyverno.kube.json import JSON
from pyverno.lang.template.expression_text import ExpressionText
from pyverno.value import dataclass

__all__ = ["Elements"]


@dataclass(frozen=True, slots=True)
class Elements:
    """The list of one foreach entry: its query, what it binds for each element, and how deep it is nested (from 0).

    `reverse` visits the last element first; indexes stay those of the list.
    """

    query: ExpressionText
    bindings: tuple[Binding, ...] = ()
    preconditions: Preconditions | None = None
    depth: int = 0

    def values(self, run: Run) -> list[JSON]:
        """Evaluate the list; anything that is not a list counts as one element, null as none.

        Raises EvaluationError with Kyverno's text, BudgetExceededError and HostError as they come.
        """
        try:
            found = self.query.evaluate(run.scope, run.scope, run.runtime, delete_request=run.is_delete)
        except EvaluationError as error:
            raise EvaluationError(f"JMESPath query failed: {error.message}") from error
        if found is None:
            return []
        return found if isinstance(found, list) else [found]

    def visit(self, run: Run, values: list[JSON], *, reverse: bool = False) -> Iterator[tuple[int, JSON, Run]]:
        """Yield index, element and a run whose variables hold them; null elements are left out."""
        indexes = range(len(values) - 1, -1, -1) if reverse else range(len(values))
        for index in indexes:
            element = values[index]
            if element is None:
                continue
            run.runtime.budget.charge_elements()
            yield index, element, self.entered(run, index, element)

    def entered(self, run: Run, index: int, element: JSON) -> Run:
        """Return the run of one element: its variables, then the entry's own context."""
        names: dict[str, JSON] = {
            "element": element,
            "elementIndex": index,
            f"element{self.depth}": element,
            f"elementIndex{self.depth}": index,
        }
        inner = run.with_scope(run.scope.with_mapping(names))
        for binding in self.bindings:
            inner = inner.with_scope(binding.bind(inner))
        return inner
