"""Guards of rules: what an index key alone settles, and what it must leave to the request."""

from __future__ import annotations

import pytest

from pyverno.engine.match import IndexKey
from pyverno.engine.rules.conditions import compile_conditions
from pyverno.engine.rules.guards import Preconditions
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSONObject


def holds(key: str, value: object, operation: str = "CREATE") -> bool:
    """Ask whether `key Equals value` is settled for an operation."""
    condition: JSONObject = {"key": key, "operator": "Equals", "value": value}
    guard = Preconditions(compile_conditions({"all": [condition]}))
    return guard.surely_holds(IndexKey(GVK("", "v1", "Pod"), "", operation, "shop"))


def test_conditions_on_the_operation_are_settled_by_the_key() -> None:
    """The same condition does not hold for another operation."""
    assert holds("{{ request.operation }}", "CREATE")
    assert not holds("{{ request.operation }}", "CREATE", "DELETE")


@pytest.mark.parametrize(
    "key",
    [
        "{{ request.object.metadata.name }}",
        "{{ request.object.metadata.labels.a || '' }}",
        "{{ request.object.metadata.ownerReferences[?kind=='Job'] || `[]` | length(@) }}",
        "{{ element || '' }}",
    ],
)
def test_a_default_never_replaces_what_is_not_known_yet(key: str) -> None:
    """`||` replaces an error of the expression, but the object is only not there yet."""
    for value in ("", 0):
        assert not holds(key, value)
