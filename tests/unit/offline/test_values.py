"""Values files: what is asked for is found by its names, and later parts of a file win."""

from __future__ import annotations

import pytest

from pyverno.offline.values import NamespaceLabels, PolicyValues, ResourceValues, RuleValues, Values
from tests.support.operations import MOST_GROWTH, operations


def test_later_parts_of_a_file_win() -> None:
    """Resources, rules and the rule that one was generated from count in the order of the file."""
    values = Values(
        {"a": 0, "b.c": 0, "request.operation": "UPDATE"},
        (
            PolicyValues("p", (RuleValues("r", {"a": 1}, {"e": [7, 8]}),), (ResourceValues("o", {"a": 2, "d": 2}),)),
            PolicyValues("other", (RuleValues("r", {"a": 9}),)),
            PolicyValues("p", (RuleValues("autogen-r", {"d": 3}), RuleValues("r", {"d": 4}))),
        ),
    )
    assert {"a": 1, "b": {"c": 0}, "d": 4, "e": 7} == values.supply("p", "autogen-r", "o")
    assert {"a": 1, "b": {"c": 0}, "d": 4, "e": 7} == values.supply("p", "r", "o")
    assert {"a": 2, "b": {"c": 0}, "d": 2} == values.supply("p", "s", "o")
    assert {"a": 0, "b": {"c": 0}} == values.supply("q", "r", "o")
    assert ("UPDATE", True, False) == (values.operation("q", "o"), values.names_operations, values.names_objects)


def test_namespaces_come_before_labels_of_a_selector() -> None:
    """A whole Namespace says more than its labels; the first of a name counts."""
    namespaces = ({"metadata": {"name": "n", "labels": {"a": "b"}}}, {"metadata": {"name": "n"}}, {"metadata": None})
    values = Values(
        namespaces=namespaces, namespace_selector=(NamespaceLabels("n", {"x": "y"}), NamespaceLabels("m", {"c": "d"}))
    )
    assert ({"a": "b"}, {"c": "d"}, None) == (values.labels_of("n"), values.labels_of("m"), values.labels_of("o"))
    assert values.namespace("n") is namespaces[0]
    assert values.namespace("m") is None


@pytest.mark.parametrize("ask", ["supply", "changes", "operation", "names", "namespaces"])
def test_a_question_costs_the_same_however_long_the_file_is(ask: str) -> None:
    """A run asks for each rule and object: twice the file and twice the objects must not be four times the work."""

    def cost(size: int) -> int:
        own = tuple(ResourceValues(f"o{at}", {"a": at, "request.operation": "UPDATE"}) for at in range(size))
        rules = tuple(RuleValues(f"r{at}", {"b": at}) for at in range(size))
        namespaces = tuple({"metadata": {"name": f"n{at}"}} for at in range(size))
        values = Values({}, (PolicyValues("p", rules, own),), namespaces=namespaces)

        def run() -> object:
            match ask:
                case "supply":
                    return [values.supply("p", f"r{at}", f"o{at}") for at in range(size)]
                case "changes":
                    return [values.changes("p", f"o{at}") for at in range(size)]
                case "operation":
                    return [values.operation("p", f"o{at}") for at in range(size)]
                case "names":
                    return [(values.names_objects, values.names_operations) for _ in range(size)]
                case _:
                    return [(values.namespace(f"n{at}"), values.labels_of(f"n{at}")) for at in range(size)]

        return operations(run)

    assert cost(200) / cost(100) < MOST_GROWTH
