"""Patches as they are read and applied."""

from __future__ import annotations

import pytest

from kubesandbox.objects.patching import Patch, read_patch
from kubesandbox.parsing.requests import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from pyverno.kube.json import JSONObject, equal
from pyverno.kube.schemas import schema_set
from pyverno.kube.status import StatusError

SCHEMAS = schema_set("1.35")
PODS = SCHEMAS.kinds["", "v1", "Pod"]


def refused(data: bytes, media_type: str, *, is_custom: bool = False) -> tuple[int, str]:
    """Return the error of a patch that cannot be read."""
    with pytest.raises(StatusError) as caught:
        read_patch(data, media_type, is_custom=is_custom)
    return caught.value.status, caught.value.message


@pytest.mark.parametrize(
    ("data", "media_type", "expected"),
    [
        (b'{"a":', MERGE_PATCH, (400, "error decoding patch: unexpected end of JSON input")),
        (b'{"a":', STRATEGIC_PATCH, (400, "unexpected end of JSON input")),
        (
            b"[]",
            MERGE_PATCH,
            (
                400,
                "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
            ),
        ),
        (
            b"{}",
            JSON_PATCH,
            (400, "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        ),
        (
            b"[" + b"{}," * 10_000 + b"{}]",
            JSON_PATCH,
            (413, "The allowed maximum operations in a JSON patch is 10000, got 10001"),
        ),
        (b"{}", "application/json", (415, "415: Unsupported Media Type")),
        (
            b"- a",
            APPLY_PATCH,
            (
                400,
                "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into "
                "Go value of type map[string]interface {}",
            ),
        ),
    ],
)
def test_what_is_no_patch_is_refused(data: bytes, media_type: str, expected: tuple[int, str]) -> None:
    """The errors have the texts of the API server."""
    assert expected == refused(data, media_type)


def test_custom_resources_have_no_strategic_merge() -> None:
    """The 415 lists the supported patch types, which kubectl uses for its fallback."""
    status, message = refused(b"{}", STRATEGIC_PATCH, is_custom=True)
    assert 415 == status
    assert message.endswith("application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml")


def test_applied_configurations_may_be_yaml() -> None:
    """A duplicate field is an error."""
    assert {"a": {"b": 1}} == read_patch(b"a: {b: 1}", APPLY_PATCH, is_custom=True).value
    assert 400 == refused(b"a: 1\na: 2", APPLY_PATCH)[0]


def test_patches_that_do_not_fit_are_invalid() -> None:
    """JSON patches without a reason, others with one."""
    document = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": []}}
    for patch, message in (
        (
            Patch(JSON_PATCH, [{"op": "test", "path": "/kind", "value": "X"}]),
            "the server rejected our request due to an error in our request",
        ),
        (Patch(JSON_PATCH, [{"op": "replace", "path": "", "value": {}}]), ""),
        (
            Patch(STRATEGIC_PATCH, {"$patch": "x"}),
            ' "" is invalid: patch: Invalid value: "{\\"$patch\\":\\"x\\"}": unknown patch type: x in map: '
            "{'$patch': 'x'}",
        ),
    ):
        with pytest.raises(StatusError) as caught:
            patch.applied(document, schemas=SCHEMAS, definition=PODS)
        assert 422 == caught.value.status
        assert caught.value.message.startswith(message)


def test_json_patches_may_read_what_is_not_there() -> None:
    """API servers replace and copy keys that are not set; they remove only existing ones."""
    document = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}
    replaced = Patch(JSON_PATCH, [{"op": "replace", "path": "/data/new", "value": "c"}])
    copied = Patch(JSON_PATCH, [{"op": "copy", "from": "/nothing", "path": "/data/new"}])
    assert [{"a": "b", "new": "c"}, {"a": "b", "new": None}] == [
        patch.applied(document, schemas=SCHEMAS, definition="")["data"] for patch in (replaced, copied)
    ]
    with pytest.raises(StatusError):
        Patch(JSON_PATCH, [{"op": "remove", "path": "/data/new"}]).applied(document, schemas=SCHEMAS, definition="")


def test_strategic_patches_leave_the_kind() -> None:
    """They are merged into an object of it, however deep they are."""
    document = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": []}}
    deep: JSONObject = {}
    for _ in range(3000):
        deep = {"x": deep}
    patch = Patch(STRATEGIC_PATCH, {"kind": "Node", "apiVersion": "v2", "unknown": deep})
    after = patch.applied(document, schemas=SCHEMAS, definition=PODS)
    assert ("v1", "Pod", True) == (after["apiVersion"], after["kind"], equal(deep, after["unknown"]))
    assert {} == read_patch(b"null", STRATEGIC_PATCH, is_custom=False).value
