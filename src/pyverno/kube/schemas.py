"""Kubernetes' own schemas, read from the package's data files at their first use.

`merge_table` is small and quick: which lists merge, and by which keys. `schema_set` is everything else about one
Kubernetes version: types, formats, defaults, `x-kubernetes-*` marks. `go_fields` is what OpenAPI does not declare:
which fields are always written, and how Go names types. `descriptions` explains types and fields.
`scripts/build_schemas.py` and `scripts/build_go_types.py` make the files.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final

import orjson

from pyverno.kube.json import JSONObject
from pyverno.value import dataclass

__all__ = [
    "VERSIONS",
    "GoField",
    "MergeField",
    "MergeTable",
    "SchemaSet",
    "descriptions",
    "go_fields",
    "merge_table",
    "schema_set",
]

VERSIONS: Final = tuple(f"1.{minor}" for minor in range(25, 38))
"""Kubernetes versions whose schemas the package contains, oldest first."""


@dataclass(frozen=True, slots=True)
class MergeField:
    """The strategic merge of one field: its strategies, merge keys, and the type of its value or elements."""

    type: str | None = None
    strategies: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()

    @property
    def is_merged_list(self) -> bool:
        """Whether the field is a list whose elements merge (by `keys`, or by value when there are none)."""
        return "merge" in self.strategies


@dataclass(frozen=True, slots=True)
class MergeTable:
    """Merge behaviour of all built-in kinds, by the names of their schema definitions."""

    _kinds: Mapping[str, str]
    _types: Mapping[str, Mapping[str, JSONObject]]
    _newest: Mapping[tuple[str, str], str]

    def type_of(self, group: str, version: str, kind: str) -> str | None:
        """Definition name of a kind; a version that is not known counts as the newest one known.

        >>> merge_table().type_of("apps", "v1", "Deployment")
        'io.k8s.api.apps.v1.Deployment'
        """
        return self._kinds.get(f"{group}/{version}/{kind}") or self._newest.get((group, kind))

    def field(self, type_name: str, field: str) -> MergeField | None:
        """One field of a definition; None when nothing in or below it merges.

        >>> merge_table().field("io.k8s.api.core.v1.Container", "ports").keys
        ('containerPort', 'protocol')
        """
        entry = self._types.get(type_name, {}).get(field)
        if entry is None:
            return None
        strategies = tuple(entry["strategy"].split(",")) if "strategy" in entry else ()
        return MergeField(entry.get("type"), strategies, tuple(entry.get("keys", ())))


@dataclass(frozen=True, slots=True)
class GoField:
    """One field of a Go struct: when it is left out of JSON, and the name of its type in messages of the decoder.

    `mark` is `zero` (left out when zero), `nil` (a pointer, left out when unset), `null` (the same, but written as
    null), `never` (always written), `struct` (always written, as `{}` at least) or `other` (a value type that writes
    its own zero). `embedded` names the struct that the field comes from where one is inlined into another.
    """

    mark: str
    type: str
    embedded: str = ""


@dataclass(frozen=True, slots=True)
class SchemaSet:
    """The schemas of one Kubernetes version; `$ref` holds the bare name of another definition."""

    version: str
    definitions: Mapping[str, JSONObject]
    kinds: Mapping[tuple[str, str, str], str]

    def find(self, group: str, version: str, kind: str) -> JSONObject | None:
        """The schema of a kind, or None when this Kubernetes does not know it.

        >>> sorted(schema_set("1.30").find("", "v1", "ConfigMap")["properties"])
        ['apiVersion', 'binaryData', 'data', 'immutable', 'kind', 'metadata']
        """
        name = self.kinds.get((group, version, kind))
        return self.definitions[name] if name else None

    def with_kinds(self, schemas: Mapping[tuple[str, str, str], JSONObject]) -> SchemaSet:
        """Return a set that also has the schemas of these kinds, given by group, version and kind.

        >>> schema_set().with_kinds({("x.io", "v1", "Foo"): {"type": "object"}}).find("x.io", "v1", "Foo")
        {'type': 'object'}
        """
        names = {gvk: "/".join(("custom", *gvk)) for gvk in schemas}
        definitions = {names[gvk]: schema for gvk, schema in schemas.items()}
        return SchemaSet(self.version, {**self.definitions, **definitions}, {**self.kinds, **names})

    def followed(self, schema: JSONObject | None) -> JSONObject | None:
        """The schema that a `$ref`, or the only entry of `allOf`, leads to, with what the place of use adds to it."""
        for _ in range(8):
            if schema is None:
                return None
            reference = schema.get("$ref")
            if reference is None and len(schema.get("allOf") or ()) == 1:
                # the reference may define how a list is merged, the referred type its content
                inner = self.followed(schema["allOf"][0]) or {}
                return {**inner, **{key: value for key, value in schema.items() if key != "allOf"}}
            if not isinstance(reference, str):
                return schema
            schema = self.definitions.get(reference.rpartition("/")[2])
        return None


def _read(name: str) -> bytes:
    import pkgutil  # a tenth of the start-up cost of importlib.resources, and works from archives as well

    content = pkgutil.get_data("pyverno.kube", f"data/{name}")
    if content is None:
        raise FileNotFoundError(name)
    return content


@cache
def merge_table() -> MergeTable:
    """The merge keys of all built-in kinds (read once, about a millisecond)."""
    raw = orjson.loads(_read("merge_keys.json"))
    kinds: dict[str, str] = raw["kinds"]
    newest: dict[tuple[str, str], str] = {}
    for text in sorted(kinds, key=_rank):
        group, _, kind = text.split("/")
        newest[group, kind] = kinds[text]
    return MergeTable(kinds, raw["types"], newest)


def _rank(text: str) -> tuple[int, str]:
    """Order of `group/version/kind` texts: stable versions after beta after alpha."""
    version = text.split("/")[1]
    return (0 if "alpha" in version else 1 if "beta" in version else 2, version)


@cache
def _archive() -> Any:
    import lzma

    return orjson.loads(lzma.decompress(_read("schemas.json.xz")))


@cache
def schema_set(version: str = VERSIONS[-1]) -> SchemaSet:
    """The schemas of a Kubernetes version (`1.25` ...); the nearest one on board when it is older or newer.

    The first call unpacks all versions (about 20 milliseconds).
    """
    archive = _archive()
    chosen = version if version in VERSIONS else _nearest(version)
    bodies = archive["definitions"]
    definitions = {name: bodies[index] for name, index in archive["versions"][chosen].items()}
    kinds = {
        (kind["group"], kind["version"], kind["kind"]): name
        for name, body in definitions.items()
        for kind in body.get("x-kubernetes-group-version-kind", ())
        if len(body["x-kubernetes-group-version-kind"]) == 1
    }
    return SchemaSet(chosen, MappingProxyType(definitions), MappingProxyType(kinds))


@cache
def _go_types() -> dict[str, dict[str, list[str]]]:
    import lzma

    table: dict[str, dict[str, list[str]]] = orjson.loads(lzma.decompress(_read("go_types.json.xz")))
    return table


_NO_TEXTS: Final[Mapping[str, str]] = MappingProxyType({})
_NO_FIELDS: Final[Mapping[str, GoField]] = MappingProxyType({})


def go_fields(definition: str) -> Mapping[str, GoField]:
    """Return the fields of a type by their JSON names; empty for types that are not known.

    >>> go_fields("io.k8s.api.apps.v1.DeploymentSpec")["replicas"]
    GoField(mark='nil', type='int32', embedded='')
    """
    found = _go_types().get(definition)
    return {name: GoField(*entry) for name, entry in found.items()} if found else _NO_FIELDS


@cache
def _texts() -> Any:
    import lzma

    return orjson.loads(lzma.decompress(_read("descriptions.json.xz")))


def descriptions(version: str, definition: str) -> Mapping[str, str]:
    """Return the texts that explain a definition: its own under the empty name, and those of its fields.

    >>> descriptions("1.35", "io.k8s.api.apps.v1.Deployment")[""]
    'Deployment enables declarative updates for Pods and ReplicaSets.'
    """
    archive = _texts()
    index = archive["versions"].get(version, {}).get(definition)
    return _NO_TEXTS if index is None else archive["texts"][index]


def _nearest(version: str) -> str:
    minor = version.removeprefix("v").split(".")[1:2]
    number = int(minor[0]) if minor and minor[0].isdecimal() else 37
    return f"1.{min(max(number, 25), 37)}"
