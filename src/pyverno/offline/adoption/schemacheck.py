"""Manifests against the schemas of Kubernetes and of given CustomResourceDefinitions: fields, types, required fields.

Kinds without a schema are not judged. Formats, patterns and CEL rules are left to the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.quantity import try_quantity
from pyverno.kube.schemas import SchemaSet, schema_set
from pyverno.kube.yaml.fieldpath import Path
from pyverno.spelling import did_you_mean
from pyverno.value import dataclass

__all__ = ["Mismatch", "SchemaCheck"]


_TYPES: Final = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
_QUANTITY: Final = "Quantity"
_DEEPEST: Final = 200


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A field that does not fit its schema; `rule` is `unknown-field`, `wrong-type`, `missing-field` or `wrong-value`.

    `path` is that of the field, or of the object that lacks it.
    """

    rule: str
    message: str
    path: Path


class SchemaCheck:
    """Checks objects of one version of Kubernetes.

    >>> check = SchemaCheck()
    >>> pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {"containers": [{"name": 1, "img": "a"}]}}
    >>> [each.message for each in check.mismatches(pod)]
    ['`name` must be a string, is an integer', 'unknown field `img`: did you mean `image`?']
    """

    def __init__(self, crds: Iterable[JSONObject] = (), version: str = "") -> None:
        self._schemas: SchemaSet = schema_set(version) if version else schema_set()
        self._custom = dict(_custom_schemas(crds))

    def mismatches(self, value: JSON) -> Iterator[Mismatch]:
        """Yield the errors of an object; none for a kind without a schema."""
        if not isinstance(value, dict):
            return
        api_version, kind = value.get("apiVersion"), value.get("kind")
        if not isinstance(api_version, str) or not isinstance(kind, str):
            return
        group, _, version = api_version.rpartition("/")
        schema = self._custom.get((group, version, kind)) or self._schemas.find(group, version, kind)
        if schema is not None:
            yield from self._object(value, schema, (), is_root=True)

    def _value(self, value: JSON, schema: JSONObject | None, path: Path) -> Iterator[Mismatch]:
        if value is None or schema is None or len(path) > _DEEPEST:
            return  # null is as good as nothing: the API server drops it
        name = str(schema.get("$ref", "")).rpartition(".")[2]
        found = self._schemas.followed(schema)
        if found is None:
            return
        if name == _QUANTITY or _only_reference(schema) == _QUANTITY:
            yield from _quantity(value, path)
            return
        wanted = _types_of(found)
        own = _TYPES.get(type(value), "object")
        if wanted and own not in wanted and not (own == "integer" and "number" in wanted):
            yield Mismatch(
                "wrong-type", f"`{_last(path)}` must be {_format_list(wanted)}, is {_with_article(own)}", path
            )
            return
        allowed = found.get("enum")
        if isinstance(allowed, list) and value not in allowed and isinstance(value, str):
            hint = did_you_mean(value, tuple(each for each in allowed if isinstance(each, str)))
            yield Mismatch("wrong-value", f"`{_last(path)}` cannot be `{value}`{hint}", path)
        if isinstance(value, dict):
            yield from self._object(value, found, path)
        elif isinstance(value, list) and isinstance(found.get("items"), dict):
            for index, item in enumerate(value):
                yield from self._value(item, found["items"], (*path, index))

    def _object(
        self, value: JSONObject, schema: JSONObject, path: Path, *, is_root: bool = False
    ) -> Iterator[Mismatch]:
        properties = schema.get("properties")
        extra = schema.get("additionalProperties")
        if not isinstance(properties, dict):
            if isinstance(extra, dict):
                for key, item in value.items():
                    yield from self._value(item, extra, (*path, key))
            return
        is_open = bool(schema.get("x-kubernetes-preserve-unknown-fields")) or extra not in (None, False)
        embedded = is_root or bool(schema.get("x-kubernetes-embedded-resource"))
        for key, item in value.items():
            inner = properties.get(key)
            if isinstance(inner, dict):
                yield from self._value(item, inner, (*path, key))
            elif not is_open and not (embedded and key in ("apiVersion", "kind", "metadata")):
                yield Mismatch("unknown-field", f"unknown field `{key}`{did_you_mean(key, properties)}", (*path, key))
        for key in schema.get("required") or ():
            if value.get(key) is None and not (is_root and key in ("metadata", "status")):
                where = f" in `{_last(path)}`" if path else ""
                yield Mismatch("missing-field", f"the field `{key}` is missing{where}", path)


def _custom_schemas(crds: Iterable[JSONObject]) -> Iterator[tuple[tuple[str, str, str], JSONObject]]:
    for crd in crds:
        spec = crd.get("spec")
        if not isinstance(spec, dict):
            continue
        names = spec.get("names")
        kind = names.get("kind") if isinstance(names, dict) else None
        versions = spec.get("versions")
        for version in versions if isinstance(versions, list) else ():
            holder = version.get("schema") if isinstance(version, dict) else None
            schema = holder.get("openAPIV3Schema") if isinstance(holder, dict) else None
            if isinstance(schema, dict):
                yield (str(spec.get("group")), str(version.get("name")), str(kind)), schema


def _only_reference(schema: JSONObject) -> str:
    """Return the last word of the only entry of `allOf`."""
    entries = schema.get("allOf")
    first = entries[0] if isinstance(entries, list) and len(entries) == 1 else None
    return str(first.get("$ref", "")).rpartition(".")[2] if isinstance(first, dict) else ""


def _types_of(schema: Mapping[str, JSON]) -> tuple[str, ...]:
    """Return the types that a schema allows, () for any."""
    if schema.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    choices = schema.get("oneOf")
    if isinstance(choices, list):
        return tuple(dict.fromkeys(each for choice in choices for each in _types_of(choice)))
    written = schema.get("type")
    if isinstance(written, str):
        return (written,)
    return tuple(each for each in written if each != "null") if isinstance(written, list) else ()


def _quantity(value: JSON, path: Path) -> Iterator[Mismatch]:
    if isinstance(value, str):
        if try_quantity(value) is None:
            yield Mismatch("wrong-value", f"`{_last(path)}` is no quantity: `{value}`", path)
    elif isinstance(value, bool) or not isinstance(value, int | float):
        yield Mismatch(
            "wrong-type",
            f"`{_last(path)}` must be a quantity, is {_with_article(_TYPES.get(type(value), 'object'))}",
            path,
        )


def _last(path: Path) -> str:
    """Return a field's name, with its position in a list."""
    at = len(path) - 1
    while at > 0 and isinstance(path[at], int):
        at -= 1
    return "".join(f"[{step}]" if isinstance(step, int) else str(step) for step in path[at:])


def _format_list(types: Sequence[str]) -> str:
    return " or ".join(_with_article(each) for each in types)


def _with_article(name: str) -> str:
    written = {"array": "list", "object": "map"}.get(name, name)
    return f"an {written}" if written[0] in "aeiou" else f"a {written}"
