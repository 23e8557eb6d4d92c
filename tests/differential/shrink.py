"""Smaller cases of a difference: parts of the policy and of the resource are left out as long as it stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace

from pyverno.kube.json import JSON, JSONObject, encode
from tests.differential.compare import Difference
from tests.differential.generate.batches import Batch
from tests.differential.generate.changes import CASE
from tests.differential.runs import excepted_policy

__all__ = ["shrink"]

Disagree = Callable[[Batch], list[Difference]]
Case = tuple[tuple[JSONObject, ...], JSONObject]
_ROUNDS = 10
_AT_A_TIME = 16
_KEPT = {"apiVersion", "kind", "name", "match", "matchConstraints"}


def shrink(difference: Difference, disagree: Disagree) -> Difference:
    """Return the smallest difference of the same sort that leaving out parts leads to."""
    if difference.key.kind == "query" or not difference.policy:
        return difference
    batch = difference.batch
    policies = tuple(item for item in batch.policies if item["metadata"]["name"] == difference.key.policy)
    resource = difference.resource or next(_objects_of(batch, difference.key.policy), batch.resources[0])
    found, case = difference, (policies, resource)
    for _ in range(_ROUNDS):
        candidates = sorted(_smaller(case), key=_size)[:_AT_A_TIME]
        if len(candidates) == 0:
            break
        kept = _first_that_differs(difference, batch, candidates, disagree)
        if kept is None:
            break
        case, found = kept
    return found


def _objects_of(batch: Batch, policy: str) -> Iterator[JSONObject]:
    return (item for item in batch.resources if item["metadata"].get("labels", {}).get(CASE) == policy)


def _size(case: Case) -> int:
    return len(encode(list(case[0]))) + len(encode(case[1]))


def _smaller(case: Case) -> Iterator[Case]:
    """Yield the case without one part, for each part."""
    policies, resource = case
    for index, policy in enumerate(policies):
        for spec in _without_one(policy["spec"]):
            yield (*policies[:index], {**policy, "spec": spec}, *policies[index + 1 :]), resource
    for smaller in _without_one(resource):
        if isinstance(smaller, dict) and "name" in smaller.get("metadata", {}):
            yield policies, smaller


def _without_one(value: JSON) -> Iterator[JSON]:
    if isinstance(value, dict):
        for key, below in value.items():
            if key not in _KEPT:
                yield {other: kept for other, kept in value.items() if other != key}
            for smaller in _without_one(below):
                yield {**value, key: smaller}
    elif isinstance(value, list):
        for index, below in enumerate(value):
            if len(value) > 1:
                yield [*value[:index], *value[index + 1 :]]
            for smaller in _without_one(below):
                yield [*value[:index], smaller, *value[index + 1 :]]


def _first_that_differs(
    difference: Difference, batch: Batch, candidates: list[Case], disagree: Disagree
) -> tuple[Case, Difference] | None:
    """Run all candidates at once, each under names of its own, and return the smallest that still differs."""
    policies: list[JSONObject] = []
    resources: list[JSONObject] = []
    exceptions: list[JSONObject] = []
    old = difference.key.policy
    for index, (written, resource) in enumerate(candidates):
        name = f"p{100 + index}"
        policies += (_renamed(policy, old, name) for policy in written)
        resources.append(_under_name(resource, old, name))
        exceptions += (_renamed(item, old, name) for item in batch.exceptions if excepted_policy(item) == old)
    together = replace(batch, policies=tuple(policies), resources=tuple(resources), exceptions=tuple(exceptions))
    still = {
        found.key.policy: found
        for found in disagree(together)
        if (found.aspect, found.ours.status, found.theirs.status)
        == (difference.aspect, difference.ours.status, difference.theirs.status)
        and (
            found.key.resource == "generated"
            or not found.key.resource
            or found.resource_name == f"{found.key.policy}-0"
        )
    }
    for index, case in enumerate(candidates):
        found = still.get(f"p{100 + index}")
        if found is not None:
            return case, found
    return None


def _renamed(value: JSON, old: str, new: str) -> JSON:
    if isinstance(value, dict):
        return {key: _renamed(below, old, new) for key, below in value.items()}
    if isinstance(value, list):
        return [_renamed(below, old, new) for below in value]
    return new if value == old else value


def _under_name(resource: JSONObject, old: str, name: str) -> JSONObject:
    found = deepcopy(resource)
    found["metadata"]["name"] = f"{name}-0"
    if found["metadata"].get("labels", {}).get(CASE) == old:
        found["metadata"]["labels"][CASE] = name
    return found
