"""The names of the fields of objects: of Kubernetes' kinds in any version, and of custom kinds.

Types and formats of one version are in `kube.schemas`; this table is small, and a type is read when it is looked up.
`scripts/build_schemas.py` makes its file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

from pyverno import kube
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSON, JSONObject

__all__ = ["ANY", "SCALAR", "FieldTable", "FieldType", "builtin_fields"]

FieldType: TypeAlias = int | str
"""The number of a type with fields, `ANY`, `SCALAR`, or `[` before the type of a list's elements."""

ANY: Final = "*"
SCALAR: Final = ""

Fields = Mapping[str, FieldType]


class FieldTable:
    """An immutable table: the types of kinds, and the fields of types.

    >>> table = builtin_fields()
    >>> pod = table.type_of(GVK("", "v1", "Pod"))
    >>> table.child(pod, "spec") is None, table.child(pod, "sepc") is None
    (False, True)
    """

    __slots__ = ("_kinds", "_types")

    def __init__(self, kinds: Mapping[str, int], types: list[Fields | str]) -> None:
        """Take the types of kinds by `group/version/kind`, and the types, each as fields or as its line of the file."""
        self._kinds = kinds
        self._types = types

    def type_of(self, gvk: GVK) -> FieldType | None:
        """Return the type of a kind, None when its fields are unknown."""
        return self._kinds.get(f"{gvk.group}/{gvk.version}/{gvk.kind}")

    def _fields(self, number: int) -> Fields:
        found = self._types[number]
        if isinstance(found, str):
            found = self._types[number] = _read_fields(found)
        return found

    def child(self, parent: FieldType, name: str) -> FieldType | None:
        """Return the type of a field; None when the parent certainly has no such field."""
        return self._fields(parent).get(name) if isinstance(parent, int) else ANY

    def element(self, listed: FieldType) -> FieldType:
        """Return the type of the elements of a list.

        >>> table = builtin_fields()
        >>> spec = table.child(table.type_of(GVK("", "v1", "Pod")), "spec")
        >>> "image" in table.names(table.element(table.child(spec, "containers")))
        True
        """
        return _number(listed[1:]) if isinstance(listed, str) and listed.startswith("[") else ANY

    def names(self, parent: FieldType) -> tuple[str, ...]:
        """Return the names of the fields of a type."""
        return tuple(self._fields(parent)) if isinstance(parent, int) else ()

    def with_crds(self, crds: Iterable[JSONObject]) -> FieldTable:
        """Return a table that also knows the kinds of CustomResourceDefinitions.

        >>> schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {}}}}}
        >>> crd = {"spec": {"group": "x.io", "names": {"kind": "Foo"}, "versions": [
        ...     {"name": "v1", "schema": {"openAPIV3Schema": schema}}]}}
        >>> table = builtin_fields().with_crds([crd])
        >>> table.names(table.child(table.type_of(GVK("x.io", "v1", "Foo")), "spec"))
        ('size',)
        """
        kinds, types = dict(self._kinds), list(self._types)
        metadata = self._fields(self._kinds["/v1/ConfigMap"])["metadata"]
        for crd in crds:
            spec = _map(crd, "spec")
            versions = spec.get("versions")
            for version in versions if isinstance(versions, list) else ():
                schema = _map(_map(version, "schema"), "openAPIV3Schema") if isinstance(version, dict) else {}
                number = _add(schema, types)
                if isinstance(number, int):
                    own = types[number]
                    assert not isinstance(own, str)  # noqa: S101  # `_add` appends fields
                    types[number] = {"apiVersion": SCALAR, "kind": SCALAR, **own, "metadata": metadata}
                    kinds[f"{spec.get('group')}/{version.get('name')}/{_map(spec, 'names').get('kind')}"] = number
        return FieldTable(kinds, types)


def _read_fields(line: str) -> Fields:
    pairs = (word.partition("=") for word in line.split(" "))
    return {name: _number(written) for name, _, written in pairs}


def _number(written: str) -> FieldType:
    return int(written) if written.isdigit() else written


def _add(schema: JSONObject, types: list[Fields | str]) -> FieldType:
    """Return the type of a schema; the types of its fields are appended."""
    items, properties = schema.get("items"), schema.get("properties")
    if isinstance(items, dict):
        return f"[{_add(items, types)}"
    if schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-embedded-resource"):
        return ANY
    if not isinstance(properties, dict) or schema.get("additionalProperties"):
        return SCALAR if schema.get("type") in ("string", "integer", "number", "boolean") else ANY
    types.append({name: _add(inner, types) for name, inner in properties.items() if isinstance(inner, dict)})
    return len(types) - 1


def _map(parent: JSONObject, key: str) -> JSONObject:
    found: JSON = parent.get(key)
    return found if isinstance(found, dict) else {}


@cache
def builtin_fields() -> FieldTable:
    """Return the fields of all built-in kinds (the file is read once)."""
    # as `pkgutil.get_data` does, which costs a plain run two milliseconds more; works from archives as well
    loader: Any = kube.__loader__
    content: bytes = loader.get_data(str(Path(kube.__path__[0], "data", "fields.txt")))
    kinds, _, types = content.decode().partition("\n\n")
    pairs = (line.split(" ") for line in kinds.split("\n"))
    return FieldTable({kind: int(number) for kind, number in pairs}, [*types.split("\n")])
