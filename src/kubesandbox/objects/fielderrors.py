"""Field errors in Kubernetes' words: one function per kind of error."""

from __future__ import annotations

import json
from collections.abc import Iterable

from pyverno.kube.json import JSON, JSONObject, encode
from pyverno.kube.status import FieldError

__all__ = [
    "BLOCKING",
    "child",
    "duplicate",
    "forbidden",
    "go_struct",
    "go_value",
    "invalid",
    "invalid_type",
    "is_blocking",
    "not_found",
    "required",
    "too_long",
    "too_many",
    "unsupported",
]

BLOCKING = frozenset({"Unsupported value", "Required value", "Too long", "Too many"})


def go_value(value: JSON) -> str:
    """Write a bad value as messages show it.

    >>> go_value('a"b'), go_value({"a": True}), go_value(1.5)
    ('"a\\\\"b"', '{"a":true}', '1.5')
    """
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return encode(value)


def go_struct(value: JSONObject, fields: Iterable[str]) -> str:
    """Write a struct of Go as messages show it that print one whole: all its fields under their Go names, in order.

    >>> go_struct({"type": "Foo"}, ("Type", "RollingUpdate"))
    '{"Type":"Foo","RollingUpdate":null}'
    """
    by_name = {key.lower(): item for key, item in value.items()}
    return "{" + ",".join(f'"{name}":{encode(by_name.get(name.lower()))}' for name in fields) + "}"


def child(path: str, name: str) -> str:
    """Return the path of a field below a path.

    >>> child("", "spec"), child("spec", "replicas")
    ('spec', 'spec.replicas')
    """
    return f"{path}.{name}" if path else name


def invalid(path: str, value: JSON, detail: str) -> FieldError:
    """A value that is not allowed.

    >>> str(invalid("spec.replicas", -1, "must be greater than or equal to 0"))
    'spec.replicas: Invalid value: -1: must be greater than or equal to 0'
    """
    return FieldError(path, "Invalid value", detail, go_value(value))


def invalid_type(path: str, value: JSON, detail: str) -> FieldError:
    """A value of a wrong JSON type."""
    return FieldError(path, "Invalid value", detail, go_value(value), reason="FieldValueTypeInvalid")


def required(path: str, detail: str = "") -> FieldError:
    """A field that must be there.

    >>> str(required("spec.selector"))
    'spec.selector: Required value'
    """
    return FieldError(path, "Required value", detail)


def forbidden(path: str, detail: str) -> FieldError:
    """A field that must not be there, or must not change."""
    return FieldError(path, "Forbidden", detail)


def duplicate(path: str, value: JSON) -> FieldError:
    """The error for a duplicate value."""
    return FieldError(path, "Duplicate value", "", go_value(value))


def unsupported(path: str, value: JSON, supported: Iterable[JSON]) -> FieldError:
    """A value out of a fixed set.

    >>> str(unsupported("spec.type", "x", ["A", "B"]))
    'spec.type: Unsupported value: "x": supported values: "A", "B"'
    """
    texts = [item if isinstance(item, str) else encode(item) for item in supported]
    listed = ", ".join(go_value(text) for text in texts)
    return FieldError(path, "Unsupported value", f"supported values: {listed}" if texts else "", go_value(value))


def too_long(path: str, limit: int) -> FieldError:
    """A text with too many bytes."""
    return FieldError(path, "Too long", f"may not be more than {limit} {'byte' if limit == 1 else 'bytes'}")


def too_many(path: str, count: int, limit: int) -> FieldError:
    """A list or map with too many entries."""
    return FieldError(path, "Too many", f"must have at most {limit} {'item' if limit == 1 else 'items'}", str(count))


def not_found(path: str, value: JSON) -> FieldError:
    """A name of something that does not exist."""
    return FieldError(path, "Not found", "", go_value(value))


def is_blocking(error: FieldError) -> bool:
    """Return whether rules in CEL are not evaluated after such an error."""
    return error.kind in BLOCKING or error.reason == "FieldValueTypeInvalid"
