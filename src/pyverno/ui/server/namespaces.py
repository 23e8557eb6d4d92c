"""`/v2/namespaces/resolve-selector`: the namespaces that have some labels, for boards of Policy Reporter's pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

import orjson
from aiohttp import web

from pyverno.errors import UsageError
from pyverno.kube.gvk import GVR
from pyverno.ui.access.access import access_to
from pyverno.ui.access.viewer import may
from pyverno.ui.server.bodies import read_object
from pyverno.ui.store.scope import SCOPE

__all__ = ["NamespaceRoutes", "NamespaceSelector", "visible"]

_NAMESPACES: Final = GVR("", "v1", "namespaces")


class NamespaceSelector(Protocol):
    """Finds namespaces in the clusters."""

    async def matching(self, labels: Mapping[str, str]) -> Iterable[str]:
        """Return the names of the namespaces with these labels; raises HostError."""


async def visible(names: Iterable[str]) -> set[str]:
    """Return the namespaces with reports that the user may list, and with labels that the user may read."""
    scope = SCOPE.get()
    own = {name for name in names if scope is None or name in scope}
    return {name for name in own if await may(access_to(_NAMESPACES, "", name))}  # guard: labels are asked for the user


class NamespaceRoutes:
    """Handlers of the route."""

    def __init__(self, selector: NamespaceSelector) -> None:
        """Take what finds namespaces."""
        self._selector = selector

    def routes(self) -> Iterable[web.RouteDef]:
        """Return the routes, relative to the base path."""
        return [web.post("/v2/namespaces/resolve-selector", self._resolve)]

    async def _resolve(self, request: web.Request) -> web.Response:
        labels = read_object(request, "the values of labels")
        if not all(isinstance(each, str) for each in labels.values()):
            raise UsageError("expected a JSON object with the values of labels")
        names = sorted(await visible(await self._selector.matching(labels)))
        return web.Response(body=orjson.dumps(names), content_type="application/json")
