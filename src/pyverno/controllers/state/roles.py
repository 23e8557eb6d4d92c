"""The roles of a user: an index from subjects to the roles that RoleBindings and ClusterRoleBindings grant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from pyverno.engine.request import User
from pyverno.kube.json import JSONObject

__all__ = ["RoleIndex"]

_SERVICE_ACCOUNT: Final = "ServiceAccount"
Subject = tuple[str, str]
Grant = tuple[str, str, str]
"""Namespace of the binding ("" = cluster-wide), kind of the role, name of the role."""


class RoleIndex:
    """Subjects and their grants; bindings are added and removed one by one."""

    def __init__(self) -> None:
        """Start with no binding."""
        self._grants: dict[Subject, Counter[Grant]] = {}
        self._bindings: dict[tuple[str, str], tuple[Grant, tuple[Subject, ...]]] = {}

    def put(self, binding: JSONObject) -> None:
        """Add or replace a RoleBinding or ClusterRoleBinding."""
        self.remove(binding)
        place = _place(binding)
        reference = binding.get("roleRef") or {}
        grant = (place[0], str(reference.get("kind", "")), str(reference.get("name", "")))
        subjects = tuple(_subjects(binding.get("subjects") or (), place[0]))
        self._bindings[place] = grant, subjects
        for subject in subjects:
            self._grants.setdefault(subject, Counter())[grant] += 1

    def remove(self, binding: JSONObject) -> None:
        """Remove a binding; a grant stays while another binding gives it."""
        known = self._bindings.pop(_place(binding), None)
        if known is None:
            return
        grant, subjects = known
        for subject in subjects:
            held = self._grants[subject]
            held[grant] -= 1
            if not held[grant]:
                del held[grant]
            if not held:
                del self._grants[subject]

    def roles_of(self, user: User, namespace: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the roles (`ns:name`, of all namespaces) and the cluster roles that hold in a namespace, in order.

        >>> index = RoleIndex()
        >>> index.put({"metadata": {"name": "b", "namespace": "team"}, "roleRef": {"kind": "Role", "name": "edit"},
        ...            "subjects": [{"kind": "User", "name": "alice"}]})
        >>> index.roles_of(User("alice"), "default")
        (('team:edit',), ())
        """
        roles: set[str] = set()
        cluster_roles: set[str] = set()
        for subject in _names_of(user):
            for where, kind, name in self._grants.get(subject, ()):
                if kind == "Role":
                    roles.add(f"{where}:{name}")
                elif where in ("", namespace):
                    cluster_roles.add(name)
        return tuple(sorted(roles)), tuple(sorted(cluster_roles))


def _subjects(subjects: Iterable[JSONObject], namespace: str) -> Iterator[Subject]:
    for subject in subjects:
        kind, name = str(subject.get("kind", "")), str(subject.get("name", ""))
        if kind == _SERVICE_ACCOUNT:
            name = f"{subject.get('namespace') or namespace}:{name}"
        yield kind, name


def _names_of(user: User) -> Iterator[Subject]:
    namespace, name = user.service_account
    if namespace and name:
        yield _SERVICE_ACCOUNT, f"{namespace}:{name}"
    yield "User", user.username
    for group in user.groups:
        yield "Group", group


def _place(binding: JSONObject) -> tuple[str, str]:
    metadata = binding.get("metadata") or {}
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
