"""Tests of `defaults.hook`."""

from __future__ import annotations

from kubesandbox.defaults.hook import absent, in_order, zero
from pyverno.kube.json import JSONObject


def test_absent_fields_are_set_and_zero_values_stay() -> None:
    """Null is absent; zero, false and the empty text are not."""
    body: JSONObject = {"a": None, "b": 0, "c": False}
    absent(a=1, b=2, c=True, d={})(body)
    assert {"a": 1, "b": 0, "c": False, "d": {}} == body


def test_an_object_that_is_set_is_fresh() -> None:
    """Two objects never share a mutable default."""
    fill = absent(selector={})
    one: JSONObject = {}
    two: JSONObject = {}
    fill(one)
    fill(two)
    assert one["selector"] is not two["selector"]


def test_zero_values_are_set_where_zero_means_nothing() -> None:
    """As Go does for fields that are no pointers."""
    body: JSONObject = {"type": "", "size": 0, "name": "x"}
    zero(type="A", size=5, name="y")(body)
    assert {"type": "A", "size": 5, "name": "x"} == body


def test_hooks_run_in_order() -> None:
    """The first that sets a field wins."""
    body: JSONObject = {}
    in_order(absent(a=1), absent(a=2, b=3))(body)
    assert {"a": 1, "b": 3} == body
