"""Table `engine_validate`: a policy on a resource, through the compiler and the engine."""

from __future__ import annotations

from typing import Any

from pyverno.engine.request import Request
from pyverno.engine.result import RuleResult, Status
from pyverno.offline.host import OfflineHost
from tests.conformance.outcome import NO_ASSERTION, Claim, NotRun
from tests.conformance.policies import judge

_POLICIES = ("policy", "policyRaw", "rawPolicy")
_RESOURCES = ("resource", "resourceRaw", "rawResource")


def claim(row: dict[str, Any]) -> Claim:
    """Judge one row by the expectations that it has."""
    policy = _first(row, _POLICIES)
    if "request" in row:
        return _request(row, policy)
    resource = _first(row, _RESOURCES)
    variables = _nested(row.get("variables") or {})
    host = OfflineHost(supply=lambda policy, rule, resource: variables)
    results = judge(policy, Request.from_manifest(resource), host).results
    expected = dict(row.get("expect") or {})
    if "expectedResults" in row:
        expected["statuses"] = [text.removeprefix("RuleStatus").lower() for text in row["expectedResults"]]
    if "expectedMessages" in row:
        expected["messages"] = row["expectedMessages"]
    for name in ("Skipped", "Failed", "Success"):
        if f"expected{name}" in row:
            expected[name.lower()] = row[f"expected{name}"]
    return Claim(expected, {key: _fact(key, value, results) for key, value in expected.items()})


def _first(row: dict[str, Any], names: tuple[str, ...]) -> Any:
    for name in names:
        if name in row:
            return row[name]
    raise NotRun(NO_ASSERTION)


def _fact(key: str, expected: Any, results: tuple[RuleResult, ...]) -> Any:
    statuses = [result.status for result in results]
    match key:
        case "statuses":
            return [status.value for status in statuses]
        case "rules":
            return len(results)
        case "messages":
            # a rule without a result has no message, and rows may list the first messages only
            said = [result.message for result in results]
            count = min(len(said), len(expected))
            return expected if said[:count] == expected[:count] else said
        case "successful":
            return not any(status in (Status.FAIL, Status.ERROR) for status in statuses)
        case "success":
            return all(status is Status.PASS for status in statuses)
        case "failed":
            return any(status is Status.FAIL for status in statuses)
        case "skipped":
            return any(status is Status.SKIP for status in statuses)
    raise NotRun(f"the row expects `{key}`, which this adapter does not know")


def _request(row: dict[str, Any], policy: Any) -> Claim:
    info = row.get("userInfo") or {}
    body = {**row["request"]}
    if info.get("userInfo"):
        body["userInfo"] = info["userInfo"]
    request = Request.from_admission_review(
        body, roles=tuple(info.get("roles") or ()), cluster_roles=tuple(info.get("clusterRoles") or ())
    )
    results = judge(policy, request).results
    # upstream's test calls a request denied when a rule neither passed nor was skipped, whatever the failure action
    denied = any(result.status in (Status.FAIL, Status.ERROR) for result in results)
    return Claim(row["requestDenied"], denied)


def _nested(variables: dict[str, Any]) -> dict[str, Any]:
    """Return dotted names as the maps that they stand for."""
    tree: dict[str, Any] = {}
    for name, value in variables.items():
        *steps, last = name.split(".")
        place = tree
        for step in steps:
            place = place.setdefault(step, {})
        place[last] = value
    return tree
