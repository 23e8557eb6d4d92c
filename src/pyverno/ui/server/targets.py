"""`/v2/targets` and `/api/v1/targets`: where notifications go, without addresses and secrets, and how that works."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import orjson
from aiohttp import web

from pyverno.kube.json import JSON, JSONObject
from pyverno.ui.notifications.counts import NotificationCounts
from pyverno.ui.notifications.settings import TargetSettings
from pyverno.ui.store.scope import SCOPE
from pyverno.value import dataclass

__all__ = ["TargetRoutes", "TargetStatus"]


@dataclass(frozen=True, slots=True)
class TargetStatus:
    """A target, and what became of its notices."""

    settings: TargetSettings
    counts: NotificationCounts


class TargetRoutes:
    """Handlers of the routes."""

    def __init__(self, targets: Sequence[TargetStatus]) -> None:
        """Take the targets; none where there are no notifications."""
        self._targets = targets

    def routes(self) -> Iterable[web.RouteDef]:
        """Return the routes, relative to the base path."""
        return [web.get("/api/v1/targets", self._list), web.get("/v2/targets", self._by_kind)]

    async def _list(self, _: web.Request) -> web.Response:
        return _json({"items": [_target(each) for each in self._targets]})

    async def _by_kind(self, _: web.Request) -> web.Response:
        """Return what Policy Reporter shows of its targets, by kind."""
        found: dict[str, list[JSON]] = {}
        for each in self._targets:
            settings = each.settings
            item: JSONObject = {
                "name": settings.name,
                "minimumSeverity": settings.filter.minimum_severity,
                "secretRef": "",
                "customFields": {},
            }
            if SCOPE.get() is None:  # guard: names of Secrets are for those who see all namespaces
                item["secretRef"] = next((layer.secret for layer in reversed(settings.layers) if layer.secret), "")
                item["customFields"] = dict(settings.custom)
            found.setdefault(settings.kind, []).append(item)
        return _json(found)


def _target(shown: TargetStatus) -> JSONObject:
    settings, counts = shown.settings, shown.counts
    item: JSONObject = {
        "name": settings.name,
        "type": settings.kind,
        "digestSeconds": settings.digest,
        "groupBy": settings.group_by,
        "resolved": settings.sends_resolved,
    }
    if SCOPE.get() is not None:
        return item  # counts and errors cover all namespaces
    return item | {
        "sent": counts.sent[settings.name],
        "failed": counts.failed[settings.name],
        "dropped": counts.dropped[settings.name],
        "problem": counts.problems.get(settings.name, ""),
    }


def _json(value: JSON) -> web.Response:
    return web.Response(body=orjson.dumps(value), content_type="application/json")
