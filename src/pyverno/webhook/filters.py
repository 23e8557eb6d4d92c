"""Requests that bypass all policies: resource filters and excluded users of the ConfigMap `kyverno`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyverno.engine.request import User
from pyverno.kube.gvk import GVK, KindSelector, parse_kind_selector
from pyverno.kube.wildcard import match as fits

__all__ = ["ResourceFilter", "UserList", "read_resource_filters", "read_user_list"]

_GROUP = re.compile(r"\[([^\[\]]*)\]")


@dataclass(frozen=True, slots=True)
class ResourceFilter:
    """`[Kind,Namespace,Name]`: requests for these objects bypass all policies.

    >>> [node] = read_resource_filters("[Node,*,*]")
    >>> node.matches(GVK("", "v1", "Node"), "", "", "worker-1"), node.matches(GVK("", "v1", "Node"), "status", "", "w")
    (True, False)
    """

    kind: KindSelector
    namespace: str = ""
    name: str = ""

    def matches(self, kind: GVK, subresource: str, namespace: str, name: str) -> bool:
        """Return whether a request for this object is filtered; a Namespace also by its own name as namespace."""
        return self.kind.matches(kind, subresource) and self.takes(kind, namespace, name)

    def takes(self, kind: GVK, namespace: str, name: str) -> bool:
        """Return the same for an object whose kind and subresource are known to match."""
        if not fits(self.name, name):
            return False
        if fits(self.namespace, namespace):
            return True
        return (kind.group, kind.version, kind.kind) == ("", "v1", "Namespace") and fits(self.namespace, name)


def read_resource_filters(text: str) -> tuple[ResourceFilter, ...]:
    """Read every `[Kind,Namespace,Name]` of a text; text between them is ignored.

    Blanks belong to their component. A missing component matches empty texts only; groups of more than three
    components are ignored.

    >>> [filter.namespace for filter in read_resource_filters("[*/*,kube-system,*] [Event,*,*]")]
    ['kube-system', '*']
    """
    filters: list[ResourceFilter] = []
    for found in _GROUP.finditer(text):
        kind, *rest = found[1].split(",")
        if len(rest) <= 2:
            namespace, name = (*rest, "", "")[:2]
            filters.append(ResourceFilter(parse_kind_selector(kind), namespace, name))
    return tuple(filters)


@dataclass(frozen=True, slots=True)
class UserList:
    """Users whose requests bypass policies (`excludes`), and exceptions from that (`includes`, written `!text`)."""

    excludes: tuple[str, ...] = ()
    includes: tuple[str, ...] = ()

    def excluded(self, names: Iterable[str]) -> bool:
        """Return whether one of these names is excluded."""
        return _any_fits(self.excludes, names)

    def included(self, names: Iterable[str]) -> bool:
        """Return whether one of these names is explicitly included."""
        return _any_fits(self.includes, names)


def read_user_list(text: str) -> UserList:
    """Read a comma-separated list of names with wildcards; a leading `!` includes the name explicitly.

    >>> read_user_list("system:nodes, !system:nodes:special")
    UserList(excludes=('system:nodes',), includes=('system:nodes:special',))
    """
    names = [item.strip() for item in text.split(",")]
    return UserList(
        tuple(name for name in names if name and not name.startswith("!")),
        tuple(name[1:].strip() for name in names if name.startswith("!") and len(name) > 1),
    )


@dataclass(frozen=True, slots=True)
class ExcludedUsers:
    """The four user lists of the ConfigMap together: any inclusion wins over every exclusion."""

    groups: UserList = UserList()
    usernames: UserList = UserList()
    roles: UserList = UserList()
    cluster_roles: UserList = UserList()

    def excludes(self, user: User) -> bool:
        """Return whether requests of a user bypass all policies."""
        is_excluded = False
        for users, names in (
            (self.groups, user.groups),
            (self.usernames, (user.username,)),
            (self.roles, user.roles),
            (self.cluster_roles, user.cluster_roles),
        ):
            if users.includes and users.included(names):
                return False
            is_excluded = is_excluded or (bool(users.excludes) and users.excluded(names))
        return is_excluded


def _any_fits(patterns: Sequence[str], names: Iterable[str]) -> bool:
    return any(fits(pattern, name) for name in names for pattern in patterns)
