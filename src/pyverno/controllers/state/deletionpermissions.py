"""Checks that the cleanup controller may list and delete what a policy is to delete."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from pyverno.cluster.client import Client
from pyverno.controllers.state.permissions import lacks
from pyverno.controllers.state.targets import targets_of
from pyverno.kube.gvk import GVR
from pyverno.kube.kinds import KindTable
from pyverno.kube.wildcard import has_wildcard
from pyverno.policy.cel.policies import DeletingPolicy
from pyverno.policy.cleanup import CleanupPolicy

__all__ = ["DeletionPermissions"]

_VERBS: Final = ("delete", "list")


class DeletionPermissions:
    """Checks permissions by SubjectAccessReviews; accounts that are not configured are not checked."""

    def __init__(self, client: Client, account: str, kinds: Callable[[], KindTable]) -> None:
        """Take the client, the cleanup controller's user name, and the currently served kinds."""
        self._client = client
        self._account = account
        self._kinds = kinds

    async def missing(self, policy: CleanupPolicy | DeletingPolicy) -> tuple[str, ...]:
        """Return a message for each verb that the controller lacks, in Kyverno's words."""
        if not self._account:
            return ()
        namespace = policy.namespace or "default" if policy.is_namespaced else ""
        texts: dict[str, None] = {}
        for kind, gvr, name in dict.fromkeys(self._needed(policy)):
            for verb in _VERBS:
                if await lacks(self._client, self._account, verb, gvr, namespace, name=name) is not None:
                    texts[f"cleanup controller has no permission to {verb} kind {kind}"] = None
        return tuple(texts)

    def _needed(self, policy: CleanupPolicy | DeletingPolicy) -> Iterator[tuple[str, GVR, str]]:
        """Yield kinds, their resources, and the names of objects where a policy names them ("" = all)."""
        if isinstance(policy, CleanupPolicy):
            yield from self._of_kinds(policy)
            return
        constraints = policy.spec.match_constraints
        for rule in constraints.resource_rules if constraints is not None else ():
            for group in rule.api_groups:
                for version in rule.api_versions:
                    for resource in rule.resources:
                        gvr = GVR(group, version, resource)
                        info = self._kinds().by_resource(gvr)
                        for name in rule.resource_names or ("",):
                            yield (resource if info is None else info.kind), gvr, name

    def _of_kinds(self, policy: CleanupPolicy) -> Iterator[tuple[str, GVR, str]]:
        for block in policy.spec.match.blocks:
            resources = block.resources
            names = (*resources.names, *((resources.name,) if resources.name else ()))
            if any(has_wildcard(each) for each in names):
                names = ()
            for text in resources.kinds:
                for target in targets_of(text, self._kinds()):
                    for name in names or ("",):
                        yield text, GVR(target.group, target.version, target.resource), name
