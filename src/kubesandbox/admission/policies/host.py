"""The host of admission policies: objects of the store, and the authorizer.

This module must never write, and never open a connection.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kubesandbox.admission.policies.authorizinghost import decide_access
from kubesandbox.admission.policies.requests import labels_of
from kubesandbox.authorization.access import Authorizer
from kubesandbox.storage.store import Key, Stored
from kubesandbox.types.conversion import to_version
from kubesandbox.types.resources import ResourceTable, ResourceType
from kubesandbox.view import ClusterView
from pyverno.engine.host import NoHost
from pyverno.engine.request import User
from pyverno.errors import HostError, ValueSyntaxError
from pyverno.kube.gvk import GVK, parse_api_version
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.kube.selector import compile_selector

if TYPE_CHECKING:
    from pyverno.lang.cel.host import AuthorizationCheck, Decision

__all__ = ["StoreHost", "kinds_of"]


class StoreHost(NoHost):
    """Answers the reads of a policy for one request; `NoHost` refuses all others."""

    def __init__(self, cluster: ClusterView, authorizer: Authorizer, user: User, kinds: KindTable) -> None:
        """Take the cluster, the source of `authorizer` answers, the user of the request, and the served kinds."""
        self._cluster = cluster
        self._authorizer = authorizer
        self._user = user
        self._kinds = kinds
        self._converted: dict[tuple[ResourceType, Key], JSONObject] = {}

    async def prepare(self, params: GVK) -> None:
        """Convert the parameters of a policy if only a webhook can; raises StatusError 500."""
        type = self._cluster.table.by_kind(params)
        if type is not None and type.converts_by_webhook:
            for stored in self._cluster.all(type.key):
                self._converted[type, stored.key] = await self._cluster.in_version(type, stored.body)

    def now(self) -> int:
        """Return the wall clock in nanoseconds."""
        return time.time_ns()

    @property
    def kinds(self) -> KindTable:
        """The kinds that are served."""
        return self._kinds

    def authorize(self, check: AuthorizationCheck) -> Decision:
        """Check an access of the user, or of the service account that it names."""
        return decide_access(check, self._user, self._authorizer)

    def get_object(
        self, api_version: str, kind: str, namespace: str, name: str, *, subresource: str = ""
    ) -> JSONObject | None:
        """Return one object in the requested version."""
        if subresource:
            raise HostError(f"the subresource `{subresource}` of an object cannot be read here")
        type = self._type(api_version, kind)
        found = self._cluster.get(Key(type.key, namespace if type.namespaced else "", name))
        return None if found is None else self._in_version(type, found)

    def list_objects(
        self, api_version: str, kind: str, namespace: str, selector: JSONObject | None
    ) -> tuple[JSONObject, ...]:
        """Return the objects of a kind that a selector selects, all without one."""
        type = self._type(api_version, kind)
        try:
            selects = compile_selector({} if selector is None else selector)
        except ValueSyntaxError as error:
            raise HostError(error.message) from error
        stored = self._cluster.all(type.key, namespace if type.namespaced else "")
        return tuple(body for each in stored if selects(labels_of(body := self._in_version(type, each))))

    def _in_version(self, type: ResourceType, stored: Stored) -> JSONObject:
        if not type.converts_by_webhook:
            return to_version(type, stored.body)
        try:
            return self._converted[type, stored.key]
        except KeyError:
            raise HostError(f"{type.kind} objects cannot be converted here") from None

    def _type(self, api_version: str, kind: str) -> ResourceType:
        found = self._cluster.table.by_kind(GVK(*parse_api_version(api_version), kind))
        if found is None:
            raise HostError(f'no matches for kind "{kind}" in version "{api_version}"')
        return found


def kinds_of(table: ResourceTable) -> KindTable:
    """Return the kinds of all types that are served."""
    return KindTable(
        KindInfo(
            group=type.group,
            version=type.version,
            kind=type.kind,
            plural=type.plural,
            singular=type.singular,
            namespaced=type.namespaced,
            short_names=type.short_names,
            subresources=type.subresources,
        )
        for type in table
    )
