"""The graph of owners and dependents."""

from __future__ import annotations

from kubesandbox.controllers.ownergraph import OwnerGraph
from kubesandbox.storage.store import Key
from pyverno.kube.json import JSONObject

A, B = Key("pods", "n", "a"), Key("pods", "n", "b")


def body(uid: str, *owners: str) -> JSONObject:
    return {"metadata": {"uid": uid, "ownerReferences": [{"uid": owner} for owner in owners]}}


def test_references_are_followed_both_ways() -> None:
    """Until they change or the object goes."""
    graph = OwnerGraph()
    graph.put(A, body("a", "x", "y"))
    graph.put(B, body("b", "x"))
    assert ([A, B], [A]) == (graph.dependents("x"), graph.dependents("y"))
    graph.put(A, body("a", "y"))
    assert ([B], [A]) == (graph.dependents("x"), graph.dependents("y"))
    graph.remove(A)
    assert ([], None) == (graph.dependents("y"), graph.place("a"))
    graph.remove(A)


def test_an_object_that_takes_the_place_of_another_is_another() -> None:
    """The same name, a new uid."""
    graph = OwnerGraph()
    graph.put(A, body("old", "x"))
    graph.put(A, body("new"))
    assert (None, A, []) == (graph.place("old"), graph.place("new"), graph.dependents("x"))
