"""Field management: updates `managedFields` at every write.

The rules are those of `kube.apply.serverside`; this module chooses the schema and the version for them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from kubesandbox.objects.metadata import timestamp
from kubesandbox.types.resources import ResourceType
from pyverno.kube.apply.fieldset import FieldSet
from pyverno.kube.apply.serverside import SchemaTree, apply, reset_fields, schema_tree_for, schema_tree_of, track
from pyverno.kube.json import JSONObject, equal
from pyverno.kube.schemas import SchemaSet

__all__ = ["Managers"]

_FIELDS = ("metadata", "spec", "status")
_SERVER_SPECS = frozenset({"certificatesigningrequests.certificates.k8s.io"})
"""Resources whose spec is the server's as soon as it exists: it has no manager."""


class Managers:
    """Keeps the managed fields of objects; schema trees are made once per type and state of its definition."""

    def __init__(
        self,
        schemas: SchemaSet,
        *,
        clock: Callable[[], datetime],
        definition: Callable[[ResourceType], JSONObject | None],
    ) -> None:
        """Take the built-in schemas and the source of CustomResourceDefinitions."""
        self._schemas = schemas
        self._clock = clock
        self._definition = definition
        self._trees: dict[ResourceType, tuple[str, SchemaTree]] = {}

    def tracked(
        self,
        type: ResourceType,
        before: JSONObject | None,
        after: JSONObject,
        *,
        manager: str,
        subresource: str = "",
        empty: JSONObject | None = None,
    ) -> JSONObject:
        """Return the object after an ordinary write with its managed fields.

        `empty` is a new object of the type without content: a value as in there was not set.
        """
        found = track(
            before,
            after if before is not None or empty is None else _without(after, empty),
            manager=manager,
            schema=self._tree(type),
            version=type.api_version,
            time=timestamp(self._clock()),
            subresource=subresource,
            ignored=_ignored(type, subresource),
        )
        return {**after, "metadata": found["metadata"]} if "metadata" in found else found

    def applied(
        self,
        type: ResourceType,
        live: JSONObject | None,
        wanted: JSONObject,
        *,
        manager: str,
        force: bool,
        subresource: str = "",
    ) -> JSONObject:
        """Return the object after server-side apply; raises StatusError 409 with all conflicts."""
        return apply(
            live,
            wanted,
            manager=manager,
            schema=self._tree(type),
            version=type.api_version,
            time=timestamp(self._clock()),
            force=force,
            subresource=subresource,
            ignored=_ignored(type, subresource),
        )

    def _tree(self, type: ResourceType) -> SchemaTree:
        crd = self._definition(type)
        version = crd["metadata"]["resourceVersion"] if crd else ""
        known = self._trees.get(type)
        if known is None or known[0] != version:
            tree = schema_tree_for(self._schemas, type.gvk) if crd is None else _custom_tree(type, crd)
            known = self._trees[type] = (version, tree)
        return known[1]


def _without(value: JSONObject, empty: JSONObject) -> JSONObject:
    """Return an object without the fields that are equal in another one; metadata is kept."""
    kept: JSONObject = {}
    for key, item in value.items():
        other = empty.get(key)
        if key == "metadata" or key not in empty:
            kept[key] = item
        elif isinstance(item, dict) and isinstance(other, dict):
            inner = _without(item, other)
            if inner or (other and not item):
                kept[key] = inner
        elif not equal(item, other):
            kept[key] = item
    return kept


def _ignored(type: ResourceType, subresource: str) -> FieldSet:
    """Return what cannot be changed there: the status through the object, the spec through the status."""
    if type.key in _SERVER_SPECS and not subresource:
        return FieldSet.of((f"f:{name}",) for name in ("spec", "status"))
    return reset_fields(_FIELDS, subresource, has_status="status" in type.subresources)


def _custom_tree(type: ResourceType, crd: JSONObject) -> SchemaTree:
    versions: list[JSONObject] = crd["spec"]["versions"]
    version = next(item for item in versions if item["name"] == type.version)
    return schema_tree_of((version.get("schema") or {}).get("openAPIV3Schema") or {})
