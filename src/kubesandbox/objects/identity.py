"""The identity that a body claims, checked against the path: kind, version, name, namespace, uid.

Texts are the API server's.
"""

from __future__ import annotations

from kubesandbox.objects.metadata import SYSTEM_FIELDS, metadata_of, with_metadata
from kubesandbox.parsing.bodies import summary
from kubesandbox.parsing.requests import go_quote
from kubesandbox.types.resources import ResourceTable, ResourceType
from pyverno.kube.gvk import GVK, parse_api_version
from pyverno.kube.json import JSON, JSONObject, encode
from pyverno.kube.status import FieldError, StatusError, already_exists, bad_request, conflict, invalid

__all__ = [
    "carried",
    "check_applied",
    "check_kind",
    "check_name",
    "check_segment",
    "check_uid",
    "check_version",
    "placed",
    "taken",
    "wiped",
]

_SCHEME = "pkg/runtime/scheme.go:111"


def check_segment(name: str) -> None:
    """Raise 400 for the name of a path that no object can have.

    >>> check_segment("..")
    Traceback (most recent call last):
    pyverno.kube.status.StatusError: Name parameter invalid: "..": may not be '..'
    """
    problems = (
        [f"may not be '{name}'"] if name in (".", "..") else [f"may not contain '{bad}'" for bad in "/%" if bad in name]
    )
    if problems:
        raise bad_request(f"Name parameter invalid: {go_quote(name)}: {';'.join(problems)}")


def check_kind(type: ResourceType, expected: GVK, body: JSONObject, table: ResourceTable) -> JSONObject:
    """Return a body with its kind and version, which built-in kinds may leave out; raises StatusError 400 and 422."""
    if type.is_custom and expected == type.gvk:
        return _check_custom(type, body)
    version, kind = body.get("apiVersion") or expected.api_version, body.get("kind") or expected.kind
    if not isinstance(version, str) or not isinstance(kind, str):
        raise bad_request(f"couldn't get version/kind; json parse error: json: cannot unmarshal {encode(version)}")
    if (version, kind) == (expected.api_version, expected.kind):
        return body if "kind" in body and "apiVersion" in body else {**body, "apiVersion": version, "kind": kind}
    if version.count("/") > 1:
        shown = summary(encode(body).encode())
        raise bad_request(
            f"the object provided is unrecognized (must be of type {expected.kind}): "
            f"unexpected GroupVersion string: {version} ({shown})"
        )
    found = GVK(*parse_api_version(version), kind)
    head = f'{kind} in version "{found.version}" cannot be handled as a {expected.kind}'
    known = table.by_kind(found)
    if known is None:
        raise bad_request(f'{head}: no kind "{kind}" is registered for version "{version}" in scheme "{_SCHEME}"')
    if kind == expected.kind and known.key == type.key:
        raise bad_request(
            f"the API version in the data ({version}) does not match the expected API version ({expected.api_version})"
        )
    internal = f"({_package(found)}.{kind}) to ({_internal(expected)}.{expected.kind})"
    raise bad_request(f"{head}: converting {internal}: unknown conversion")


def _package(gvk: GVK) -> str:
    return gvk.version


def _internal(gvk: GVK) -> str:
    return gvk.group.partition(".")[0] or "core"


def _check_custom(type: ResourceType, body: JSONObject) -> JSONObject:
    version, kind = body.get("apiVersion"), body.get("kind")
    shown = encode(body)
    if not isinstance(kind, str) or not kind:
        text = f"Object 'Kind' is missing in '{shown}' ({shown})"
        raise bad_request(f"the object provided is unrecognized (must be of type {type.kind}): {text}")
    if not isinstance(version, str) or not version:
        text = f"Object 'apiVersion' is missing in '{shown}' ({shown})"
        raise bad_request(f"the object provided is unrecognized (must be of type {type.kind}): {text}")
    if version != type.api_version:
        raise bad_request(
            f"the API version in the data ({version}) does not match the expected API version ({type.api_version})"
        )
    if kind != type.kind:
        name = metadata_of(body).get("name") or ""
        why = FieldError("kind", "Invalid value", f"must be {type.kind}", go_quote(kind))
        raise invalid(type.group, kind, name, [why])
    return body


def placed(type: ResourceType, namespace: str, body: JSONObject) -> JSONObject:
    """Return the object with the namespace of the path; raises StatusError 400 when it names another one."""
    given = metadata_of(body).get("namespace") or ""
    if not type.namespaced:
        if given:
            return with_metadata(body, namespace=None)
        return body if "metadata" in body else {**body, "metadata": {}}
    if given == namespace:
        return body
    if given:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    return with_metadata(body, namespace=namespace)


def check_name(given: JSON, name: str) -> None:
    """Raise 400 when the object has another name than the path, or none."""
    if not given:
        raise bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if given != name:
        raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")


def check_uid(type: ResourceType, current: JSONObject, uid: JSON) -> None:
    """Raise 409 when a client means an object that had the same name before."""
    found = metadata_of(current)
    if not uid or uid == found.get("uid"):
        return
    place = "/".join(part for part in (found.get("namespace"), found.get("name")) if part)
    folder = f"{type.group}/{type.plural}" if type.is_custom else type.plural
    raise conflict(
        type.group,
        type.plural,
        found.get("name", ""),
        f"StorageError: invalid object, Code: 4, Key: /registry/{folder}/{place}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {found.get('uid')}",
    )


def check_version(type: ResourceType, current: JSONObject, version: str) -> bool:
    """Return whether a client insists on a version; raises 500 for what is no version and 409 for an old one."""
    if not version:
        return False
    if not (version.isascii() and version.isdigit()):
        # upstream gives no reason and calls it an error of its own
        raise StatusError(500, "", f"strconv.ParseUint: parsing {go_quote(version)}: invalid syntax")
    if int(version) == 0:
        return False
    found = metadata_of(current)
    if version != found.get("resourceVersion"):
        raise conflict(type.group, type.plural, found.get("name", ""))
    return True


def check_applied(type: ResourceType, body: JSONObject, name: str) -> None:
    """Raise 400 when the applied body is no object of this type and name."""
    version, kind = body.get("apiVersion") or "", body.get("kind") or ""
    if (version, kind) != (type.api_version, type.kind):
        group, number = parse_api_version(version) if isinstance(version, str) else ("", "")
        raise bad_request(f"invalid object type: {group}/{number}, Kind={kind}")
    metadata = metadata_of(body)
    if metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    given = metadata.get("name")
    if given and given != name:
        raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")


def wiped(body: JSONObject) -> JSONObject:
    """Return a new object without the metadata that only the server may set.

    Its generation is set later, and only for those that count their changes.
    """
    return with_metadata(body, **dict.fromkeys(SYSTEM_FIELDS))


def carried(body: JSONObject, current: JSONObject) -> JSONObject:
    """Return the next state of an object with the metadata that no client can change."""
    new, old = metadata_of(body), metadata_of(current)
    metadata = {**new, "resourceVersion": old.get("resourceVersion"), "selfLink": None}
    metadata["creationTimestamp"] = old.get("creationTimestamp")
    metadata["generation"] = old.get("generation")
    if not new.get("uid"):
        metadata["uid"] = old.get("uid")
    if old.get("deletionTimestamp"):
        metadata["deletionTimestamp"] = old["deletionTimestamp"]
        if new.get("deletionGracePeriodSeconds") is None:
            metadata["deletionGracePeriodSeconds"] = old.get("deletionGracePeriodSeconds")
    kept = {key: value for key, value in metadata.items() if value is not None}
    return body if kept == new else {**body, "metadata": kept}


def taken(type: ResourceType, present: JSONObject) -> StatusError:
    """Return the error of a name that an object has already."""
    metadata = metadata_of(present)
    error = already_exists(type.group, type.plural, metadata["name"])
    if not metadata.get("deletionTimestamp"):
        return error
    message = f"object is being deleted: {error.message}"
    return StatusError(409, "AlreadyExists", message, group=type.group, kind=type.plural, name=metadata["name"])
