"""Served resources: one `ResourceType` per group, version and plural name, in an immutable `ResourceTable`.

Built-in types are those of one Kubernetes version; custom ones come from CustomResourceDefinitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from pyverno.kube.gvk import GVK
from pyverno.kube.kinds import BUILTIN_KINDS, KindInfo, ResourceNames
from pyverno.kube.schemas import schema_set
from pyverno.kube.status import resource_name

__all__ = ["ALL_VERBS", "ResourceTable", "ResourceType", "builtin_table"]

ALL_VERBS: tuple[str, ...] = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
"""Verbs of an ordinary resource, in the order of discovery."""

_FOREIGN_SUFFIXES = ("kyverno.io", "openreports.io", "wgpolicyk8s.io")
_CREATE_ONLY = ("authentication.k8s.io", "authorization.k8s.io")
_READ_ONLY = frozenset({"componentstatuses"})
_NOT_SERVED = frozenset({"storageversions.internal.apiserver.k8s.io"})
_SHARED_STORAGE = {"events.events.k8s.io": "events"}
"""Resources of two groups that are one and the same objects."""


@dataclass(frozen=True, slots=True)
class ResourceType(ResourceNames):
    """One resource in one version; `crd` is the name of the definition that it comes from, empty for built-in ones.

    `converts_by_webhook`: only the definition's webhook knows how versions differ. `storage` is the version in which
    custom objects are kept.

    >>> deployments = builtin_table("1.35").find("apps", "v1", "deployments")
    >>> deployments.kind, deployments.key, deployments.namespaced, deployments.subresources
    ('Deployment', 'deployments.apps', True, ('scale', 'status'))
    """

    group: str
    version: str
    plural: str
    kind: str
    singular: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    crd: str = ""
    list_kind: str = ""
    converts_by_webhook: bool = False
    storage: str = ""

    @property
    def key(self) -> str:
        """Under which name the objects of all versions of this resource are stored: `deployments.apps`, `pods`."""
        name = resource_name(self.group, self.plural)
        return _SHARED_STORAGE.get(name, name)

    @property
    def is_custom(self) -> bool:
        """Return whether the type comes from a CustomResourceDefinition."""
        return bool(self.crd)

    def subresource_gvk(self, name: str) -> GVK:
        """Return the kind of the objects that a subresource takes and gives."""
        info = KindInfo(self.group, self.version, self.kind, self.plural, self.singular)
        if self.is_custom and name == "scale":
            return GVK("autoscaling", "v1", "Scale")
        return info.subresource_gvk(name)


class ResourceTable:
    """The types that are served, by path, by kind and by storage key; a change gives a new table.

    Groups and versions are in the order of preference that discovery shows.
    """

    def __init__(self, types: Iterable[ResourceType]) -> None:
        """Take the types; later ones replace earlier ones of the same group, version and plural name."""
        self._types = {(item.group, item.version, item.plural): item for item in types}

    def __iter__(self) -> Iterator[ResourceType]:
        return iter(self._types.values())

    def find(self, group: str, version: str, plural: str) -> ResourceType | None:
        """Return the type behind a path."""
        return self._types.get((group, version, plural))

    def by_kind(self, gvk: GVK) -> ResourceType | None:
        """Return the type whose objects are of this kind."""
        return self._by_kind.get(gvk)

    def versions_of(self, key: str) -> tuple[ResourceType, ...]:
        """Return all served versions of what is stored under a key, the preferred one first."""
        return self._by_key.get(key, ())

    def group_versions(self) -> dict[str, tuple[str, ...]]:
        """Return the served versions of every group, preferred ones first, the core group under the empty name.

        >>> builtin_table("1.35").group_versions()["autoscaling"]
        ('v2', 'v1')
        """
        return {group: tuple(versions) for group, versions in self._groups.items()}

    def in_version(self, group: str, version: str) -> tuple[ResourceType, ...]:
        """Return the types of one group and version in order of their names."""
        found = [item for item in self if (item.group, item.version) == (group, version)]
        return tuple(sorted(found, key=lambda item: item.plural))

    def with_types(self, types: Iterable[ResourceType]) -> ResourceTable:
        """Return a table that serves these types as well."""
        return ResourceTable((*self, *types))

    def without_crd(self, name: str) -> ResourceTable:
        """Return a table without the types of a CustomResourceDefinition."""
        return ResourceTable(item for item in self if item.crd != name)

    @cached_property
    def _by_kind(self) -> dict[GVK, ResourceType]:
        found: dict[GVK, ResourceType] = {}
        for item in self:
            found.setdefault(item.gvk, item)
        return found

    @cached_property
    def _by_key(self) -> dict[str, tuple[ResourceType, ...]]:
        grouped: dict[str, list[ResourceType]] = {}
        for item in self:
            grouped.setdefault(item.key, []).append(item)
        return {key: tuple(items) for key, items in grouped.items()}

    @cached_property
    def _groups(self) -> dict[str, list[str]]:
        groups: dict[str, list[str]] = {}
        for item in self:
            versions = groups.setdefault(item.group, [])
            if item.version not in versions:
                versions.append(item.version)
        return groups


def builtin_table(kube_version: str) -> ResourceTable:
    """Return what an API server of a Kubernetes version (`1.32` to `1.37`) serves by itself.

    Versions that a cluster has switched off by default (alpha, and beta since 1.24) are left out, except those of
    MutatingAdmissionPolicy, which people try out here.
    """
    kinds = schema_set(kube_version).kinds
    return ResourceTable(
        _type(info)
        for info in BUILTIN_KINDS
        if not info.group.endswith(_FOREIGN_SUFFIXES)
        and (info.group, info.version, info.kind) in kinds
        and resource_name(info.group, info.plural) not in _NOT_SERVED
        and (("beta" not in info.version and "alpha" not in info.version) or info.kind.startswith("MutatingAdmission"))
    )


def _type(info: KindInfo) -> ResourceType:
    verbs = ALL_VERBS
    if info.group in _CREATE_ONLY or info.plural == "bindings":
        verbs = ("create",)
    elif info.plural == "namespaces":
        verbs = tuple(verb for verb in ALL_VERBS if verb != "deletecollection")
    elif info.plural in _READ_ONLY:
        verbs = ("get", "list")
    return ResourceType(
        group=info.group,
        version=info.version,
        plural=info.plural,
        kind=info.kind,
        singular=info.singular,
        namespaced=info.namespaced,
        short_names=info.short_names,
        categories=info.categories,
        subresources=info.subresources,
        verbs=verbs,
        list_kind=f"{info.kind}List",
    )
