"""CustomResourceDefinitions: what they add to what is served, whether their names are free, what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from kubesandbox.objects.fielderrors import duplicate, forbidden, invalid, required, unsupported
from kubesandbox.schema.structural import schema_errors
from kubesandbox.types.resources import ResourceTable, ResourceType
from kubesandbox.validation.names import dns_label_1035_problems, dns_subdomain_problems
from kubesandbox.validation.webhookclient import client_config, review_versions
from pyverno.kube.gvk import version_order
from pyverno.kube.json import JSON, JSONObject, equal
from pyverno.kube.status import FieldError

__all__ = [
    "accepted",
    "definition_update_errors",
    "is_established",
    "selectable_fields",
    "types_of",
    "validate_definition",
]

_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_PROTECTED: Final = ("k8s.io", "kubernetes.io")
_APPROVAL: Final = "api-approved.kubernetes.io"


def types_of(crd: JSONObject) -> tuple[ResourceType, ...]:
    """Return the types that a definition serves, the preferred version first."""
    spec, metadata = crd.get("spec") or {}, crd.get("metadata") or {}
    names = (crd.get("status") or {}).get("acceptedNames") or {}
    names = names if names.get("plural") else spec.get("names") or {}
    versions = spec.get("versions") or ()
    served = [version for version in versions if version.get("served")]
    storage = next((str(version["name"]) for version in versions if version.get("storage")), "")
    by_webhook = (spec.get("conversion") or {}).get("strategy") == "Webhook"
    return tuple(
        ResourceType(
            group=str(spec.get("group", "")),
            version=str(version["name"]),
            plural=str(names.get("plural", "")),
            kind=str(names.get("kind", "")),
            singular=str(names.get("singular") or names.get("kind", "").lower()),
            namespaced=spec.get("scope") == "Namespaced",
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            subresources=tuple(
                name for name in ("scale", "status") if isinstance((version.get("subresources") or {}).get(name), dict)
            ),
            crd=str(metadata.get("name", "")),
            list_kind=str(names.get("listKind") or f"{names.get('kind', '')}List"),
            converts_by_webhook=by_webhook,
            storage=storage,
        )
        for version in sorted(served, key=lambda item: version_order(str(item["name"])))
    )


def _version(crd: JSONObject, name: str) -> JSONObject:
    versions = (crd.get("spec") or {}).get("versions") or ()
    return next((version for version in versions if version.get("name") == name), {})


def selectable_fields(crd: JSONObject, version: str) -> tuple[str, ...]:
    """Return the fields besides name and namespace that field selectors of a version may name: `spec.color`."""
    fields = _version(crd, version).get("selectableFields") or ()
    return tuple(str(field.get("jsonPath", "")).removeprefix(".") for field in fields)


def is_established(crd: JSONObject) -> bool:
    """Return whether the types of a definition are served."""
    return _condition(crd, "Established").get("status") == "True"


def _condition(crd: JSONObject, kind: str) -> JSONObject:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return next((condition for condition in conditions if condition.get("type") == kind), {})


def accepted(crd: JSONObject, table: ResourceTable, *, now: str | None = None) -> JSONObject:
    """Return the definition with the status that the API server gives it; `now` is the time of changed conditions.

    Names that another resource of the group has are not accepted, and then nothing is served. Once established a
    definition stays so.
    """
    spec, name = crd.get("spec") or {}, str((crd.get("metadata") or {}).get("name", ""))
    others = [type_ for type_ in table if type_.group == spec.get("group") and type_.crd != name]
    names = spec.get("names") or {}
    reason, message = _conflict(names, others)
    before = crd.get("status") or {}
    is_free = not reason
    names_condition = _Condition("NamesAccepted", is_free, reason or "NoConflicts", message or "no conflicts found")
    if is_free or is_established(crd):
        text = "the initial names have been accepted"
        established = _Condition("Established", True, "InitialNamesAccepted", text)
    else:
        established = _Condition("Established", False, "NotAccepted", "not all names are accepted")
    conditions = [each.to_json(_condition(crd, each.type), now) for each in (names_condition, established)]
    kept = [item for item in before.get("conditions") or () if item.get("type") not in ("NamesAccepted", "Established")]
    stored = list(before.get("storedVersions") or ())
    stored += [v["name"] for v in spec.get("versions") or () if v.get("storage") and v.get("name") not in stored]
    given = names if is_free else before.get("acceptedNames") or {"plural": "", "kind": ""}
    status = {"conditions": [*kept, *conditions], "acceptedNames": given, "storedVersions": stored}
    return {**crd, "status": status}


def _conflict(names: JSONObject, others: Iterable[ResourceType]) -> tuple[str, str]:
    taken: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        taken.update((other.plural, other.singular, *other.short_names))
        kinds.update((other.kind, other.list_kind))
    for reason, name, used in (
        ("PluralConflict", names.get("plural"), taken),
        ("SingularConflict", names.get("singular"), taken),
        *(("ShortNamesConflict", short, taken) for short in names.get("shortNames") or ()),
        ("KindConflict", names.get("kind"), kinds),
        ("ListKindConflict", names.get("listKind"), kinds),
    ):
        if name and name in used:
            return reason, f'"{name}" is already in use'
    return "", ""


@dataclass(frozen=True, slots=True)
class _Condition:
    type: str
    is_true: bool
    reason: str
    message: str

    def to_json(self, old: JSONObject, now: str | None) -> JSONObject:
        """Return the condition; its time is that of the old one unless the status changed."""
        status = "True" if self.is_true else "False"
        time = old.get("lastTransitionTime") if old.get("status") == status else now
        condition: JSONObject = {"lastTransitionTime": time} if time else {}
        return {**condition, "message": self.message, "reason": self.reason, "status": status, "type": self.type}


def validate_definition(crd: JSONObject, version: tuple[int, int] = (1, 35)) -> list[FieldError]:
    """Return what is wrong with a definition; `version` is that of Kubernetes.

    >>> [str(error) for error in validate_definition({"metadata": {"name": "a.b.io"}, "spec": {}})][:2]
    ['metadata.name: Invalid value: "a.b.io": must be spec.names.plural+"."+spec.group', 'spec.group: Required value']
    """
    spec = crd.get("spec") or {}
    name = str((crd.get("metadata") or {}).get("name", ""))
    errors: list[FieldError] = []
    wanted = f"{(spec.get('names') or {}).get('plural', '')}.{spec.get('group', '')}"
    if name and name != wanted:
        errors.append(invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    errors += (*_group_errors(spec), *_scope_errors(spec), *_version_errors(spec, version))
    errors += _name_errors(spec.get("names") or {})
    errors += _conversion_errors(spec.get("conversion") or {})
    if not any(entry.get("storage") for entry in spec.get("versions") or ()):
        errors.append(invalid("status.storedVersions", None, "must have at least one stored version"))
    errors += _approval_errors(crd, spec)
    return errors


def _conversion_errors(conversion: JSONObject) -> list[FieldError]:
    """Return what is wrong with how versions are converted; upstream names the fields as its internal form does."""
    if not conversion:
        return []
    errors: list[FieldError] = []
    path, strategy = "spec.conversion", conversion.get("strategy") or ""
    client_path, versions_path = f"{path}.webhookClientConfig", f"{path}.conversionReviewVersions"
    webhook: JSONObject = conversion.get("webhook") or {}
    client, versions = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    if not strategy:
        errors.append(required(f"{path}.strategy"))
    elif strategy not in ("None", "Webhook"):
        errors.append(unsupported(f"{path}.strategy", strategy, ("None", "Webhook")))
    if strategy == "Webhook":
        if client is None:
            errors.append(required(client_path, "required when strategy is set to Webhook"))
        else:
            client_config(client, client_path, errors)
        review_versions(versions, versions_path, errors)
        return errors
    why = "should not be set when strategy is not set to Webhook"
    errors += [forbidden(place, why) for place, value in ((client_path, client), (versions_path, versions)) if value]
    return errors


def _approval_errors(crd: JSONObject, spec: JSONObject) -> Iterator[FieldError]:
    group = str(spec.get("group", ""))
    annotations = (crd.get("metadata") or {}).get("annotations") or {}
    is_protected = any(group == domain or group.endswith(f".{domain}") for domain in _PROTECTED)
    if is_protected and not annotations.get(_APPROVAL):
        why = 'protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111'
        yield required(f"metadata.annotations[{_APPROVAL}]", why)


def _group_errors(spec: JSONObject) -> Iterator[FieldError]:
    group = str(spec.get("group") or "")
    problems = dns_subdomain_problems(group) if group else ()
    if not group:
        yield required("spec.group")
    elif problems:
        yield invalid("spec.group", group, ",".join(problems))
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")


def _scope_errors(spec: JSONObject) -> Iterator[FieldError]:
    scope = spec.get("scope") or ""
    if not scope:
        yield required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        yield unsupported("spec.scope", scope, ("Cluster", "Namespaced"))


def _version_errors(spec: JSONObject, version: tuple[int, int]) -> Iterator[FieldError]:
    versions: list[JSONObject] = spec.get("versions") or []
    # Kubernetes: what all versions have in common is at the top of its internal form, and so in its messages
    is_common = all(equal(_shared(entry), _shared(versions[0])) for entry in versions)
    for index, entry in enumerate(versions):
        path = f"spec.versions[{index}]"
        problems = dns_label_1035_problems(str(entry.get("name") or ""))
        if problems:
            yield invalid(f"{path}.name", entry.get("name") or "", ",".join(problems))
        if not is_common or index == 0:
            yield from _entry_errors(entry, "spec" if is_common else path, version, is_common=is_common)
    names = [entry.get("name") for entry in versions]
    if len(set(names)) < len(names):
        yield invalid("spec.versions", versions, "must contain unique version names")
    if sum(bool(entry.get("storage")) for entry in versions) != 1:
        yield invalid("spec.versions", versions, "must have exactly one version marked as storage version")
    if spec.get("preserveUnknownFields"):
        why = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead; "
            "see https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/"
            "custom-resource-definitions/#field-pruning for details"
        )
        yield invalid("spec.preserveUnknownFields", True, why)


def _shared(entry: JSONObject) -> JSONObject:
    return {key: entry.get(key) for key in ("schema", "subresources", "additionalPrinterColumns", "selectableFields")}


def _entry_errors(entry: JSONObject, path: str, version: tuple[int, int], *, is_common: bool) -> Iterator[FieldError]:
    schema = (entry.get("schema") or {}).get("openAPIV3Schema")
    place = f"{path}.validation.openAPIV3Schema" if is_common else f"{path}.schema.openAPIV3Schema"
    if not isinstance(schema, dict):
        yield required(place.replace("validation", "versions[0].schema"), "schemas are required")
    else:
        yield from schema_errors(schema, place, version)
    yield from _subresource_errors(entry, path)
    yield from _column_errors(entry, path)
    yield from _selectable_errors(entry, schema if isinstance(schema, dict) else {}, path)


def _subresource_errors(entry: JSONObject, path: str) -> Iterator[FieldError]:
    scale = (entry.get("subresources") or {}).get("scale")
    if not isinstance(scale, dict):
        return
    rows = (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status."))
    for key, start in rows:
        text = str(scale.get(key) or "")
        if not text:
            yield required(f"{path}.subresources.scale.{key}")
        elif not text.startswith(start):
            where = start.rstrip(".")
            yield invalid(f"{path}.subresources.scale.{key}", text, f"should be a json path under {where}")
    selector = scale.get("labelSelectorPath")
    if selector and not str(selector).startswith((".spec.", ".status.")):
        what = "should be a json path under either .spec or .status"
        yield invalid(f"{path}.subresources.scale.labelSelectorPath", selector, what)


def _column_errors(entry: JSONObject, path: str) -> Iterator[FieldError]:
    for index, column in enumerate(entry.get("additionalPrinterColumns") or ()):
        place = f"{path}.additionalPrinterColumns[{index}]"
        listed = f"must be one of {','.join(_COLUMN_TYPES)}"
        if not column.get("name"):
            yield required(f"{place}.name")
        if not column.get("type"):
            yield required(f"{place}.type", listed)
        elif column["type"] not in _COLUMN_TYPES:
            yield invalid(f"{place}.type", column["type"], listed)
        if not column.get("jsonPath"):
            yield required(f"{place}.jsonPath")


def _selectable_errors(entry: JSONObject, schema: JSONObject, path: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, field in enumerate(entry.get("selectableFields") or ()):
        place, text = f"{path}.selectableFields[{index}].jsonPath", str(field.get("jsonPath") or "")
        found: JSON = schema
        for step in text.removeprefix(".").split("."):
            found = (found.get("properties") or {}).get(step) if isinstance(found, dict) else None
        if not text:
            yield required(place)
        elif found is None:
            yield invalid(place, text, "is an invalid path: does not refer to a valid field")
        elif text.startswith(".metadata"):
            yield invalid(place, text, "must not point to fields in metadata")
        elif found.get("type") not in ("string", "boolean", "integer"):
            what = (
                "must point to a field of type string, boolean or integer. Enum string fields and strings with formats "
                "are allowed."
            )
            yield invalid(place, text, what)
        elif text in seen:
            yield duplicate(place, text)
        seen.add(text)


def _name_errors(names: JSONObject) -> Iterator[FieldError]:
    for key in ("plural", "singular", "kind", "listKind"):
        if not names.get(key):
            yield required(f"spec.names.{key}")
    for key in ("plural", "singular"):
        text = str(names.get(key) or "")
        problems = dns_label_1035_problems(text) if text else ()
        if problems:
            yield invalid(f"spec.names.{key}", text, ",".join(problems))
    for key in ("kind", "listKind"):
        text = str(names.get(key) or "")
        problems = dns_label_1035_problems(text.lower()) if text else ()
        if problems:
            what = f"may have mixed case, but should otherwise match: {','.join(problems)}"
            yield invalid(f"spec.names.{key}", text, what)
    for index, short in enumerate(names.get("shortNames") or ()):
        problems = dns_label_1035_problems(short)
        if problems:
            yield invalid(f"spec.names.shortNames[{index}]", short, ",".join(problems))
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")


def definition_update_errors(crd: JSONObject, old: JSONObject) -> list[FieldError]:
    """Return what may not change: an established definition keeps its scope and kind, all keep group and plural."""
    spec, before = crd.get("spec") or {}, old.get("spec") or {}
    rows = [(("group",), True), (("names", "plural"), True)]
    rows += [(("scope",), is_established(old)), (("names", "kind"), is_established(old))]
    errors = []
    for steps, is_fixed in rows:
        new, kept = _at(spec, steps), _at(before, steps)
        if is_fixed and new != kept:
            errors.append(invalid(".".join(("spec", *steps)), new, "field is immutable"))
    names = {version.get("name") for version in spec.get("versions") or ()}
    for index, stored in enumerate((old.get("status") or {}).get("storedVersions") or ()):
        if stored not in names:
            what = (
                f"missing from spec.versions; {stored} was previously a storage version, and must remain in "
                "spec.versions until a storage migration ensures no data remains persisted in "
                f"{stored} and removes {stored} from status.storedVersions"
            )
            errors.append(invalid(f"status.storedVersions[{index}]", stored, what))
    return errors


def _at(value: JSON, steps: Iterable[str]) -> JSON:
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value
