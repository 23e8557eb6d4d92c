"""What the status of an object may say: counts that fit each other, addresses, conditions; of Jobs: `jobstatuses`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubesandbox.objects.fielderrors import duplicate, forbidden, go_struct, invalid, unsupported
from kubesandbox.validation.check import Errors, form, not_negative
from kubesandbox.validation.names import address_problems, dns_subdomain_problems
from kubesandbox.validation.workloads.jobstatuses import job_status
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.labelsyntax import label_key_problems
from pyverno.kube.status import FieldError

__all__ = ["status_errors"]


def status_errors(key: str, body: JSONObject, old: JSONObject) -> list[FieldError]:
    """Return what is wrong with the new status of an object of a resource (`deployments.apps`)."""
    errors: Errors = []
    status: JSONObject = body.get("status") or {}
    for field in _COUNTS.get(key, ()):
        if status.get(field) is not None:
            not_negative(status[field], f"status.{field}", errors)
    for field, limit, named in _LIMITS.get(key, ()):
        count = status.get(field) or 0
        if count > (status.get(limit) or 0):
            errors.append(invalid(f"status.{field}", count, f"cannot be greater than {named}"))
    before: JSONObject = old.get("status") or {}
    collisions, known = status.get("collisionCount") or 0, before.get("collisionCount")
    if key in _COUNTED_UP and known is not None and collisions < known:
        errors.append(invalid("status.collisionCount", collisions, "cannot be decremented"))
    match key:
        case "jobs.batch":
            job_status(body, old, errors)
        case "pods":
            _pod(status, before, errors)
        case "services" | "ingresses.networking.k8s.io":
            _balancer(status, errors, with_modes=key == "services")
        case "nodes":
            _addresses(status, errors)
    return errors


_WORKLOAD: Final = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration")
_COUNTS: Final[Mapping[str, tuple[str, ...]]] = {
    "deployments.apps": (
        *("observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas"),
        *("unavailableReplicas", "collisionCount"),
    ),
    "statefulsets.apps": (
        *("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"),
        *("observedGeneration", "collisionCount"),
    ),
    "replicasets.apps": _WORKLOAD,
    "replicationcontrollers": _WORKLOAD,
    "daemonsets.apps": (
        *("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"),
        *("observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount"),
    ),
    "poddisruptionbudgets.policy": ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"),
    "horizontalpodautoscalers.autoscaling": ("currentReplicas", "desiredReplicas"),
}
"""Numbers that are never negative."""

_COUNTED_UP: Final = frozenset({"statefulsets.apps", "deployments.apps"})


def _within(last: str, *fields: str) -> tuple[tuple[str, str, str], ...]:
    limits = tuple((field, "replicas", "status.replicas") for field in fields)
    return (*limits, ("availableReplicas", "readyReplicas", last))


_LIMITS: Final[Mapping[str, tuple[tuple[str, str, str], ...]]] = {
    "deployments.apps": _within("readyReplicas", "updatedReplicas", "readyReplicas", "availableReplicas"),
    "statefulsets.apps": _within(
        *("status.readyReplicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    ),
    **dict.fromkeys(
        ("replicasets.apps", "replicationcontrollers"),
        _within("readyReplicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"),
    ),
}
"""Numbers that are no larger than another one, and how messages name that."""


def _pod(status: JSONObject, before: JSONObject, errors: Errors) -> None:
    for index, condition in enumerate(status.get("conditions") or ()):
        kind = str(condition.get("type") or "")
        problems = label_key_problems(kind)
        errors.extend(invalid(f"status.conditions[{index}].Type", kind, problem) for problem in problems)
    _pod_addresses(status, errors)
    known, quality = before.get("qosClass"), status.get("qosClass")
    if known and quality and quality != known:
        errors.append(invalid("status.qosClass", quality, "field is immutable"))
    if status.get("nominatedNodeName"):
        form(dns_subdomain_problems)(status["nominatedNodeName"], "status.nominatedNodeName", errors)
    if (status.get("observedGeneration") or 0) < 0:
        what = "must be a non-negative integer"
        errors.append(invalid("status.observedGeneration", status["observedGeneration"], what))


def _pod_addresses(status: JSONObject, errors: Errors) -> None:
    hosts = [str(item.get("ip") or "") for item in status.get("hostIPs") or ()]
    if hosts and hosts[0] != (status.get("hostIP") or ""):
        errors.append(invalid("status.hostIPs[0].ip", hosts[0], "must be equal to `hostIP`"))
    for field, addresses in (
        ("podIPs", [str(item.get("ip") or "") for item in status.get("podIPs") or ()]),
        ("hostIPs", hosts),
    ):
        for index, address in enumerate(addresses):
            problems = address_problems(address)
            errors.extend(invalid(f"status.{field}[{index}]", address, problem) for problem in problems)
        families = [":" in address for address in addresses]
        if len(families) > 2 or len({*families}) < len(families):
            shown = "[" + ",".join(go_struct({"ip": address}, ("IP",)) for address in addresses) + "]"
            what = "may specify no more than one IP for each IP family"
            errors.append(FieldError(f"status.{field}", "Invalid value", what, shown))


def _balancer(status: JSONObject, errors: Errors, *, with_modes: bool) -> None:
    for index, item in enumerate((status.get("loadBalancer") or {}).get("ingress") or ()):
        path, address, host = f"status.loadBalancer.ingress[{index}]", item.get("ip"), item.get("hostname")
        if address:
            errors.extend(invalid(f"{path}.ip", address, problem) for problem in address_problems(address))
        if with_modes:
            _mode(item, path, errors)
        if not host:
            continue
        errors.extend(invalid(f"{path}.hostname", host, problem) for problem in dns_subdomain_problems(host))
        if not address_problems(host):
            errors.append(invalid(f"{path}.hostname", host, "must be a DNS name, not an IP address"))


def _mode(item: JSONObject, path: str, errors: Errors) -> None:
    mode = item.get("ipMode")
    if mode is None:
        return
    if not item.get("ip"):
        errors.append(forbidden(f"{path}.ipMode", "may not be specified when `ip` is not set"))
    elif mode not in ("Proxy", "VIP"):
        errors.append(unsupported(f"{path}.ipMode", mode, ("Proxy", "VIP")))


def _addresses(status: JSONObject, errors: Errors) -> None:
    seen: list[JSON] = []
    for index, item in enumerate(status.get("addresses") or ()):
        if item in seen:
            shown = go_struct(item, ("Type", "Address"))
            errors.append(FieldError(f"status.addresses[{index}]", duplicate("", "").kind, "", shown))
        seen.append(item)
