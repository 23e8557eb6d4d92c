"""Whether the schema of a CustomResourceDefinition is one that the API server takes: structural, complete, compilable.

Errors come back in the order of their texts, as the API server sorts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from kubesandbox.objects.fielderrors import forbidden, go_struct, invalid, required, unsupported
from kubesandbox.schema.checking import compile_check
from kubesandbox.schema.correlation import UNRELATED
from kubesandbox.schema.rulesearch import has_rules
from pyverno.errors import EvaluationError
from pyverno.kube.json import JSONObject
from pyverno.kube.status import FieldError

__all__ = ["schema_errors"]

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_EMPTY_TYPE: Final[Mapping[str, str]] = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_UNSUPPORTED: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_NOT_NESTED: Final[Mapping[str, str]] = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
}
_INT_OR_STRING: Final = ([{"type": "integer"}, {"type": "string"}], [{"type": "string"}, {"type": "integer"}])
_RULE_FIELDS: Final = ("Rule", "Message", "MessageExpression", "Reason", "FieldPath", "OptionalOldSelf")
_METADATA: Final = frozenset({"name", "generateName"})


def schema_errors(schema: JSONObject, path: str, version: tuple[int, int]) -> list[FieldError]:
    """Return the errors in the schema of a version; `version` is that of Kubernetes.

    >>> [str(error) for error in schema_errors({"properties": {}}, "schema", (1, 35))]
    ['schema.type: Required value: must not be empty at the root']
    """
    errors = sorted((*_level(schema, path, "root"), *_completeness(schema, schema, path)), key=str)
    if schema.get("nullable"):
        errors.append(forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    return errors or (list(_rules(schema, path, version, is_root=True)) if has_rules(schema) else [])


def _level(schema: JSONObject, path: str, level: str) -> Iterator[FieldError]:
    """Yield what is wrong with a schema of the structural spine and everything below it."""
    kind = schema.get("type") or ""
    yield from _form(schema, path)
    yield from _type_errors(schema, kind, path, level)
    if kind == "array" and not isinstance(schema.get("items"), dict):
        yield required(f"{path}.items", "must be specified")
    if isinstance(schema.get("items"), dict):
        yield from _level(schema["items"], f"{path}.items", "item")
    for key, value in _properties(schema).items():
        yield from _level(value, f"{path}.properties[{key}]", "field")
    yield from _additional(schema, path, level)
    yield from _metadata(schema, path, level)
    yield from _junctors(schema, path)
    yield from _default(schema, path)


def _form(schema: JSONObject, path: str) -> Iterator[FieldError]:
    kind = schema.get("type") or ""
    for key in _UNSUPPORTED:
        if schema.get(key):
            yield forbidden(f"{path}.{key}", f"{key} is not supported")
    if kind and kind not in _TYPES and kind != "null":
        yield unsupported(f"{path}.type", kind, _TYPES)
    if kind == "null":
        yield forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if isinstance(schema.get("items"), list):
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")
    if schema.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", why)
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    if schema.get("x-kubernetes-int-or-string"):
        for key in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            if schema.get(key):
                yield invalid(f"{path}.{key}", True, "must be false if x-kubernetes-int-or-string is true")
    yield from _lists(schema, kind, path)


def _lists(schema: JSONObject, kind: str, path: str) -> Iterator[FieldError]:
    list_type, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or []
    if list_type is not None:
        if list_type not in ("atomic", "set", "map"):
            yield unsupported(f"{path}.x-kubernetes-list-type", list_type, ("atomic", "set", "map"))
        if not kind:
            yield required(f"{path}.type", "must be array if x-kubernetes-list-type is specified")
        elif kind != "array":
            yield invalid(f"{path}.type", kind, "must be array if x-kubernetes-list-type is specified")
    if keys and list_type != "map":
        what = "must be map if x-kubernetes-list-map-keys is non-empty"
        place = f"{path}.x-kubernetes-list-type"
        yield invalid(place, list_type, what) if list_type else required(place, what)
    if list_type == "map":
        if not keys:
            what = "must not be empty if x-kubernetes-list-type is map"
            yield required(f"{path}.x-kubernetes-list-map-keys", what)
        items = schema.get("items")
        if not isinstance(items, dict):
            yield required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
        elif any(key not in _properties(items) for key in keys):
            what = "entries must all be names of item properties"
            yield invalid(f"{path}.x-kubernetes-list-map-keys", keys, what)
        else:
            yield from _map_keys(items, keys, path)
    map_type = schema.get("x-kubernetes-map-type")
    if map_type is not None and map_type not in ("atomic", "granular"):
        yield unsupported(f"{path}.x-kubernetes-map-type", map_type, ("atomic", "granular"))


def _map_keys(items: JSONObject, keys: list[str], path: str) -> Iterator[FieldError]:
    for key in keys:
        place = f"{path}.items.properties[{key}]"
        if key not in (items.get("required") or ()) and "default" not in _properties(items)[key]:
            what = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            yield required(f"{place}.default", what)
        if _properties(items)[key].get("nullable"):
            what = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            yield forbidden(f"{place}.nullable", what)


def _type_errors(schema: JSONObject, kind: str, path: str, level: str) -> Iterator[FieldError]:
    if schema.get("x-kubernetes-embedded-resource") and kind != "object":
        what = "must be object if x-kubernetes-embedded-resource is true"
        yield invalid(f"{path}.type", kind, what) if kind else required(f"{path}.type", what)
    elif (
        not kind
        and not schema.get("x-kubernetes-int-or-string")
        and not schema.get("x-kubernetes-preserve-unknown-fields")
    ):
        yield required(f"{path}.type", _EMPTY_TYPE[level])
    if (
        schema.get("x-kubernetes-embedded-resource")
        and not schema.get("x-kubernetes-preserve-unknown-fields")
        and not schema.get("properties")
    ):
        what = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        yield required(f"{path}.properties", what)
    if level == "root" and kind and kind != "object":
        yield invalid(f"{path}.type", kind, "must be object at the root")


def _additional(schema: JSONObject, path: str, level: str) -> Iterator[FieldError]:
    values = schema.get("additionalProperties")
    if values is None:
        return
    place = f"{path}.additionalProperties"
    if level == "root":
        yield forbidden(place, "must not be used at the root")
    if schema.get("properties") and values is not False:
        yield forbidden(place, "additionalProperties and properties are mutual exclusive")
    if schema.get("x-kubernetes-embedded-resource"):
        yield forbidden(place, "must not be used if x-kubernetes-embedded-resource is set")
    if values is False:
        yield forbidden(place, "additionalProperties cannot be set to false")
    if isinstance(values, dict):
        yield from _level(values, place, "field")


def _metadata(schema: JSONObject, path: str, level: str) -> Iterator[FieldError]:
    properties = _properties(schema)
    is_object = level == "root" or bool(schema.get("x-kubernetes-embedded-resource"))
    if is_object:
        for key in ("kind", "apiVersion"):
            if key in properties and properties[key].get("type") != "string":
                yield invalid(f"{path}.properties[{key}].type", properties[key].get("type") or "", "must be string")
    metadata = properties.get("metadata")
    if metadata is None or not is_object:
        return
    place = f"{path}.properties[metadata]"
    if metadata.get("type") != "object":
        yield invalid(f"{place}.type", metadata.get("type") or "", "must be object")
    extra = set(metadata) - {"type", "properties", "default", "description"}
    if level == "root" and (set(_properties(metadata)) - _METADATA or extra):
        what = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield forbidden(place, what)


def _junctors(schema: JSONObject, path: str) -> Iterator[FieldError]:
    """anyOf, allOf, oneOf and not may only restrict values of what the schema around them declares."""
    is_open = bool(schema.get("x-kubernetes-int-or-string"))
    for key in ("anyOf", "allOf", "oneOf"):
        parts = schema.get(key) or ()
        if is_open and (parts in _INT_OR_STRING or (key == "allOf" and parts)):
            continue
        for index, part in enumerate(parts):
            yield from _nested(part, f"{path}.{key}[{index}]")
    if isinstance(schema.get("not"), dict):
        yield from _nested(schema["not"], f"{path}.not")
    pattern = schema.get("pattern")
    if pattern:
        from pyverno.lang.cel.regex import check_pattern  # loads CEL

        try:
            check_pattern(pattern)
        except EvaluationError as error:
            yield invalid(f"{path}.pattern", pattern, f"must be a valid regular expression, but isn't: {error}")


def _nested(schema: JSONObject, path: str) -> Iterator[FieldError]:
    for key, what in _NOT_NESTED.items():
        if schema.get(key):
            yield forbidden(f"{path}.{key}", what)
    for key, value in _properties(schema).items():
        yield from _nested(value, f"{path}.properties[{key}]")
    if isinstance(schema.get("items"), dict):
        yield from _nested(schema["items"], f"{path}.items")
    for key in ("anyOf", "allOf", "oneOf"):
        for index, part in enumerate(schema.get(key) or ()):
            yield from _nested(part, f"{path}.{key}[{index}]")


def _completeness(part: JSONObject, spine: JSONObject, path: str) -> Iterator[FieldError]:
    """Yield fields and items that only value validation names: the spine must name them as well."""
    for key in ("anyOf", "allOf", "oneOf"):
        for index, inner in enumerate(part.get(key) or ()):
            yield from _missing(inner, spine, f"{path}.{key}[{index}]", path)
    if isinstance(part.get("not"), dict):
        yield from _missing(part["not"], spine, f"{path}.not", path)
    for key, value in _properties(part).items():
        if key in _properties(spine):
            yield from _completeness(value, _properties(spine)[key], f"{path}.properties[{key}]")
    if isinstance(part.get("items"), dict) and isinstance(spine.get("items"), dict):
        yield from _completeness(part["items"], spine["items"], f"{path}.items")


def _missing(part: JSONObject, spine: JSONObject, path: str, spine_path: str) -> Iterator[FieldError]:
    for key, value in _properties(part).items():
        if key in _properties(spine):
            yield from _missing(
                value, _properties(spine)[key], f"{path}.properties[{key}]", f"{spine_path}.properties[{key}]"
            )
        elif not isinstance(spine.get("additionalProperties"), dict):
            what = f"because it is defined in {path}.properties[{key}]"
            yield required(f"{spine_path}.properties[{key}]", what)
    if isinstance(part.get("items"), dict) and not isinstance(spine.get("items"), dict):
        yield required(f"{spine_path}.items", f"because it is defined in {path}.items")
    for key in ("anyOf", "allOf", "oneOf"):
        for index, inner in enumerate(part.get(key) or ()):
            yield from _missing(inner, spine, f"{path}.{key}[{index}]", spine_path)


def _default(schema: JSONObject, path: str) -> Iterator[FieldError]:
    if "default" not in schema:
        return
    found: list[FieldError] = []
    compile_check(schema)(schema["default"], UNRELATED, "", found)
    for error in found:
        place = f"{path}.default"
        yield replace(error, field=f"{place}.{error.field}" if error.field else place)


def _rules(schema: JSONObject, path: str, version: tuple[int, int], *, is_root: bool = False) -> Iterator[FieldError]:
    from kubesandbox.schema.rules import rule_problems  # loads CEL

    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        if not str(rule.get("rule", "")).strip():
            yield required(f"{path}.x-kubernetes-validations[{index}].rule", "rule is not specified")
    for index, problem in rule_problems(schema, version, is_root=is_root):
        rule = schema["x-kubernetes-validations"][index]
        if str(rule.get("rule", "")).strip():
            shown = go_struct({"message": "", "messageExpression": "", "fieldPath": "", **rule}, _RULE_FIELDS)
            yield FieldError(f"{path}.x-kubernetes-validations[{index}].rule", "Invalid value", problem, shown)
    for key, value in _properties(schema).items():
        yield from _rules(value, f"{path}.properties[{key}]", version)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from _rules(schema[key], f"{path}.{key}", version)


def _properties(schema: JSONObject) -> dict[str, JSONObject]:
    found = schema.get("properties")
    return {key: value for key, value in found.items() if isinstance(value, dict)} if isinstance(found, dict) else {}
