"""ResourceQuotas: writes their usage, with the counts of the admission plugin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubesandbox.admission.plugins.quota import has_scopes
from kubesandbox.admission.plugins.usage import Amounts, add, usage_of
from kubesandbox.controllers.context import ControllerContext
from kubesandbox.controllers.loop import EVERYTHING, Keys, itself
from kubesandbox.controllers.objects import at, is_deleting, key_of
from kubesandbox.controllers.pods import is_terminal
from kubesandbox.storage.store import Change, ChangeKind, Key
from pyverno.kube.json import JSONObject
from pyverno.kube.quantity import Quantity

__all__ = ["Quotas"]

QUOTAS = "resourcequotas"
NONE = Quantity(0)
_GROWING = ("pods", "persistentvolumeclaims", "services")
"""Resources whose objects may change their usage."""


class Quotas:
    """Writes the status of quotas."""

    def __init__(self, context: ControllerContext) -> None:
        """Take the tools."""
        self._context = context

    @property
    def watches(self) -> Mapping[str, Keys]:
        """Quotas, and everything that may count."""
        return {QUOTAS: itself, EVERYTHING: self._counting}

    def _counting(self, change: Change) -> Iterable[Key]:
        key = change.state.key
        if not key.namespace or not _may_matter(change):
            return ()
        found = self._context.types().versions_of(key.resource)
        usage = usage_of(found[0], change.state.body) if found else {}
        return [
            key_of(QUOTAS, quota)
            for quota in self._context.client.list(QUOTAS, key.namespace)
            if usage.keys() & _hard(quota).keys() or (key.resource == "pods" and not usage)
        ]

    async def reconcile(self, key: Key) -> float | None:
        """Count the objects and resources that one quota limits."""
        quota = self._context.client.get(QUOTAS, key.name, key.namespace)
        if quota is None or is_deleting(quota) or has_scopes(quota):
            return None
        await self._context.put_status(
            QUOTAS, quota, {"hard": _hard(quota), "used": self._sum_usage(quota, key.namespace)}
        )
        return None

    def _sum_usage(self, quota: JSONObject, namespace: str) -> dict[str, str]:
        total: Amounts = dict.fromkeys(_hard(quota), NONE)
        for found in {item.key: item for item in self._context.types() if item.namespaced}.values():
            for body in self._context.client.list(found.key, namespace):
                usage = usage_of(found, body)
                if usage.keys() & total.keys():
                    total = add(total, {name: amount for name, amount in usage.items() if name in total})
        return {name: amount.canonical() for name, amount in total.items()}


def _hard(quota: JSONObject) -> JSONObject:
    found: JSONObject = at(quota, "spec", "hard", default={})
    return found


def _may_matter(change: Change) -> bool:
    if change.kind is not ChangeKind.MODIFIED or change.before is None:
        return True
    if change.state.key.resource not in _GROWING:
        return False
    old, new = change.before.body, change.state.body
    return at(old, "spec") != at(new, "spec") or is_terminal(old) != is_terminal(new)
