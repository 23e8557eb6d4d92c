"""JSON patches of webhooks."""

from __future__ import annotations

import pytest

from kubesandbox.admission.webhooks.patch import apply_webhook_patch
from pyverno.errors import PatchError


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        ({"op": "zap", "path": "/x"}, "Unexpected kind: zap"),
        ({"path": "/x"}, "Unexpected kind: unknown"),
        ({"op": "add", "value": 1}, "add operation failed to decode path: missing value"),
        ({"op": "remove", "path": ""}, 'remove operation does not apply: doc is missing path: "": missing value'),
        (
            {"op": "remove", "path": "/none"},
            "error in remove for path: '/none': Unable to remove nonexistent key: none: missing value",
        ),
        ({"op": "test", "path": "/a", "value": 2}, "testing value /a failed: test failed"),
        (
            {"op": "add", "path": "/none/x", "value": 1},
            'add operation does not apply: doc is missing path: "/none/x": missing value',
        ),
    ],
)
def test_patches_that_do_not_fit_have_the_words_of_the_library(operation, text):
    """They are what the refusal shows."""
    with pytest.raises(PatchError) as refused:
        apply_webhook_patch({"a": 1}, [operation])
    assert text == refused.value.message


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([{"op": "copy", "from": "/none", "path": "/b"}], {"a": 1, "b": None}),
        ([{"op": "add", "path": "/b"}], {"a": 1, "b": None}),
        ([{"op": "replace", "path": "/b", "value": 2}], {"a": 1, "b": 2}),
        ([{"op": "test", "path": "/b"}], {"a": 1}),
        ([{"op": "add", "path": "/b", "value": {}}, {"op": "move", "from": "/a", "path": "/b/c"}], {"b": {"c": 1}}),
    ],
)
def test_what_is_not_there_reads_as_null(operations, expected):
    """Operations are applied one after another, and the document is not changed."""
    document = {"a": 1}
    assert expected == apply_webhook_patch(document, operations)
    assert {"a": 1} == document
