"""`/v2/namespaces/resolve-selector`: the namespaces that have some labels, for boards of Policy Reporter's pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import orjson
from aiohttp import web

from pyverno.errors import UsageError
from pyverno.ui.server.bodies import read_object
from pyverno.ui.store.scope import SCOPE

__all__ = ["NamespaceRoutes", "NamespaceSelector"]


class NamespaceSelector(Protocol):
    """Finds namespaces in the clusters."""

    async def matching(self, labels: Mapping[str, str]) -> Iterable[str]:
        """Return the names of the namespaces with these labels; raises HostError."""


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
        found, scope = await self._selector.matching(labels), SCOPE.get()
        names = sorted({name for name in found if scope is None or name in scope})
        return web.Response(body=orjson.dumps(names), content_type="application/json")
