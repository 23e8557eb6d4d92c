"""Tests of `validation.cluster`."""

from __future__ import annotations

import pytest

from kubesandbox.validation.cluster import event, namespace
from pyverno.kube.json import JSONObject


def found(check: object, body: JSONObject) -> list[str]:
    """Return the errors of a check."""
    errors: list[object] = []
    check(body, "", errors)  # type: ignore[operator]  # a check
    return [str(error) for error in errors]


@pytest.mark.parametrize(
    ("place", "about", "is_right"),
    [
        ("shop", {"involvedObject": {"namespace": "shop"}}, True),
        ("shop", {"involvedObject": {"namespace": "other"}}, False),
        ("shop", {"involvedObject": {"kind": "Node"}}, False),
        ("default", {"involvedObject": {"kind": "Node"}}, True),
        ("shop", {"regarding": {"namespace": "shop"}}, True),
        ("shop", {"regarding": {"kind": "Node"}}, False),
    ],
)
def test_events_stand_beside_their_objects(place: str, about: JSONObject, is_right: bool) -> None:
    """Events of cluster-scoped objects are in the default namespace."""
    texts = found(event, {"metadata": {"namespace": place}, **about})
    assert is_right == (texts == [])
    assert all(text.endswith("does not match event.namespace") for text in texts)


def test_finalizers_of_namespaces_need_a_domain() -> None:
    """Finalizers that Kubernetes itself defines need none."""
    expected = "name is neither a standard finalizer name nor is it fully qualified"
    assert [f'spec.finalizers: Invalid value: "mine": {expected}'] == found(
        namespace, {"spec": {"finalizers": ["kubernetes", "example.com/mine", "mine"]}}
    )
