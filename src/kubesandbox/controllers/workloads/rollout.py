"""The number of replicas of each ReplicaSet of a Deployment: rolling updates, recreation, proportional scaling.

Pure functions; upstream: `pkg/controller/deployment`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from kubesandbox.controllers.objects import annotations_of, at, name_of, number_at
from pyverno.kube.json import JSON, JSONObject

__all__ = [
    "DESIRED",
    "MAX",
    "Sizes",
    "active",
    "active_or_latest",
    "is_rolling",
    "is_saturated",
    "max_surge",
    "max_unavailable",
    "new_size",
    "old_sizes",
    "proportional_sizes",
    "replicas_of",
    "rolling_limits",
    "scaled",
    "total",
]

DESIRED = "deployment.kubernetes.io/desired-replicas"
MAX = "deployment.kubernetes.io/max-replicas"

Sizes = dict[str, int]
"""Wanted replicas by the name of the ReplicaSet; unchanged ones may be left out."""


def replicas_of(body: JSONObject) -> int:
    """Return how many replicas are wanted."""
    return number_at(body, "spec", "replicas", default=1)


def total(sets: Iterable[JSONObject]) -> int:
    """Return the total number of wanted replicas."""
    return sum(map(replicas_of, sets))


def available_of(replica_set: JSONObject) -> int:
    """Return how many replicas are available."""
    return number_at(replica_set, "status", "availableReplicas")


def active(sets: Iterable[JSONObject]) -> list[JSONObject]:
    """Return the ReplicaSets that want pods."""
    return [item for item in sets if replicas_of(item) > 0]


def is_rolling(deployment: JSONObject) -> bool:
    """Return whether the Deployment updates step by step."""
    return bool(at(deployment, "spec", "strategy", "type", default="RollingUpdate") == "RollingUpdate")


def rolling_limits(surge: JSON, unavailable: JSON, desired: int) -> tuple[int, int]:
    """Return `maxSurge` and `maxUnavailable` as numbers of pods.

    >>> rolling_limits("25%", "25%", 3), rolling_limits(0, "10%", 5), rolling_limits(2, 0, 5)
    ((1, 0), (0, 1), (2, 0))
    """
    over, under = scaled(surge, desired, up=True), scaled(unavailable, desired, up=False)
    return (over, under) if over or under else (0, 1)


def max_surge(deployment: JSONObject) -> int:
    """Return the number of pods allowed beyond the wanted ones."""
    return _limits(deployment)[0] if is_rolling(deployment) else 0


def max_unavailable(deployment: JSONObject) -> int:
    """Return how many of the wanted pods may be unavailable."""
    if not is_rolling(deployment) or replicas_of(deployment) == 0:
        return 0
    return min(_limits(deployment)[1], replicas_of(deployment))


def new_size(deployment: JSONObject, sets: Sequence[JSONObject], new: JSONObject | None) -> int:
    """Return the size of the ReplicaSet with the newest template; `sets` are all of them."""
    wanted, size = replicas_of(deployment), 0 if new is None else replicas_of(new)
    if size >= wanted or not is_rolling(deployment):
        return wanted
    room = wanted + max_surge(deployment) - total(sets)
    return size + min(max(room, 0), wanted - size)


def old_sizes(deployment: JSONObject, old: Sequence[JSONObject], new: JSONObject) -> Sizes:
    """Return the sizes of older ReplicaSets in a rolling update: unhealthy pods go first, then what may lack."""
    ordered = _by_age(old)
    least = replicas_of(deployment) - max_unavailable(deployment)
    new_unavailable = replicas_of(new) - available_of(new)
    most = total(ordered) + replicas_of(new) - least - new_unavailable
    if not total(ordered) or most <= 0:
        return {}
    sizes = {name_of(item): replicas_of(item) for item in ordered}
    for item in ordered:
        unhealthy = max(sizes[name_of(item)] - available_of(item), 0)
        step = min(unhealthy, most)
        sizes[name_of(item)] -= step
        most -= step
    spare = sum(map(available_of, (*ordered, new))) - least
    for item in ordered:
        step = max(min(sizes[name_of(item)], spare), 0)
        sizes[name_of(item)] -= step
        spare -= step
    return sizes


def active_or_latest(new: JSONObject | None, old: Sequence[JSONObject]) -> JSONObject | None:
    """Return the only ReplicaSet that wants pods, or the newest when none does, None when several do."""
    found = active((*old, new) if new is not None else old)
    if len(found) > 1:
        return None
    return found[0] if found else new or next(iter(reversed(_by_age(old))), None)


def is_saturated(deployment: JSONObject, new: JSONObject | None) -> bool:
    """Return whether the newest ReplicaSet has reached the size of the Deployment and all its pods are available."""
    wanted = replicas_of(deployment)
    if new is None or annotations_of(new).get(DESIRED) is None:
        return False
    return replicas_of(new) == wanted and annotations_of(new)[DESIRED] == str(wanted) and available_of(new) == wanted


def proportional_sizes(deployment: JSONObject, sets: Sequence[JSONObject]) -> Sizes:
    """Return sizes after a scaling in the middle of a rolling update: each grows or shrinks by its share."""
    wanted = replicas_of(deployment)
    scaled = active(sets)
    limit = wanted + max_surge(deployment) if wanted > 0 else 0
    change = limit - total(scaled)
    younger_first = list(reversed(_by_age(scaled))) if change > 0 else _by_age(scaled)
    ordered = sorted(younger_first, key=lambda item: -replicas_of(item))
    sizes, added = {}, 0
    for item in ordered:
        share = _share(item, deployment, change, added)
        sizes[name_of(item)] = replicas_of(item) + share
        added += share
    if ordered:
        first = name_of(ordered[0])
        sizes[first] = max(sizes[first] + change - added, 0)
    return sizes


def _share(replica_set: JSONObject, deployment: JSONObject, change: int, added: int) -> int:
    if change in (0, added):
        return 0
    wanted, size = replicas_of(deployment), replicas_of(replica_set)
    if wanted == 0:
        fraction = -size
    else:
        before = int(annotations_of(replica_set).get(MAX) or number_at(deployment, "status", "replicas") or size)
        fraction = math.floor(size * (wanted + max_surge(deployment)) / max(before, 1) + 0.5) - size
    return min(fraction, change - added) if change > 0 else max(fraction, change - added)


def _by_age(sets: Iterable[JSONObject]) -> list[JSONObject]:
    return sorted(sets, key=lambda item: (at(item, "metadata", "creationTimestamp", default=""), name_of(item)))


def _limits(deployment: JSONObject) -> tuple[int, int]:
    rolling: JSONObject = at(deployment, "spec", "strategy", "rollingUpdate", default={})
    return rolling_limits(rolling.get("maxSurge", "25%"), rolling.get("maxUnavailable", "25%"), replicas_of(deployment))


def scaled(value: JSON, of: int, *, up: bool) -> int:
    """Return a number, or a percentage of another one.

    >>> scaled("30%", 5, up=True), scaled("30%", 5, up=False), scaled(4, 5, up=True)
    (2, 1, 4)
    """
    if isinstance(value, str) and value.endswith("%"):
        part = int(value[:-1]) * of
        return -(-part // 100) if up else part // 100
    return int(value or 0)
