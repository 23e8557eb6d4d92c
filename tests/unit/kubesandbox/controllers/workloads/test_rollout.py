"""Sizes of ReplicaSets: what a rolling update and a scaling do to them."""

from __future__ import annotations

import pytest

from kubesandbox.controllers.workloads.rollout import (
    DESIRED,
    MAX,
    active_or_latest,
    is_saturated,
    max_surge,
    max_unavailable,
    new_size,
    old_sizes,
    proportional_sizes,
    rolling_limits,
)
from pyverno.kube.json import JSON, JSONObject


def deployment(replicas: int, surge: JSON = 1, unavailable: JSON = 1, kind: str = "RollingUpdate") -> JSONObject:
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    return {"spec": {"replicas": replicas, "strategy": {"type": kind, "rollingUpdate": rolling}}}


def replica_set(name: str, replicas: int, available: int | None = None, **annotations: str) -> JSONObject:
    metadata = {"name": name, "creationTimestamp": f"2030-01-01T00:00:0{ord(name[0]) % 10}Z"}
    notes = {{"desired": DESIRED, "max": MAX}[key]: value for key, value in annotations.items()}
    status = {"availableReplicas": replicas if available is None else available, "replicas": replicas}
    return {"metadata": {**metadata, "annotations": notes}, "spec": {"replicas": replicas}, "status": status}


@pytest.mark.parametrize(
    ("surge", "unavailable", "desired", "expected"),
    [
        ("25%", "25%", 10, (3, 2)),
        (0, 0, 10, (0, 1)),
        ("1%", "1%", 10, (1, 0)),
        (0, "1%", 10, (0, 1)),
        (3, 2, 1, (3, 2)),
    ],
)
def test_surplus_rounds_up_and_lack_rounds_down(
    surge: JSON, unavailable: JSON, desired: int, expected: tuple[int, int]
) -> None:
    """Surplus and unavailability are never both zero."""
    assert expected == rolling_limits(surge, unavailable, desired)


def test_recreation_knows_neither_surplus_nor_lack() -> None:
    """Nor does a Deployment that wants no pods lack any."""
    body = deployment(3, kind="Recreate")
    assert (0, 0) == (max_surge(body), max_unavailable(body))
    assert (1, 0) == (max_surge(deployment(0)), max_unavailable(deployment(0)))
    assert 2 == max_unavailable(deployment(2, unavailable=5))


@pytest.mark.parametrize(
    ("body", "old", "new", "expected"),
    [
        (deployment(4), 4, 0, 1),  # one more than wanted
        (deployment(4), 3, 1, 2),
        (deployment(4), 5, 1, 1),  # no room yet
        (deployment(4), 0, 4, 4),
        (deployment(4), 0, 6, 4),  # never more than wanted
        (deployment(4, kind="Recreate"), 4, 0, 4),
    ],
)
def test_the_new_set_grows_into_the_room_there_is(body: JSONObject, old: int, new: int, expected: int) -> None:
    """Pods of all sets count."""
    sets = [replica_set("a", old), replica_set("b", new)]
    assert expected == new_size(body, sets, sets[1])


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ([replica_set("a", 4)], replica_set("z", 1, 0), {"a": 3}),
        ([replica_set("a", 4)], replica_set("z", 1), {"a": 2}),
        ([replica_set("a", 4, 1)], replica_set("z", 1, 0), {"a": 3}),  # an unhealthy one goes first
        ([replica_set("a", 3)], replica_set("z", 1, 0), {}),  # three are the least
        ([replica_set("a", 1), replica_set("b", 3)], replica_set("z", 1), {"a": 0, "b": 2}),
        ([replica_set("a", 0)], replica_set("z", 4), {}),
    ],
)
def test_old_sets_shrink_as_far_as_enough_pods_are_left(
    old: list[JSONObject], new: JSONObject, expected: dict[str, int]
) -> None:
    """Four are wanted, one may lack; the oldest set goes first."""
    assert expected == old_sizes(deployment(4), old, new)


def test_one_set_takes_a_scaling_alone() -> None:
    """The only active one, or the newest when all are empty."""
    empty, used, other = replica_set("a", 0), replica_set("b", 2), replica_set("c", 1)
    assert used is active_or_latest(None, [empty, used])
    assert other is active_or_latest(other, [empty])
    assert empty is active_or_latest(None, [empty])
    assert None is active_or_latest(other, [used])
    assert None is active_or_latest(None, [])


def test_a_set_is_saturated_when_all_of_it_is_available() -> None:
    """And when it knows that so many are wanted."""
    body = deployment(3)
    assert is_saturated(body, replica_set("a", 3, desired="3"))
    assert not is_saturated(body, replica_set("a", 3, 2, desired="3"))
    assert not is_saturated(body, replica_set("a", 3, desired="2"))
    assert not is_saturated(body, replica_set("a", 3))
    assert not is_saturated(body, None)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (20, {"a": 15, "b": 6}),  # 10 were wanted and 11 allowed; what is left over goes to the largest
        (5, {"a": 4, "b": 2}),
        (0, {"a": 0, "b": 0}),
        (10, {"a": 8, "b": 3}),
    ],
)
def test_every_set_takes_its_share_of_a_scaling(wanted: int, expected: dict[str, int]) -> None:
    """In the middle of a rolling update."""
    sets = [replica_set("a", 8, max="11"), replica_set("b", 3, max="11")]
    assert expected == proportional_sizes(deployment(wanted), sets)
