"""Lists: selectors, versions and pages."""

from __future__ import annotations

import asyncio

import pytest

from kubesandbox.parsing.requests import ListOptions
from kubesandbox.storage.listing import Page, list_page, selection
from kubesandbox.storage.store import Key, Store
from kubesandbox.types.resources import builtin_table
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError

PODS = builtin_table("1.35").versions_of("pods")[0]


def pod(name: str, namespace: str = "a") -> JSONObject:
    """Return a pod."""
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": {"name": name}},
        "spec": {"nodeName": f"on-{name}"},
    }


def filled(*names: str) -> Store:
    """Return a store with pods in the namespaces a and b."""
    store = Store()
    for name in names:
        for namespace in ("a", "b"):
            store.put(Key("pods", namespace, name), pod(name, namespace))
    return store


def listed(store: Store, namespace: str = "", **options: object) -> Page:
    """Return a page."""
    chosen = ListOptions(**options)  # type: ignore[arg-type]  # by name
    return asyncio.run(list_page(store, PODS, namespace, chosen, selection(PODS, chosen)))


def names(page: Page) -> list[str]:
    """Return the places of the objects of a page."""
    return [f"{state.key.namespace}/{state.key.name}" for state in page.states]


def test_selectors_narrow_a_list_together() -> None:
    """Label and field selectors must both match."""
    store = filled("x", "y", "z")
    assert ["a/x", "a/y", "b/x", "b/y"] == names(listed(store, label_selector="name in (x,y)"))
    assert ["b/z"] == names(listed(store, "b", field_selector="spec.nodeName=on-z"))
    assert [] == names(listed(store, label_selector="name=x", field_selector="metadata.name=y"))


def test_pages_show_the_version_of_the_first_one() -> None:
    """Writes between two pages do not change the version of the list."""
    store = filled("x", "y", "z")
    first = listed(store, limit=2)
    assert (["a/x", "a/y"], 4) == (names(first), first.remaining)
    store.remove(Key("pods", "b", "x"))
    store.put(Key("pods", "a", "new"), pod("new"))
    second = listed(store, limit=3, continue_token=first.token)
    third = listed(store, limit=3, continue_token=second.token)
    assert (["a/z", "b/x", "b/y"], ["b/z"]) == (names(second), names(third))
    assert (first.revision, first.revision, "") == (second.revision, third.revision, third.token)


def test_a_last_page_that_is_full_has_no_token() -> None:
    """A full last page has no items after it."""
    store = filled("x")
    assert "" == listed(store, limit=2).token
    assert "" == listed(store, limit=1, label_selector="name=x", field_selector="metadata.namespace=b").token


def test_what_remains_is_only_counted_without_selectors() -> None:
    """Kubernetes also omits `remainingItemCount` for lists with a selector."""
    page = listed(filled("x", "y"), limit=1, label_selector="name")
    assert (None, True) == (page.remaining, bool(page.token))


def test_versions_choose_between_now_and_then() -> None:
    """`Exact`, or a version with a limit, selects that very version; any other list shows the present state."""
    store = Store()
    store.put(Key("pods", "a", "x"), pod("x"))
    then = str(store.revision)
    store.put(Key("pods", "a", "y"), pod("y"))
    assert ["a/x"] == names(listed(store, resource_version=then, match="Exact"))
    assert ["a/x"] == names(listed(store, resource_version=then, limit=5))
    assert ["a/x", "a/y"] == names(listed(store, resource_version=then, match="NotOlderThan", limit=5))
    assert ["a/x", "a/y"] == names(listed(store, resource_version=then))
    assert ["a/x", "a/y"] == names(listed(store, resource_version="0"))


def test_versions_that_are_not_there_are_refused() -> None:
    """A future version gives 504, an expired one 410, and a text 400."""
    store = Store(kept_changes=2)
    for number in range(5):
        store.put(Key("pods", "a", f"p{number}"), pod(f"p{number}"))
    for options, status, reason in (
        ({"resource_version": "99"}, 504, "Timeout"),
        ({"resource_version": "2", "match": "Exact"}, 410, "Expired"),
        ({"resource_version": "x"}, 400, "BadRequest"),
        ({"continue_token": "x"}, 400, "BadRequest"),
        ({"continue_token": "e30"}, 400, "BadRequest"),
        ({"continue_token": "bm90IGpzb24"}, 400, "BadRequest"),
    ):
        with pytest.raises(StatusError) as caught:
            listed(store, **options)
        assert (status, reason) == (caught.value.status, caught.value.reason)


def test_a_token_outlives_its_version() -> None:
    """The error offers a new list, or a token that continues with the present objects."""
    store = Store(kept_changes=2)
    for number in range(3):
        store.put(Key("pods", "a", f"p{number}"), pod(f"p{number}"))
    token = listed(store, limit=1).token
    for number in range(3):
        store.put(Key("pods", "a", f"q{number}"), pod(f"q{number}"))
    with pytest.raises(StatusError, match="The provided continue parameter is too old") as caught:
        listed(store, limit=1, continue_token=token)
    assert 410 == caught.value.status
    page = listed(store, continue_token=caught.value.to_json()["metadata"]["continue"])
    assert (["a/p1", "a/p2", "a/q0", "a/q1", "a/q2"], store.revision) == (names(page), page.revision)


def test_the_metadata_of_a_list_has_the_token_to_continue() -> None:
    """The metadata holds version, token and the number of remaining items."""
    page = listed(filled("x", "y"), limit=1)
    assert {"resourceVersion": "5", "continue": page.token, "remainingItemCount": 3} == page.metadata


def test_a_wrong_selector_is_a_bad_request() -> None:
    """The error has the text of the selector parser."""
    with pytest.raises(StatusError, match="found ',', expected: identifier after ','"):
        selection(PODS, ListOptions(label_selector="a==,,"))
