"""The owners of the fields of an object: `metadata.managedFields` decoded and encoded (rules: see `serverside`)."""

from __future__ import annotations

from typing import TypeAlias

from pyverno.errors import ValueSyntaxError
from pyverno.kube.apply.fieldset import FieldSet
from pyverno.kube.json import JSON, JSONObject, encode, equal
from pyverno.value import dataclass, replace

__all__ = ["Claim", "Claims", "Manager", "bare", "capped", "claims_of", "claims_of_update", "settled", "with_claims"]

_ANCIENT = "ancient-changes"
_MAX_UPDATERS = 10


@dataclass(frozen=True, slots=True, order=True)
class Manager:
    """A writer of an object and its operation; an applier is the same whatever version it applies."""

    name: str
    operation: str
    version: str
    subresource: str

    def __str__(self) -> str:
        text = encode(self.name)
        if self.subresource:
            text += f" with subresource {encode(self.subresource)}"
        return f"{text} using {self.version}" if self.operation == "Update" else text


@dataclass(frozen=True, slots=True)
class Claim:
    """The fields that a manager owns, the version of its last write, and the time."""

    fields: FieldSet
    version: str
    time: str = ""


Claims: TypeAlias = dict[Manager, Claim]


def bare(body: JSONObject | None) -> JSONObject:
    """Return an object without its `managedFields`."""
    if body is None:
        return {}
    metadata = body.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return body
    return {**body, "metadata": {key: value for key, value in metadata.items() if key != "managedFields"}}


def _entries(body: JSONObject | None) -> JSON:
    return ((body or {}).get("metadata") or {}).get("managedFields")


def claims_of(body: JSONObject | None) -> Claims:
    """Read `managedFields`; malformed fields count as none, as for an object that was never tracked."""
    entries = _entries(body)
    claims: Claims = {}
    try:
        for entry in entries if isinstance(entries, list) else ():
            manager, claim = _claim(entry)
            claims[manager] = claim
    except ValueSyntaxError:
        return {}
    return claims


def _claim(entry: JSON) -> tuple[Manager, Claim]:
    if not isinstance(entry, dict):
        raise ValueSyntaxError("managed fields must be objects")
    read = {key: entry.get(key) or "" for key in ("manager", "operation", "apiVersion", "subresource", "time")}
    if not all(isinstance(value, str) for value in read.values()):
        raise ValueSyntaxError("managers, operations and versions of managed fields must be texts")
    operation, version = read["operation"], read["apiVersion"]
    if operation not in ("Apply", "Update") or not version or entry.get("fieldsType") != "FieldsV1":
        raise ValueSyntaxError("managed fields need an operation, a version and FieldsV1")
    known = version if operation == "Update" else ""
    manager = Manager(read["manager"], operation, known, read["subresource"])
    fields = entry.get("fieldsV1")
    return manager, Claim(FieldSet.from_json({} if fields is None else fields), version, read["time"])


def claims_of_update(before: JSONObject | None, after: JSONObject, subresource: str) -> Claims:
    """Return the claims that hold before a write: those that the writer sends, where it may and does."""
    if subresource:
        return claims_of(before)
    sent = _entries(after)
    if isinstance(sent, list) and (not sent or sent == [{}]):
        return {}
    return claims_of(after) or claims_of(before)


def capped(claims: Claims) -> Claims:
    """Merge the oldest of too many updaters, those of each version into one."""
    updaters = sorted(
        (manager for manager in claims if manager.operation == "Update"),
        key=lambda manager: (claims[manager].time, manager),
    )
    kept = dict(claims)
    first: dict[str, Manager] = {}
    left = len(updaters)
    for manager in updaters:
        if left <= _MAX_UPDATERS:
            break
        claim = kept[manager]
        if claim.version not in first:
            first[claim.version] = manager
            continue
        bucket = Manager(_ANCIENT, "Update", claim.version, "")
        if bucket not in kept:
            kept[bucket] = kept.pop(first[claim.version])
        if bucket != manager:
            kept[bucket] = replace(claim, fields=claim.fields.union(kept[bucket].fields))
            del kept[manager]
        left -= 1
    return kept


def with_claims(body: JSONObject, claims: Claims) -> JSONObject:
    """Return an object with these claims as its `managedFields`, in the order of an API server."""
    metadata = {key: value for key, value in (body.get("metadata") or {}).items() if key != "managedFields"}
    entries = [_entry(manager, claim) for manager, claim in claims.items()]
    if entries:
        metadata["managedFields"] = sorted(entries, key=_place)
    if not metadata and "metadata" not in body:
        return body
    return {**body, "metadata": metadata}


def _entry(manager: Manager, claim: Claim) -> JSONObject:
    entry: JSONObject = {"manager": manager.name, "operation": manager.operation, "apiVersion": claim.version}
    if claim.time:
        entry["time"] = claim.time
    entry |= {"fieldsType": "FieldsV1", "fieldsV1": claim.fields.to_json()}
    if manager.subresource:
        entry["subresource"] = manager.subresource
    return entry


def _place(entry: JSONObject) -> tuple[str, ...]:
    return tuple(entry.get(key, "") for key in ("operation", "time", "manager", "apiVersion", "subresource"))


def settled(before: JSONObject | None, after: JSONObject) -> JSONObject:
    """Return the earlier object where nothing but times of managers changed, so that nothing is written."""
    if before is None or not equal(bare(before), bare(after)):
        return after
    return before if equal(_timeless(before), _timeless(after)) else after


def _timeless(body: JSONObject) -> list[JSON]:
    entries = _entries(body) or ()
    kept = [{key: value for key, value in entry.items() if key != "time"} for entry in entries]
    return sorted(kept, key=_place)
