"""Table `engine_mutate`: a policy changes a resource, or existing targets."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from pyverno.engine.engine import Review
from pyverno.engine.request import Request
from pyverno.engine.result import ResourceRef
from pyverno.kube.json import encode
from pyverno.kube.patch.jsondiff import create_patch
from pyverno.offline.host import OfflineHost
from pyverno.offline.objects import ObjectStore
from pyverno.policy.kinds import KNOWN_KINDS
from tests.conformance.outcome import NO_ASSERTION, Claim, NotRun
from tests.conformance.policies import judge


def claim(row: dict[str, Any]) -> Claim:
    """Judge one row by the fields that it has."""
    if "patchedTargets" in row:
        return _targets(row)
    documents = row.get("documents") or row
    policy, resource = documents.get("policyRaw"), documents.get("resourceRaw") or documents.get("documentRaw")
    if policy is None or resource is None:
        raise NotRun(NO_ASSERTION)
    expected = dict(row.get("expect") or {})
    whole = [value for name, value in documents.items() if name.startswith("expected")]
    if whole:
        expected["document"] = whole[0]
        # the function patches with the policy's first rule only, which is why `rules` lists fewer than the policy
        policy = _first_rules(policy, expected.pop("rules", 0))
    if "want" in row:
        expected["patches"] = sorted(row["want"], key=encode)
    if not expected:
        raise NotRun(NO_ASSERTION)
    review = judge(policy, Request.from_manifest(resource))
    return Claim(expected, {key: _fact(key, value, review, resource) for key, value in expected.items()})


def _first_rules(policy: dict[str, Any], count: int) -> dict[str, Any]:
    rules = policy["spec"]["rules"]
    return {**policy, "spec": {**policy["spec"], "rules": rules[: count or len(rules)]}}


def _targets(row: dict[str, Any]) -> Claim:
    host = OfflineHost(targets=ObjectStore(row["targets"], KNOWN_KINDS))
    review = judge(_with_real_versions(row["policy"], row["targets"]), Request.from_manifest(row["trigger"]), host)
    patched = [result.patched for result in review.results if result.target is not None]
    return Claim(_ordered(row["patchedTargets"]), _ordered(patched))


def _with_real_versions(policy: dict[str, Any], objects: list[Any]) -> dict[str, Any]:
    """Name targets by the apiVersion of the given objects: the client of the Go test looks at kinds only."""
    versions = {each["kind"]: each["apiVersion"] for each in objects}
    policy = copy.deepcopy(policy)
    for rule in policy["spec"]["rules"]:
        for target in rule["mutate"].get("targets") or ():
            target["apiVersion"] = versions.get(target["kind"], target["apiVersion"])
    return policy


def _ordered(documents: list[Any]) -> list[Any]:
    return sorted(documents, key=lambda each: str(ResourceRef.of(each)))


def _fact(key: str, expected: Any, review: Review, before: Any) -> Any:
    after: Any = review.resource
    match key:
        case "document":
            return after
        case "patches":
            return sorted(create_patch(before, after), key=encode)
        case "rules":
            return len(review.results)
        case "statuses":
            return [result.status.value for result in review.results]
        case "message_contains":
            texts = [result.message for result in review.results]
            return [part if any(part in text for text in texts) else texts for part in expected]
        case "set_fields" | "append":
            return _changes(key, expected, before, after)
        case "every_container":
            values = [_at(each, path.split(".")) for each in _containers(after) for path in expected]
            return expected if all(value in expected.values() for value in values) else values
        case "container_names_at":
            return {index: _containers(after)[int(index)]["name"] for index in expected}
        case _ if key.endswith("_images"):
            images = {each["name"]: each["image"] for each in _all_containers(after)}
            return {name: images.get(name) for name in expected}
    raise NotRun(f"the row expects `{key}`, which this adapter does not know")


def _containers(document: Any) -> list[Any]:
    return list(document["spec"]["containers"])


def _all_containers(document: Any) -> list[Any]:
    return [*document["spec"].get("initContainers", ()), *document["spec"]["containers"]]


def _at(document: Any, path: list[Any]) -> Any:
    for step in path:
        document = document[step]
    return document


def _changes(key: str, expected: Any, before: Any, after: Any) -> Any:
    """Make the changes that the row lists, and compare whole documents."""
    changed = copy.deepcopy(before)
    change: Callable[[Any, Any, Any], None] = _set if key == "set_fields" else _append
    for each in expected:
        change(_at(changed, each["path"][:-1]), each["path"][-1], each["value"])
    return expected if changed == after else after


def _set(parent: Any, step: Any, value: Any) -> None:
    parent[step] = value


def _append(parent: Any, step: Any, value: Any) -> None:
    parent[step].append(value)
