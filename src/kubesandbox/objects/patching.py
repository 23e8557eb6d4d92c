"""Patches of objects: JSON patch, merge patch and strategic merge patch.

Server-side apply is `kube.apply.serverside`; it needs the managers of fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kubesandbox.parsing.bodies import Body, read_json, read_yaml, yaml_problem
from kubesandbox.parsing.requests import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, go_quote
from pyverno.errors import DocumentError, PatchError
from pyverno.kube.apply.serverside import not_typed
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSON, JSONObject, decode, encode
from pyverno.kube.patch.jsonpatch import apply_patch
from pyverno.kube.patch.mergepatch import apply_merge_patch
from pyverno.kube.patch.strategicpatch import strategic_patch
from pyverno.kube.schemas import SchemaSet
from pyverno.kube.status import FieldError, StatusError, bad_request, invalid, request_too_large, unsupported_media_type

__all__ = ["Patch", "bad_patch_result", "not_converted", "read_patch", "undeclared"]

_MAX_OPERATIONS = 10_000
_TOO_DEEP = "exceeded max depth"
"""How Go's words end for JSON that is nested too deeply."""
_BUILTIN_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)
_CUSTOM_TYPES = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)


@dataclass(frozen=True, slots=True)
class Patch:
    """A patch that was read; of server-side apply the value is the object that is applied."""

    type: str
    value: JSON

    @property
    def is_apply(self) -> bool:
        """Return whether this is server-side apply, which this module cannot do."""
        return self.type == APPLY_PATCH

    def applied(self, document: JSONObject, *, schemas: SchemaSet, definition: str) -> JSONObject:
        """Return the patched object; `definition` names the schema for strategic merge.

        Raises StatusError with the texts of an API server for a patch that does not fit.
        """
        try:
            match self.type:
                case "application/json-patch+json":
                    after = _json_patched(document, self.value)
                case "application/merge-patch+json":
                    after = apply_merge_patch(document, self.value)
                case _:
                    after = strategic_patch(document, self.value, schemas=schemas, definition=definition)
        except PatchError as error:
            raise self._refused(error.message) from None
        if not isinstance(after, dict):
            raise self._refused(f"json: cannot unmarshal {encode(after)} into an object")
        if self.type == STRATEGIC_PATCH:
            # upstream merges into a value of the kind, which cannot become one of another kind
            own = {key: document[key] for key in ("apiVersion", "kind") if isinstance(after.get(key) or "", str)}
            after = {**after, **own}
        return after

    def _refused(self, why: str) -> StatusError:
        if self.type == JSON_PATCH:
            # upstream reports JSON patches that do not fit without a reason
            text = "the server rejected our request due to an error in our request"
            return StatusError(422, "Invalid", text, shows_details=True)
        return bad_patch_result(self.value, why)


def _json_patched(document: JSONObject, operations: list[JSONObject]) -> JSON:
    if any(operation.get("path") == "" for operation in operations if operation):
        raise PatchError("the whole document has no path")
    return apply_patch(document, operations, missing_is_null=True)


def bad_patch_result(value: JSON, why: str) -> StatusError:
    """Return 422: what a patch makes is no object of its kind.

    >>> str(bad_patch_result({}, "no"))
    ' "" is invalid: patch: Invalid value: "{}": no'
    """
    return invalid("", "", "", [FieldError("patch", "Invalid value", why, go_quote(encode(value)))])


def undeclared(applied: JSONObject, problems: Sequence[str]) -> StatusError:
    """Return the error of applied fields that the schema does not know; `problems` are those of strict decoding.

    >>> print(undeclared({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}, ['unknown field "dat"']))
    failed to create typed patch object (/a; /v1, Kind=ConfigMap): .dat: field not declared in schema
    """
    paths = sorted(text.partition('"')[2].rstrip('"') for text in problems)
    lines = [f".{path}: field not declared in schema" for path in paths]
    return not_typed(applied, lines[0] if len(lines) == 1 else "\n  ".join(("errors:", *lines)))


def not_converted(kind: GVK, applied: JSONObject, error: StatusError) -> StatusError:
    """Return the error of an applied configuration with a value that its kind cannot hold."""
    _, found, why = error.message.partition(f" cannot be handled as a {kind.kind}: ")
    what = f"unable to convert unstructured object to {kind.group}/{kind.version}, Kind={kind.kind}"
    where = _object(kind, applied)
    text = f"failed to convert new object ({where}) to proper version: {what}: {why}"
    return StatusError(500, "", text) if found and error.status == 400 else error


def _object(kind: GVK, applied: JSONObject) -> str:
    metadata = applied.get("metadata")
    place = metadata if isinstance(metadata, dict) else {}
    where = f"{place.get('namespace') or ''}/{place.get('name') or ''}"
    return f"{where}; {kind.group}/{kind.version}, Kind={kind.kind}"


def read_patch(data: bytes, media_type: str, *, is_custom: bool) -> Patch:
    """Read the body of a PATCH; raises StatusError 400 for what is no patch and 415 for types that are not taken.

    >>> read_patch(b'{"a": null}', MERGE_PATCH, is_custom=False)
    Patch(type='application/merge-patch+json', value={'a': None})
    """
    accepted = _CUSTOM_TYPES if is_custom else _BUILTIN_TYPES
    if media_type not in _BUILTIN_TYPES:
        raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", shows_details=True)
    if media_type not in accepted:
        raise unsupported_media_type(accepted)
    if media_type == APPLY_PATCH:
        return Patch(media_type, _applied_object(data))
    try:
        value = decode(data)
    except DocumentError as error:
        prefix = "" if media_type == STRATEGIC_PATCH else "error decoding patch: "
        raise bad_request(f"{prefix}{error.message}") from None
    if media_type == JSON_PATCH:
        _check_operations(value)
    elif value is None:
        if media_type == MERGE_PATCH:
            raise bad_request("Invalid JSON Patch")
        value = {}
    elif not isinstance(value, dict):
        prefix = "" if media_type == STRATEGIC_PATCH else "error decoding patch: "
        raise bad_request(f"{prefix}{_not_into(value, _GO_MAP)}")
    return Patch(media_type, value)


_GO_MAP = "map[string]interface {}"


def _not_into(value: JSON, kind: str) -> str:
    return f"json: cannot unmarshal {_kind(value)} into Go value of type {kind}"


def _check_operations(value: JSON) -> None:
    if not isinstance(value, list):
        raise bad_request(f"error decoding patch: {_not_into(value, '[]handlers.jsonPatchOp')}")
    for operation in value:
        if operation is not None and not isinstance(operation, dict):
            raise bad_request(f"error decoding patch: {_not_into(operation, 'handlers.jsonPatchOp')}")
    if len(value) > _MAX_OPERATIONS:
        raise request_too_large(
            f"The allowed maximum operations in a JSON patch is {_MAX_OPERATIONS}, got {len(value)}"
        )


def _applied_object(data: bytes) -> JSONObject:
    try:
        body = _json_of(data) or read_yaml(data)
    except DocumentError as error:
        raise bad_request(f"error decoding YAML: error converting YAML to JSON: {yaml_problem(error)}") from None
    if body.duplicates:
        raise bad_request(f"error decoding YAML: error converting YAML to JSON: {body.duplicates[0]}")
    if body.value is None:
        raise bad_request("invalid object type: /, Kind=")
    if not isinstance(body.value, dict):
        why = f"error unmarshaling JSON: while decoding JSON: {_not_into(body.value, _GO_MAP)}"
        raise bad_request(f"error decoding YAML: {why}")
    return body.value


def _json_of(data: bytes) -> Body | None:
    """Read YAML that is JSON as well, as clients send it: that is much quicker; None for what needs a closer look."""
    if not data.startswith(b"{"):
        return None
    try:
        body = read_json(data)
    except DocumentError as error:
        if error.message.endswith(_TOO_DEEP):
            raise  # it would be so as YAML, and take long
        return None
    return None if body.duplicates else body


def _kind(value: JSON) -> str:
    if isinstance(value, bool):
        return "bool"
    return {dict: "object", list: "array", str: "string", int: "number", float: "number"}.get(type(value), "null")
