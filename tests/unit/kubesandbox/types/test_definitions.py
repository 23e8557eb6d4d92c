"""Served types follow the definitions."""

from __future__ import annotations

from kubesandbox.schema.schemas import ObjectSchemas
from kubesandbox.storage.store import Key, Store
from kubesandbox.types.definitions import CRDS, Served
from kubesandbox.types.resources import builtin_table
from tests.unit.kubesandbox.serving import definition

NOW = "2026-01-01T00:00:00Z"
NAME = "widgets.example.com"
KEY = Key(CRDS, "", NAME)


def served() -> tuple[Store, Served]:
    """Return what is served by a store with one definition."""
    store = Store()
    made = Served(store, builtin_table("1.35"), ObjectSchemas("1.35"))
    made.accept(store.put(KEY, definition(selectableFields=[{"jsonPath": ".spec.color"}])), NOW)
    return store, made


def test_an_accepted_definition_is_served_and_its_conditions_show_it() -> None:
    """The conditions have the time at which they changed."""
    store, made = served()
    state = store.get(KEY)
    assert state is not None
    assert {("NamesAccepted", "True", NOW), ("Established", "True", NOW)} == {
        (item["type"], item["status"], item["lastTransitionTime"]) for item in state.body["status"]["conditions"]
    }
    (widgets,) = made.table.versions_of(NAME)
    assert ("Widget", ("spec.color",)) == (widgets.kind, made.selectable_fields(widgets))
    assert state.body == made.definition_of(widgets)


def test_a_withdrawn_definition_is_not() -> None:
    """Built-in types stay."""
    _, made = served()
    made.withdraw(NAME)
    assert () == made.table.versions_of(NAME)
    assert made.table.versions_of("pods")


def test_a_definition_is_leaving_once_it_is_marked() -> None:
    """Once its finalizer is removed, the definition does not wait any longer."""
    store, made = served()
    assert made.leaving(NAME) is None
    state = store.get(KEY)
    assert state is not None
    finalizers = ["customresourcecleanup.apiextensions.k8s.io", "a.b/c"]
    metadata = {**state.body["metadata"], "deletionTimestamp": NOW, "finalizers": finalizers}
    marked = store.put(KEY, {**state.body, "metadata": metadata})
    found = made.leaving(NAME)
    assert found is not None
    assert "Widget" == found.kind
    assert ["a.b/c"] == made.released(marked.body)["metadata"]["finalizers"]
