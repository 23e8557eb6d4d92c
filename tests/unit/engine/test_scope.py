"""Scopes: lazy variables, computed at most once, that no later binding changes."""

from __future__ import annotations

import pytest

from pyverno.engine.scope import Scope, UnboundNameError, VariableFaultError
from pyverno.errors import ContextEntryError, EvaluationError, HostError


class Thunk:
    """A computation that counts its calls, and raises when it is given an error."""

    def __init__(self, outcome):
        self.outcome = outcome
        self.calls = 0

    def __call__(self):
        self.calls += 1
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


def test_a_variable_is_computed_on_first_use_and_only_once():
    """Binding costs nothing; child scopes share the value."""
    thunk = Thunk(7)
    scope = Scope().bind("a", thunk)
    child = scope.with_values(b=1)
    assert 0 == thunk.calls
    assert (7, 7, 7, 1) == (scope["a"], child["a"], child["a"], thunk.calls)


def test_a_child_hides_a_name_and_leaves_its_parent_as_it_is():
    """The parent's value needs no restoring after a rule."""
    parent = Scope({"a": 1})
    child = parent.with_mapping({"a": 2, "b": 3})
    assert (2, 1) == (child["a"], parent["a"])
    assert (True, False) == (child.has("b"), parent.has("b"))
    assert ["a", "b"] == sorted(child.names())


def test_an_unknown_name_is_a_key_error():
    """Expressions report it as an unknown variable."""
    with pytest.raises(KeyError):
        Scope({"a": 1}).with_values(b=2)["c"]


def test_a_failure_is_raised_again_without_computing_again():
    """An entry that failed to load does not call the cluster twice."""
    thunk = Thunk(HostError("no cluster"))
    scope = Scope().bind("a", thunk)
    for _ in range(2):
        with pytest.raises(HostError, match="no cluster"):
            scope["a"]
    assert 1 == thunk.calls


def test_an_expression_error_of_an_entry_is_a_context_error_for_its_readers():
    """Readers absorb some expression errors of their own; those of an entry are none of them."""
    scope = Scope().bind("a", Thunk(EvaluationError("wrong type")))
    with pytest.raises(ContextEntryError, match="JMESPath query failed: wrong type"):
        scope["a"]


def test_a_bug_in_an_entry_is_never_a_missing_name():
    """A KeyError of the implementation must not look like an unknown key of the policy."""
    scope = Scope().bind("a", Thunk(KeyError("x")))
    with pytest.raises(VariableFaultError) as found:
        scope["a"]
    assert isinstance(found.value.__cause__, KeyError)


def test_everything_at_once_leaves_out_names_without_a_value():
    """`@` shows the values of all variables that have one."""
    scope = Scope({"a": 1}).bind("b", Thunk(2)).bind("images", Thunk(UnboundNameError("images")))
    assert {"a": 1, "b": 2} == scope.materialise()


def test_a_name_is_found_below_thousands_of_others_and_kept_once():
    """Each context entry of a rule is a scope of its own; those between keep no value of names they do not bind."""
    root = scope = Scope({"a": "x"})
    between = []
    for number in range(5000):
        scope = scope.bind(f"v{number}", lambda number=number: number)
        between.append(scope)
    assert ("x", 0, 4999) == (scope["a"], scope["v0"], scope["v4999"])
    assert [{"v0": 0}, {}, {}] == [dict(each) for each in (between[0], between[1], between[2500])]
    assert {"a": "x"} == dict(root)
    with pytest.raises(KeyError):
        scope["b"]
