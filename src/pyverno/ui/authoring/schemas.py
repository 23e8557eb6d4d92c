"""Schemas of documents as one tree of fields: policy kinds from their decoders, Kubernetes' kinds, and custom ones.

This module must never know where a cursor is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from pyverno.install.structural import structural_schema
from pyverno.kube.gvk import join_api_version, parse_api_version
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.schemas import descriptions, schema_set
from pyverno.policy.kinds import find_kind
from pyverno.value import dataclass

__all__ = ["Node", "Schemas"]

_METADATA: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_DEEPEST_REFERENCE: Final = 8


@dataclass(frozen=True, slots=True)
class Node:
    """One field: its schema, the Kubernetes version whose definitions it refers to, and its documentation."""

    schema: JSONObject
    version: str
    definition: str = ""
    text: str = ""
    required: bool = False

    @property
    def type(self) -> str:
        """The JSON type, the empty text where any is allowed."""
        found = self.schema.get("type", "")
        names = [each for each in found if each != "null"] if isinstance(found, list) else [found]
        if names and names[0]:
            return str(names[0])
        return "object" if "properties" in self.schema else ""

    @property
    def choices(self) -> tuple[str, ...]:
        """The values that are allowed, where they are listed."""
        found = self.schema.get("enum")
        return tuple(str(each) for each in found if each is not None) if isinstance(found, list) else ()

    def fields(self) -> Mapping[str, Node]:
        """Return the known fields of an object by name."""
        found = self.schema.get("properties")
        if not isinstance(found, dict):
            return {}
        texts = descriptions(self.version, self.definition) if self.definition else {}
        needed = self.schema.get("required")
        required = needed if isinstance(needed, list) else []
        return {
            name: self._follow(each, text=texts.get(name, ""), required=name in required)
            for name, each in found.items()
            if isinstance(each, dict)
        }

    def item(self) -> Node | None:
        """Return what a list holds."""
        found = self.schema.get("items")
        return self._follow(found) if isinstance(found, dict) else None

    def value(self) -> Node | None:
        """Return the schema of the values of a map with free keys."""
        found = self.schema.get("additionalProperties")
        return self._follow(found) if isinstance(found, dict) else None

    def step(self, step: str | int) -> Node | None:
        """Return the field, or with a number the item, below this one."""
        if isinstance(step, int):
            return self.item()
        return self.fields().get(step) or self.value()

    def _follow(self, schema: JSONObject, text: str = "", *, required: bool = False) -> Node:
        definition = ""
        known = schema_set(self.version).definitions
        for _ in range(_DEEPEST_REFERENCE):
            both = schema.get("allOf")
            inner = both[0] if isinstance(both, list) and len(both) == 1 else schema
            reference = inner.get("$ref")
            if not isinstance(reference, str):
                break
            definition = reference.rpartition("/")[2]
            schema = known.get(definition, {})
        own = schema.get("description")
        said = text or (own if isinstance(own, str) else "")
        if not said and definition:
            said = descriptions(self.version, definition).get("", "")
        return Node(schema, self.version, definition, said, required)


class Schemas:
    """The schemas for texts: the built-in ones, and those of a visitor's CustomResourceDefinitions."""

    def __init__(self, version: str, definitions: Iterable[JSON] = ()) -> None:
        """Take a Kubernetes version such as `1.37`."""
        self._set = schema_set(version)
        self.version = self._set.version
        self._custom = {key: schema for each in definitions for key, schema in _custom_schemas(each)}

    def find(self, api_version: str, kind: str) -> Node | None:
        """Return the schema of a kind; None where it is unknown."""
        group, version = parse_api_version(api_version)
        custom = self._custom.get((group, version, kind))
        if custom is not None:
            return self._with_metadata(custom)
        name = self._set.kinds.get((group, version, kind))
        if name is not None:
            return Node(self._set.definitions[name], self.version, name, descriptions(self.version, name).get("", ""))
        policy = _policy_schema(group, version, kind)
        return self._with_metadata(policy) if policy is not None else None

    def kinds(self) -> Sequence[tuple[str, str]]:
        """Return `apiVersion` and `kind` of every known kind."""
        known = (key for key in (*self._set.kinds, *self._custom) if not key[2].endswith("List"))
        return sorted({(join_api_version(group, version), kind) for group, version, kind in known})

    def kind_named(self, kind: str) -> Node | None:
        """Return the schema of a kind by its name alone; of several, that of the core group or the newest."""
        found = [key for key in (*self._custom, *self._set.kinds) if key[2] == kind]
        best = min(found, key=lambda key: (key[0] != "", "alpha" in key[1] or "beta" in key[1], key), default=None)
        return None if best is None else self.find(join_api_version(*best[:2]), kind)

    def _with_metadata(self, schema: JSONObject) -> Node:
        properties = schema.get("properties")
        whole = {**(properties if isinstance(properties, dict) else {}), "metadata": {"$ref": _METADATA}}
        text = schema.get("description")
        return Node({**schema, "properties": whole}, self.version, text=text if isinstance(text, str) else "")


def _custom_schemas(definition: JSON) -> Iterable[tuple[tuple[str, str, str], JSONObject]]:
    """Yield group, version and kind of a CustomResourceDefinition with the schema of each version."""
    spec = definition.get("spec") if isinstance(definition, dict) else None
    names = spec.get("names") if isinstance(spec, dict) else None
    versions = spec.get("versions") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(names, dict) or not isinstance(versions, list):
        return
    for each in versions:
        schema = each.get("schema") if isinstance(each, dict) else None
        found = schema.get("openAPIV3Schema") if isinstance(schema, dict) else None
        if isinstance(found, dict):
            yield (str(spec.get("group")), str(each.get("name")), str(names.get("kind"))), found


@lru_cache(maxsize=64)
def _policy_schema(group: str, version: str, kind: str) -> JSONObject | None:
    row = find_kind(group, kind)
    shape = row.decoder(version) if row is not None and version in row.versions else None
    return None if shape is None else structural_schema(shape)
