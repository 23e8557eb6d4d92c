"""Custom resources against their OpenAPI schema: types, limits, enums, required fields, in the API server's words.

`compile_check` makes one function per schema. What did not change since the stored object is not judged again
(ratcheting). Patterns run on RE2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import re2

from kubesandbox.objects.fielderrors import child, invalid, invalid_type, required, too_long, too_many, unsupported
from kubesandbox.schema.correlation import UNRELATED, related_field, related_items
from kubesandbox.schema.formats import format_test
from pyverno.kube.json import JSON, JSONObject, encode, equal
from pyverno.kube.status import FieldError

__all__ = ["Check", "compile_check", "json_type"]

Errors: TypeAlias = list[FieldError]
Check: TypeAlias = Callable[[JSON, JSON, str, Errors], None]
"""A check of a value, its older value (UNRELATED when there is none), its path, and where errors are added."""


def json_type(value: JSON) -> str:
    """Name the OpenAPI type of a JSON value.

    >>> json_type(1), json_type(True), json_type(None)
    ('integer', 'boolean', 'null')
    """
    if value is None:
        return "null"
    return _TYPES.get(type(value), "object")


_TYPES: Final = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


def compile_check(schema: JSONObject) -> Check:
    """Return the check of a schema.

    >>> errors = []
    >>> compile_check({"type": "object", "required": ["a"]})({}, UNRELATED, "spec", errors)
    >>> str(errors[0])
    'spec.a: Required value'
    """
    kind = _type_check(schema)
    enum = _enum_check(schema)
    parts = [part for part in (_combine(schema), *_by_type(schema), enum, _object_check(schema)) if part]

    def check(value: JSON, old: JSON, path: str, errors: Errors) -> None:
        if old is not UNRELATED and equal(value, old):
            return
        if value is None:
            if kind is not None:
                kind(value, old, path, errors)
            if enum is not None:
                enum(value, old, path, errors)
            return
        if kind is not None:
            kind(value, old, path, errors)
        for part in parts:
            part(value, old, path, errors)

    return check


def _type_check(schema: JSONObject) -> Check | None:
    names = ("integer", "string") if schema.get("x-kubernetes-int-or-string") else (schema.get("type", ""),)
    if not names[0]:
        return None
    nullable = bool(schema.get("nullable"))
    text = ",".join(names)

    def check(value: JSON, old: JSON, path: str, errors: Errors) -> None:
        found = json_type(value)
        if found in names or (found == "null" and nullable):
            return
        if (found == "integer" and "number" in names) or (
            found == "number" and "integer" in names and float(value).is_integer()
        ):
            return
        errors.append(invalid_type(path, found, f'{path} in body must be of type {text}: "{found}"'))

    return check


def _enum_check(schema: JSONObject) -> Check | None:
    allowed = schema.get("enum")
    if not isinstance(allowed, list):
        return None

    def check(value: JSON, old: JSON, path: str, errors: Errors) -> None:
        if not any(equal(value, item) for item in allowed):
            errors.append(unsupported(path, value, allowed))

    return check


def _by_type(schema: JSONObject) -> list[Check]:
    parts = (_string_check(schema), _format_check(schema), _number_check(schema), _array_check(schema))
    return [part for part in parts if part is not None]


def _string_check(schema: JSONObject) -> Check | None:
    longest, shortest, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    if longest is None and shortest is None and not pattern:
        return None
    compiled = _regex(pattern) if pattern else None

    def check(value: JSON, old: JSON, path: str, errors: Errors) -> None:
        if type(value) is not str:
            return
        if longest is not None and len(value) > longest:
            errors.append(too_long(path, int(longest)))
        elif shortest is not None and len(value) < shortest:
            errors.append(invalid(path, value, f"{path} in body should be at least {int(shortest)} chars long"))
        elif compiled is not None and not compiled(value):
            errors.append(invalid(path, value, f"{path} in body should match '{pattern}'"))

    return check


def _regex(pattern: str) -> Callable[[str], bool]:
    options = re2.Options()
    options.log_errors = False
    compiled = re2.compile(pattern, options)
    return lambda text: compiled.search(text) is not None


def _format_check(schema: JSONObject) -> Check | None:
    name = schema.get("format")
    test = format_test(name) if isinstance(name, str) and schema.get("type") == "string" else None
    if test is None:
        return None

    def check(value: JSON, old: JSON, path: str, errors: Errors) -> None:
        if type(value) is str and not test(value):
            detail = f"{path} in body must be of type {name}: {encode(value)}"
            errors.append(invalid_type(path, value, detail))

    return check


def _number_check(schema: JSONObject) -> Check | None:
    low, high, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    if low is None and high is None and step is None:
        return None
    above, below = bool(schema.get("exclusiveMinimum")), bool(schema.get("exclusiveMaximum"))

    def check(value: JSON, old: JSON, path: str, errors: Errors) -> None:
        if type(value) is not int and type(value) is not float:
            return
        if step is not None and (value / step) % 1:
            errors.append(invalid(path, value, f"{path} in body should be a multiple of {_number(step)}"))
        if high is not None and (value >= high if below else value > high):
            text = "less than" if below else "less than or equal to"
            errors.append(invalid(path, value, f"{path} in body should be {text} {_number(high)}"))
        if low is not None and (value <= low if above else value < low):
            text = "greater than" if above else "greater than or equal to"
            errors.append(invalid(path, value, f"{path} in body should be {text} {_number(low)}"))

    return check


def _number(value: float) -> str:
    return encode(int(value)) if float(value).is_integer() and abs(value) < 1e15 else encode(value)


def _array_check(schema: JSONObject) -> Check | None:
    most, least, unique = schema.get("maxItems"), schema.get("minItems"), schema.get("uniqueItems")
    items = compile_check(schema["items"]) if isinstance(schema.get("items"), dict) else None
    if items is None and most is None and least is None and not unique:
        return None

    def check(value: JSON, old: JSON, path: str, errors: Errors) -> None:
        if type(value) is not list:
            return
        if items is not None:
            pairs = zip(value, related_items(schema, value, old), strict=True)
            for index, (item, older) in enumerate(pairs):
                items(item, older, f"{path}[{index}]", errors)
        if least is not None and len(value) < least:
            errors.append(invalid(path, len(value), f"{path} in body should have at least {int(least)} items"))
        if most is not None and len(value) > most:
            errors.append(too_many(path, len(value), int(most)))
        if unique and _has_equal(value):
            errors.append(invalid(path, "", f"{path} in body shouldn't contain duplicates"))

    return check


def _has_equal(values: Sequence[JSON]) -> bool:
    return len({encode(value) for value in values}) < len(values)


def _object_check(schema: JSONObject) -> Check | None:
    properties = schema.get("properties")
    fields = [(key, compile_check(value)) for key, value in (properties or {}).items() if isinstance(value, dict)]
    values = schema.get("additionalProperties")
    every = compile_check(values) if isinstance(values, dict) else None
    needed: list[str] = schema.get("required") or []
    most, least = schema.get("maxProperties"), schema.get("minProperties")
    if not fields and every is None and not needed and most is None and least is None:
        return None
    known = frozenset(key for key, _ in fields)

    def check(value: JSON, old: JSON, path: str, errors: Errors) -> None:
        if type(value) is not dict:
            return
        if least is not None and len(value) < least:
            errors.append(invalid(path, len(value), f"{path} in body should have at least {int(least)} properties"))
        if most is not None and len(value) > most:
            errors.append(too_many(path, len(value), int(most)))
        if every is not None:
            for key, item in value.items():
                if key not in known:
                    every(item, related_field(old, key), child(path, key), errors)
        for key, field in fields:
            if key in value:
                field(value[key], related_field(old, key), child(path, key), errors)
        errors += [required(child(path, key)) for key in needed if key not in value]

    return check


def _combine(schema: JSONObject) -> Check | None:
    """anyOf, oneOf, allOf and not: their own verdict has no path, as in the API server."""
    any_of, one_of, all_of = (_checks(schema.get(key)) for key in ("anyOf", "oneOf", "allOf"))
    negated = compile_check(schema["not"]) if isinstance(schema.get("not"), dict) else None
    if not any_of and not one_of and not all_of and negated is None:
        return None

    def check(value: JSON, old: JSON, path: str, errors: Errors) -> None:
        if any_of:
            failures = [_failures(part, value, path) for part in any_of]
            if all(failures):
                errors.append(_composite(path, "must validate at least one schema (anyOf)"))
                errors.extend(failures[0])
        if one_of:
            failures = [_failures(part, value, path) for part in one_of]
            fits = sum(not found for found in failures)
            if fits != 1:
                what = f"Found {fits} valid alternatives" if fits else "Found none valid"
                errors.append(_composite(path, f"must validate one and only one schema (oneOf). {what}"))
                errors.extend(() if fits else failures[0])
        if all_of:
            failures = [_failures(part, value, path) for part in all_of]
            for found in failures:
                errors.extend(found)
            if any(failures):
                what = ". None validated" if all(failures) else ""
                errors.append(_composite(path, f"must validate all the schemas (allOf){what}"))
        if negated is not None and not _failures(negated, value, path):
            errors.append(_composite(path, "must not validate the schema (not)"))

    return check


def _checks(schemas: JSON) -> list[Check]:
    return [compile_check(item) for item in schemas if isinstance(item, dict)] if isinstance(schemas, list) else []


def _failures(check: Check, value: JSON, path: str) -> Errors:
    found: Errors = []
    check(value, UNRELATED, path, found)
    return found


def _composite(path: str, text: str) -> FieldError:
    return invalid("<nil>", "", f"{encode(path)} {text}")
