"""Documents that are objects of a cluster, and those that can be none."""

from __future__ import annotations

import pytest

from pyverno.kube.yaml.documents import load_documents
from pyverno.offline.resources import read_objects


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a: 1", "m.yaml:1:1: the document is not a resource: apiVersion and kind are missing"),
        ("[{kind: Pod}]", "m.yaml:1:1: the document is not a resource: apiVersion and kind are missing"),
        ("apiVersion: v1\nkind: [Pod]", "m.yaml:2:7: `kind` must be a string, found a list"),
        ("apiVersion: 1\nkind: Pod", "m.yaml:1:13: `apiVersion` must be a string, found a number"),
        ("apiVersion: v1\nkind: List\nitems: {}", "m.yaml:3:8: `items` must be a list, found an object"),
        ("apiVersion: v1\nkind: List", "m.yaml:1:1: `items` must be a list, found nothing"),
        (
            "apiVersion: v1\nkind: List\nitems:\n- web",
            "m.yaml:4:3: the document is not a resource: apiVersion and kind are missing",
        ),
        ("apiVersion: v1\nkind: Pod\nmetadata: web", "m.yaml:3:11: `metadata` must be an object, found a string"),
        (
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: 5",
            "m.yaml:4:9: `metadata.name` must be a string, found a number: a string needs quotes here",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata:\n  namespace: [a]",
            "m.yaml:4:14: `metadata.namespace` must be a string, found a list",
        ),
    ],
)
def test_a_document_that_no_api_server_accepts_is_an_error(text: str, error: str) -> None:
    """Rules would pass over it in silence, because none matches it; the error has the place of the field."""
    objects, errors = read_objects(load_documents(text, file="m.yaml"))
    assert ([], [error]) == (objects, [str(each) for each in errors])


def test_objects_and_the_items_of_lists_are_kept() -> None:
    """Metadata may be missing or null; so may the items of a list, which is then empty."""
    text = """
{apiVersion: v1, kind: Pod}
---
{apiVersion: v1, kind: Pod, metadata: null}
---
{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Service, metadata: {name: a, namespace: null}}]}
---
{apiVersion: v1, kind: List, items: null}
---
{apiVersion: example.org/v1, kind: AllowList, items: {}}
"""
    objects, errors = read_objects(load_documents(text))
    assert (["Pod", "Pod", "Service", "AllowList"], []) == ([each.value["kind"] for each in objects], errors)
