"""Tables of kinds: the names of their resources, their scope and subresources.

A table is immutable: custom kinds give a new one. Discovery builds the table of a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial

from pyverno.kube.builtin_kinds import GROUPS, SUBRESOURCE_KINDS, Group
from pyverno.kube.gvk import GVK, GVR, KindSelector, join_api_version
from pyverno.kube.json import JSON, JSONObject
from pyverno.value import dataclass, replace

__all__ = ["BUILTIN_KINDS", "KindInfo", "KindTable", "ResourceNames", "read_groups"]


class ResourceNames:
    """The names of one resource in one version, as API paths and `apiVersion` spell them."""

    __slots__ = ()

    group: str
    version: str
    kind: str
    plural: str

    @property
    def gvk(self) -> GVK:
        """Group, version and kind."""
        return GVK(self.group, self.version, self.kind)

    @property
    def gvr(self) -> GVR:
        """Group, version and plural name."""
        return GVR(self.group, self.version, self.plural)

    @property
    def api_version(self) -> str:
        """The value of `apiVersion`."""
        return join_api_version(self.group, self.version)


@dataclass(frozen=True, slots=True)
class KindInfo(ResourceNames):
    """One kind in one version; `subresources` are names such as `status`, `verbs` those that its server offers.

    `verbs` is empty where the kind does not come from a server.

    >>> info = BUILTIN_KINDS.find(GVK("apps", "v1", "Deployment"))
    >>> info.plural, info.short_names, info.namespaced, info.subresources
    ('deployments', ('deploy',), True, ('scale', 'status'))
    """

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    short_names: tuple[str, ...] = ()
    namespaced: bool = True
    subresources: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()

    def subresource_gvk(self, name: str) -> GVK:
        """Return the kind of the objects that a subresource takes: mostly the kind itself.

        >>> BUILTIN_KINDS.find(GVK("apps", "v1", "Deployment")).subresource_gvk("scale").kind
        'Scale'
        """
        if self.group in ("", "apps"):
            found = SUBRESOURCE_KINDS.get(f"{self.plural}/{name}") or SUBRESOURCE_KINDS.get(name)
            if found is not None:
                return GVK(*found)
        elif name == "scale":
            return GVK(*SUBRESOURCE_KINDS[name])
        return self.gvk


class KindTable:
    """An immutable set of kinds with indexes; later entries replace earlier ones of the same group, version, kind."""

    def __init__(self, kinds: Iterable[KindInfo] | Callable[[], Iterable[KindInfo]] = ()) -> None:
        """Take the kinds, or a function that returns them at their first use."""
        self._source = kinds if callable(kinds) else tuple(kinds)

    def __iter__(self) -> Iterator[KindInfo]:
        return iter(self._by_gvk.values())

    def __len__(self) -> int:
        return len(self._by_gvk)

    @cached_property
    def _by_gvk(self) -> dict[GVK, KindInfo]:
        source = self._source() if callable(self._source) else self._source
        return {info.gvk: info for info in source}

    @cached_property
    def _by_gvr(self) -> dict[GVR, KindInfo]:
        return {info.gvr: info for info in self._by_gvk.values()}

    @cached_property
    def _by_kind(self) -> dict[str, tuple[KindInfo, ...]]:
        return _group((info.kind, info) for info in self._by_gvk.values())

    @cached_property
    def _by_name(self) -> dict[str, tuple[KindInfo, ...]]:
        return _group(
            (name, info)
            for info in self._by_gvk.values()
            for name in dict.fromkeys((info.plural, info.singular, *info.short_names, info.kind.lower()))
        )

    def find(self, gvk: GVK) -> KindInfo | None:
        """Return the kind, None when it is unknown in this version."""
        return self._by_gvk.get(gvk)

    def by_kind(self, kind: str) -> tuple[KindInfo, ...]:
        """Return all groups and versions of a kind, preferred versions first.

        >>> [info.api_version for info in BUILTIN_KINDS.by_kind("HorizontalPodAutoscaler")]
        ['autoscaling/v2', 'autoscaling/v1']
        """
        return self._by_kind.get(kind, ())

    def by_resource(self, gvr: GVR) -> KindInfo | None:
        """Return the kind behind a plural resource name.

        >>> BUILTIN_KINDS.by_resource(GVR("", "v1", "pods")).kind
        'Pod'
        """
        return self._by_gvr.get(gvr)

    def named(self, name: str) -> tuple[KindInfo, ...]:
        """Return the kinds with this plural, singular or short name, or this kind in any case.

        A group may follow (`deployments.apps`), as on kubectl's command line.

        >>> [info.kind for info in BUILTIN_KINDS.named("deploy.apps")]
        ['Deployment']
        """
        found = self._by_name.get(name.lower())
        if found is not None:
            return found
        short, _, group = name.lower().partition(".")
        infos = self._by_name.get(short, ())
        version, _, rest = group.partition(".")
        return tuple(info for info in infos if info.group == group or (info.version, info.group) == (version, rest))

    def select(self, selector: KindSelector) -> tuple[KindInfo, ...]:
        """Return the kinds whose main resource or subresource a selector matches.

        >>> from pyverno.kube.gvk import parse_kind_selector
        >>> [info.kind for info in BUILTIN_KINDS.select(parse_kind_selector("apps/v1/*Set"))]
        ['DaemonSet', 'ReplicaSet', 'StatefulSet']
        """
        return tuple(
            info
            for info in self._by_gvk.values()
            if any(selector.matches(info.gvk, name) for name in ("", *info.subresources))
        )

    def is_namespaced(self, gvk: GVK) -> bool | None:
        """Return whether objects of a kind live in namespaces; None when the kind is unknown in its group.

        >>> BUILTIN_KINDS.is_namespaced(GVK("", "v1", "Namespace")), BUILTIN_KINDS.is_namespaced(GVK("x", "v1", "Y"))
        (False, None)
        """
        info = self._by_gvk.get(gvk)
        if info is not None:
            return info.namespaced
        # Scope never differs between versions of one kind.
        return next((other.namespaced for other in self.by_kind(gvk.kind) if other.group == gvk.group), None)

    def with_kinds(self, kinds: Iterable[KindInfo]) -> KindTable:
        """Return a table that also knows these kinds."""
        return KindTable((*self._by_gvk.values(), *kinds))

    def with_crds(self, crds: Iterable[JSONObject]) -> KindTable:
        """Return a table that also knows the served versions of these CustomResourceDefinitions.

        Objects that are not complete definitions are left out.

        >>> crd = {"spec": {"group": "x.io", "names": {"kind": "Foo", "plural": "foos"}, "scope": "Cluster",
        ...                 "versions": [{"name": "v1", "served": True}]}}
        >>> BUILTIN_KINDS.with_crds([crd]).is_namespaced(GVK("x.io", "v1", "Foo"))
        False
        """
        added = [info for crd in crds for info in _crd_kinds(crd)]
        return self.with_kinds(added) if added else self


def _group(pairs: Iterable[tuple[str, KindInfo]]) -> dict[str, tuple[KindInfo, ...]]:
    grouped: dict[str, list[KindInfo]] = {}
    for name, info in pairs:
        grouped.setdefault(name, []).append(info)
    return {name: tuple(infos) for name, infos in grouped.items()}


def read_groups(groups: Iterable[Group]) -> Iterable[KindInfo]:
    """Yield the kinds described by rows of data, in every version."""
    for group, versions, rows in groups:
        for plural, kind, short, namespaced, subresources, categories in rows:
            info = KindInfo(
                group=group,
                version="",
                kind=kind,
                plural=plural,
                singular=kind.lower(),
                short_names=tuple(short.split()),
                namespaced=namespaced,
                subresources=tuple(subresources.split()),
                categories=tuple(categories.split()),
            )
            for version in versions.split():
                yield replace(info, version=version)


BUILTIN_KINDS = KindTable(partial(read_groups, GROUPS))
"""Kinds that a cluster of Kubernetes 1.32 to 1.37 may serve by itself; built on first use."""


def _crd_kinds(crd: JSONObject) -> Iterable[KindInfo]:
    spec = _map(crd, "spec")
    names = _map(spec, "names")
    group, kind, plural = _read_text(spec, "group"), _read_text(names, "kind"), _read_text(names, "plural")
    if not (group and kind and plural):
        return
    for version in _maps(spec, "versions"):
        if _read_text(version, "name") and version.get("served", True):
            yield KindInfo(
                group=group,
                version=_read_text(version, "name"),
                kind=kind,
                plural=plural,
                singular=_read_text(names, "singular") or kind.lower(),
                short_names=_names(names, "shortNames"),
                namespaced=_read_text(spec, "scope") != "Cluster",
                subresources=tuple(sorted(_map(version, "subresources"))),
                categories=_names(names, "categories"),
            )


def _map(parent: JSONObject, key: str) -> JSONObject:
    found: JSON = parent.get(key)
    return found if isinstance(found, dict) else {}


def _maps(parent: JSONObject, key: str) -> list[JSONObject]:
    found: JSON = parent.get(key)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _read_text(parent: JSONObject, key: str) -> str:
    found: JSON = parent.get(key)
    return found if isinstance(found, str) else ""


def _names(parent: JSONObject, key: str) -> tuple[str, ...]:
    found: JSON = parent.get(key)
    return tuple(item for item in found if isinstance(item, str)) if isinstance(found, list) else ()
