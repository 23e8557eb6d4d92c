"""Server-side apply, and the record of the owners of fields (`metadata.managedFields`).

`apply` lays a configuration over an object for a manager, `track` records what a create, update or patch changed. The
rules are those of structured-merge-diff and of the API machinery's field manager; versions of one kind are assumed to
have the same fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pyverno.errors import DocumentError, PatchError
from pyverno.kube.apply.fieldset import FieldSet, path_text
from pyverno.kube.apply.managedfields import (
    Claim,
    Claims,
    Manager,
    bare,
    capped,
    claims_of,
    claims_of_update,
    settled,
    with_claims,
)
from pyverno.kube.apply.schematree import SchemaTree, schema_tree_for, schema_tree_of
from pyverno.kube.apply.typedcheck import problems
from pyverno.kube.apply.typedmerge import merge
from pyverno.kube.apply.typedvalue import compare, fields_of, taken_out, with_named_parents
from pyverno.kube.json import JSON, JSONObject, decode, encode
from pyverno.kube.status import Cause, StatusError, bad_request
from pyverno.value import dataclass, replace

__all__ = [
    "ApplyConflictError",
    "SchemaTree",
    "apply",
    "check_applied",
    "manager_name",
    "not_typed",
    "reset_fields",
    "schema_tree_for",
    "schema_tree_of",
    "track",
]

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_KUBECTL = "kubectl"
_BEFORE = "before-first-apply"
_LONGEST_NAME = 128
_UNTRACKED = FieldSet.of(
    [
        ("f:apiVersion",),
        ("f:kind",),
        ("f:metadata",),
        *(
            ("f:metadata", f"f:{name}")
            for name in (
                "name",
                "namespace",
                "creationTimestamp",
                "selfLink",
                "uid",
                "clusterName",
                "generation",
                "managedFields",
                "resourceVersion",
            )
        ),
    ]
)


class ApplyConflictError(StatusError):
    """Others own fields that the configuration sets to something else; `conflicts` are pairs of manager and path.

    >>> str(ApplyConflictError([('"kubectl" using apps/v1', ".spec.replicas")]))
    'Apply failed with 1 conflict: conflict with "kubectl" using apps/v1: .spec.replicas'
    """

    def __init__(self, conflicts: Iterable[tuple[str, str]]) -> None:
        """Take the managers as messages name them, and the paths."""
        found = tuple(conflicts)
        causes = [Cause("FieldManagerConflict", f"conflict with {manager}", path) for manager, path in found]
        super().__init__(409, "Conflict", _format_conflicts(found), causes=causes)
        self.conflicts = found


def _format_conflicts(conflicts: tuple[tuple[str, str], ...]) -> str:
    if len(conflicts) == 1:
        manager, path = conflicts[0]
        return f"Apply failed with 1 conflict: conflict with {manager}: {path}"
    lines = []
    for manager in dict.fromkeys(manager for manager, _ in conflicts):
        lines.append(f"conflicts with {manager}:")
        lines += [f"- {path}" for other, path in conflicts if other == manager]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def manager_name(field_manager: str, user_agent: str) -> str:
    """Return the name of the writer: the `fieldManager` of the request, or the name in its user agent.

    >>> manager_name("", "kubectl/v1.32.4 (linux/amd64)"), manager_name("me", "kubectl/v1.32.4")
    ('kubectl', 'me')
    """
    if field_manager:
        return field_manager
    name = ""
    for character in user_agent.split("/", 1)[0]:
        if character.isprintable():
            if len((name + character).encode()) > _LONGEST_NAME:
                break
            name += character
    return name


def reset_fields(type_fields: Iterable[str], subresource: str, *, has_status: bool) -> FieldSet:
    """Return the fields that a write at an endpoint cannot change, whose names are `type_fields` at the top.

    >>> reset_fields(("metadata", "spec", "status"), "", has_status=True).to_json()
    {'f:status': {}}
    """
    if subresource == "status":
        return FieldSet.of((f"f:{name}",) for name in type_fields if name == "spec")
    return FieldSet.of([("f:status",)] if has_status and not subresource else [])


def apply(
    live: JSONObject | None,
    applied: JSONObject,
    *,
    manager: str,
    schema: SchemaTree,
    version: str,
    time: str,
    force: bool,
    subresource: str = "",
    ignored: FieldSet | None = None,
) -> JSONObject:
    """Return the object after a manager applied its configuration, with `managedFields`.

    Fields that the manager applied before and leaves out now are removed, unless another manager owns them. `version`
    is the `apiVersion` of the request, `time` its time (RFC 3339), `ignored` the fields that its endpoint cannot change
    (see `reset_fields`). Raises ApplyConflictError unless `force` takes over the fields of others,
    and StatusError for a configuration that is not of its type. Applying the same again gives an equal object.

    >>> tree = schema_tree_of(None)
    >>> one = apply(None, {"a": 1}, manager="x", schema=tree, version="v1", time="2026-01-01T00:00:00Z", force=False)
    >>> one["metadata"]["managedFields"][0]["fieldsV1"]
    {'f:a': {}}
    """
    name = manager or "unknown"
    if (applied.get("metadata") or {}).get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    claims = claims_of(live)
    old = bare(live)
    run = _Run(schema, version, time, subresource, ignored or FieldSet())
    try:
        check_applied(applied, schema)
        if live is not None and not claims:
            claims = run.tracked({}, old, claims, Manager(_BEFORE, "Update", version, subresource))
        key = Manager(name, "Apply", "", subresource)
        try:
            result, after = run.applied(old, applied, claims, key, force)
        except _ConflictError as error:
            if manager != _KUBECTL or force:
                raise ApplyConflictError(_describe_conflicts(error.conflicts)) from None
            rest = _without_own(error.conflicts, old, schema, version)
            if rest:
                raise ApplyConflictError(_describe_conflicts(rest)) from None
            result, after = run.applied(old, applied, claims, key, True)
    except RecursionError:
        raise bad_request("the configuration or the object is nested too deeply") from None
    except PatchError as error:
        raise StatusError(500, "", f"failed to merge config: {error.message}") from None
    if manager == _KUBECTL:
        result = _with_last_applied(result, applied)
    return settled(live, with_claims(result, after))


def track(
    before: JSONObject | None,
    after: JSONObject,
    *,
    manager: str,
    schema: SchemaTree,
    version: str,
    time: str,
    operation: str = "Update",
    subresource: str = "",
    ignored: FieldSet | None = None,
) -> JSONObject:
    """Return an object that was created, updated or patched, with `managedFields` that record the manager's changes.

    `managedFields` that the object brings along count; `[{}]` or an empty list forgets all managers. Fields that are
    gone have no owner. An object without managers stays without, unless it is created.

    >>> tree = schema_tree_of(None)
    >>> one = track(None, {"a": 1}, manager="x", schema=tree, version="v1", time="2026-01-01T00:00:00Z")
    >>> two = track(one, {"a": 1, "b": 2}, manager="y", schema=tree, version="v1", time="2026-01-01T00:00:01Z")
    >>> [(entry["manager"], entry["fieldsV1"]) for entry in two["metadata"]["managedFields"]]
    [('x', {'f:a': {}}), ('y', {'f:b': {}})]
    """
    claims = claims_of_update(before, after, subresource)
    new, old = bare(after), bare(before)
    if not claims and before is not None:
        return with_claims(new, {})
    run = _Run(schema, version, time, subresource, ignored or FieldSet())
    try:
        kept = run.tracked(old, new, claims, Manager(manager or "unknown", operation, version, subresource))
    except (PatchError, RecursionError):
        # such an object is refused elsewhere; its fields cannot be tracked
        return with_claims(new, {})
    return settled(before, with_claims(new, capped(kept)))


# ── The rules ────────────────────────────────────────────────────────────────────────────────────────────────────────


class _ConflictError(Exception):
    def __init__(self, conflicts: Mapping[Manager, FieldSet]) -> None:
        self.conflicts = conflicts


@dataclass(frozen=True, slots=True)
class _Run:
    """The parameters of one write."""

    schema: SchemaTree
    version: str
    time: str
    subresource: str
    ignored: FieldSet

    def tracked(self, before: JSONObject, after: JSONObject, claims: Claims, manager: Manager) -> Claims:
        """Return the claims after an object changed."""
        changed = compare(self._whole(before), self._whole(after), self.schema).without(self.ignored)
        kept = _yield_fields(claims, None, changed.modified.union(changed.added), changed.removed)
        taken = changed.modified.union(changed.added).difference(_UNTRACKED)
        if taken:
            old = kept.get(manager)
            kept[manager] = Claim(taken if old is None else old.fields.union(taken), self.version, self.time)
        return kept

    def applied(
        self, live: JSONObject, config: JSONObject, claims: Claims, manager: Manager, force: bool
    ) -> tuple[JSONObject, Claims]:
        """Return the object and the claims after a configuration was applied; raises _ConflictError."""
        merged: JSONObject = merge(live, config, self.schema)
        last = claims.get(manager)
        wanted = fields_of(config, self.schema).without(self.ignored)
        mine = {**claims, manager: Claim(wanted, self.version, self.time)}
        result = _prune(merged, self.schema, last.fields, mine) if last is not None else merged
        changed = compare(self._whole(live), self._whole(result), self.schema).without(self.ignored)
        touched = changed.modified.union(changed.added)
        conflicts = {
            other: found
            for other, claim in mine.items()
            if other != manager and (found := claim.fields.intersection(touched))
        }
        if conflicts and not force:
            raise _ConflictError(conflicts)
        kept = _yield_fields(mine, manager, touched, changed.removed)
        kept[manager] = replace(mine[manager], fields=wanted.difference(_UNTRACKED))
        return result, {other: claim for other, claim in kept.items() if claim.fields}

    def _whole(self, body: JSONObject) -> JSONObject:
        """Return an object with the parts that its kind is never without."""
        return _complete(body, self.schema.empty)


def _complete(body: JSONObject, parts: JSONObject) -> JSONObject:
    if not parts:
        return body
    completed = dict(body)
    for name, part in parts.items():
        present = body.get(name)
        if isinstance(part, dict) and (present is None or isinstance(present, dict)):
            completed[name] = _complete(present or {}, part)
        elif name not in body:
            completed[name] = part
    return completed


def _yield_fields(claims: Claims, manager: Manager | None, touched: FieldSet, removed: FieldSet) -> Claims:
    """Return the claims without changed and removed fields, except those of one manager."""
    kept: Claims = {}
    for other, claim in claims.items():
        if other != manager:
            claim = replace(claim, fields=claim.fields.difference(touched).difference(removed))  # noqa: PLW2901
        if claim.fields:
            kept[other] = claim
    return kept


def _prune(merged: JSONObject, schema: SchemaTree, last: FieldSet, claims: Claims) -> JSONObject:
    """Remove the fields that the manager applied last and does not apply now, unless another manager owns them."""
    if not last:
        return merged
    result: JSONObject | None
    before = with_named_parents(last, schema)
    pruned = taken_out(merged, before, schema)
    owned = FieldSet()
    for claim in claims.values():
        owned = owned.union(claim.fields)
    present = with_named_parents(fields_of(merged, schema), schema)
    left = with_named_parents(fields_of(pruned or {}, schema), schema)
    pruned = taken_out(merged, present.difference(left.union(with_named_parents(owned, schema))), schema)
    # fields without an owner that were removed with their parent come back
    left = with_named_parents(fields_of(pruned or {}, schema), schema)
    result = taken_out(merged, present.difference(left).intersection(before), schema)
    return _tidy(result or {}, merged, is_builtin=schema.is_builtin)


def _tidy(body: JSONObject, merged: JSONObject, *, is_builtin: bool) -> JSONObject:
    """Drop maps and lists of which nothing is left; in a custom resource those outside of its metadata are null."""
    if is_builtin:
        tidy: JSONObject = _without_new_nulls(body, merged)
        return tidy
    if "metadata" not in body:
        return body
    return {**body, "metadata": _without_new_nulls(body["metadata"], merged.get("metadata"))}


def _without_new_nulls(value: JSON, model: JSON) -> JSON:
    """Drop the nulls left by maps and lists that became empty."""
    if isinstance(value, dict) and isinstance(model, dict):
        return {
            name: _without_new_nulls(item, model.get(name))
            for name, item in value.items()
            if item is not None or model.get(name) is None
        }
    return value


# ── Conflicts ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _describe_conflicts(conflicts: Mapping[Manager, FieldSet]) -> Iterator[tuple[str, str]]:
    for manager, fields in sorted(conflicts.items(), key=lambda item: item[0]):
        for path in fields.paths():
            yield str(manager), path_text(path)


def _without_own(
    conflicts: Mapping[Manager, FieldSet], live: JSONObject, schema: SchemaTree, version: str
) -> dict[Manager, FieldSet]:
    """Leave out the fields that `kubectl apply` set before it applied at the server: they are its own."""
    allowed = _last_applied_fields(live, schema, version)
    rest = {manager: fields.difference(allowed) for manager, fields in conflicts.items()}
    return {manager: fields for manager, fields in rest.items() if fields}


def _last_applied_fields(live: JSONObject, schema: SchemaTree, version: str) -> FieldSet:
    annotations = (live.get("metadata") or {}).get("annotations")
    text = annotations.get(_LAST_APPLIED) if isinstance(annotations, dict) else None
    try:
        last = decode(text) if isinstance(text, str) else None
        if not isinstance(last, dict) or last.get("apiVersion") != version:
            return FieldSet()
        changed = compare(last, live, schema)
        fields = fields_of(last, schema)
    except (DocumentError, PatchError):
        return FieldSet()
    return fields.difference(changed.modified).difference(changed.added).difference(changed.removed)


def _with_last_applied(result: JSONObject, applied: JSONObject) -> JSONObject:
    """Keep the annotation of `kubectl apply` true, where there is one."""
    metadata = result.get("metadata") or {}
    annotations = metadata.get("annotations")
    if not isinstance(annotations, dict) or not annotations.get(_LAST_APPLIED):
        return result
    own = applied.get("metadata") or {}
    mine = {key: value for key, value in (own.get("annotations") or {}).items() if key != _LAST_APPLIED}
    if "annotations" in own:
        own = {key: value for key, value in own.items() if key != "annotations"} | (
            {"annotations": mine} if mine else {}
        )
    text = encode({**applied, "metadata": own}) + "\n"
    return {**result, "metadata": {**metadata, "annotations": {**annotations, _LAST_APPLIED: text}}}


def check_applied(applied: JSONObject, schema: SchemaTree) -> None:
    """Raise StatusError for a configuration that does not fit the schema of its kind."""
    found = problems(applied, schema)
    if found:
        raise not_typed(applied, found)


def not_typed(applied: JSONObject, why: str) -> StatusError:
    """Return the error of an applied configuration that does not fit the schema of its kind."""
    metadata = applied.get("metadata")
    place = metadata if isinstance(metadata, dict) else {}
    group, _, version = str(applied.get("apiVersion", "")).rpartition("/")
    kind = f"{group}/{version}, Kind={applied.get('kind', '')}"
    where = f"{place.get('namespace') or ''}/{place.get('name') or ''}; {kind}"
    # upstream gives no reason and has a separate error type
    return StatusError(500, "", f"failed to create typed patch object ({where}): {why}")
