"""The quality of service class of a Pod, from what its containers ask for."""

from __future__ import annotations

from collections.abc import Iterable

from pyverno.kube.json import JSONObject
from pyverno.kube.quantity import try_quantity

__all__ = ["qos_class"]

_COUNTED = ("cpu", "memory")


def qos_class(spec: JSONObject) -> str:
    """Return `Guaranteed`, `Burstable` or `BestEffort`.

    >>> qos_class({"containers": [{"resources": {"requests": {"cpu": "1"}}}]})
    'Burstable'
    """
    pod = spec.get("resources")
    parts = [pod] if pod else [container.get("resources") or {} for container in _containers(spec)]
    requests = [_count(part.get("requests")) for part in parts]
    limits = [_count(part.get("limits")) for part in parts]
    if not any(requests) and not any(limits):
        return "BestEffort"
    if all(len(limit) == len(_COUNTED) for limit in limits) and all(
        limit.get(key) == value
        for request, limit in zip(requests, limits, strict=True)
        for key, value in request.items()
    ):
        return "Guaranteed"
    return "Burstable"


def _containers(spec: JSONObject) -> Iterable[JSONObject]:
    return (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))


def _count(quantities: JSONObject | None) -> dict[str, object]:
    found = {key: try_quantity(str((quantities or {}).get(key, ""))) for key in _COUNTED}
    return {key: quantity for key, quantity in found.items() if quantity is not None and quantity.sign() > 0}
