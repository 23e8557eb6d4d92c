"""Rows of the things every cluster has: namespaces, nodes, events, settings, accounts, quotas, leases, classes.

This module must never show what a Secret holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from kubesandbox.tables.cells import (
    NONE,
    UNKNOWN,
    age,
    count,
    flag,
    joined,
    name_of,
    objects,
    part,
    quantity,
    since,
    text,
)
from kubesandbox.tables.printer import Cells, Printer, Printers, columns
from pyverno.kube.json import JSON, JSONObject

__all__ = ["PRINTERS"]

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE = "kubernetes.io/role"


def _named(*between: Callable[[JSONObject], JSON]) -> Cells:
    """Return the row of name and age with plain values between them."""

    def cells(body: JSONObject, now: datetime) -> Iterator[JSON]:
        yield name_of(body)
        for value in between:
            yield value(body)
        yield age(body, now)

    return cells


def _node(body: JSONObject, now: datetime) -> Iterator[JSON]:
    yield name_of(body)
    yield _node_status(body)
    labels = part(body, "metadata", "labels") or {}
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    yield joined(sorted(filter(None, roles | {labels.get(_ROLE, "")})))
    yield age(body, now)
    yield text(body, "status", "nodeInfo", "kubeletVersion")
    for kind in ("InternalIP", "ExternalIP"):
        found = (text(item, "address") for item in objects(body, "status", "addresses") if text(item, "type") == kind)
        yield next(found, NONE)
    for field in ("osImage", "kernelVersion", "containerRuntimeVersion"):
        yield text(body, "status", "nodeInfo", field) or UNKNOWN


def _node_status(body: JSONObject) -> str:
    ready = [text(item, "status") for item in objects(body, "status", "conditions") if text(item, "type") == "Ready"]
    status = ("Ready" if ready[-1] == "True" else "NotReady") if ready else "Unknown"
    return f"{status},SchedulingDisabled" if flag(body, "spec", "unschedulable") else status


def _event(body: JSONObject, now: datetime) -> Iterator[JSON]:
    """Fill the row of an Event of either group, whose fields have other names."""
    subject = part(body, "involvedObject") or part(body, "regarding")
    first = part(body, "firstTimestamp") or part(body, "deprecatedFirstTimestamp") or part(body, "eventTime")
    last = part(body, "lastTimestamp") or part(body, "deprecatedLastTimestamp") or first
    times = count(body, "count") or count(body, "deprecatedCount") or 1
    series = part(body, "series")
    if series is not None:
        last, times = part(series, "lastObservedTime"), count(series, "count")
    kind, name = text(subject, "kind").lower(), text(subject, "name")
    yield since(last, now)
    yield text(body, "type")
    yield text(body, "reason")
    yield f"{kind}/{name}" if name else kind
    yield text(subject, "fieldPath")
    yield _event_source(body)
    yield (text(body, "message") or text(body, "note")).strip()
    yield since(first, now)
    yield times
    yield name_of(body)


def _event_source(body: JSONObject) -> str:
    source = part(body, "source") or part(body, "deprecatedSource")
    component = text(source, "component") or text(body, "reportingComponent") or text(body, "reportingController")
    host = text(source, "host") or text(body, "reportingInstance")
    return f"{component}, {host}" if host else component


def _quota(body: JSONObject, now: datetime) -> Iterator[JSON]:
    requests: list[str] = []
    limits: list[str] = []
    used = part(body, "status", "used")
    for resource, hard in sorted((part(body, "status", "hard") or {}).items()):
        kind = limits if resource.startswith("limits.") else requests
        kind.append(f"{resource}: {quantity(part(used, resource))}/{quantity(hard)}")
    yield name_of(body)
    yield ", ".join(requests)
    yield ", ".join(limits)
    yield age(body, now)


def _component(body: JSONObject, now: datetime) -> Iterator[JSON]:
    healthy = next((item for item in objects(body, "conditions") if text(item, "type") == "Healthy"), None)
    yield name_of(body)
    if healthy is None:
        yield from ("Unknown", "", "")
    else:
        yield "Healthy" if text(healthy, "status") == "True" else "Unhealthy"
        yield text(healthy, "message")
        yield text(healthy, "error")


def _priority_class(body: JSONObject, now: datetime) -> Iterator[JSON]:
    yield name_of(body)
    yield count(body, "value")
    yield flag(body, "globalDefault")
    yield age(body, now)
    yield text(body, "preemptionPolicy")


def _flow_schema(body: JSONObject, now: datetime) -> Iterator[JSON]:
    dangling = (
        text(item, "status") for item in objects(body, "status", "conditions") if text(item, "type") == "Dangling"
    )
    yield name_of(body)
    yield text(body, "spec", "priorityLevelConfiguration", "name")
    yield count(body, "spec", "matchingPrecedence")
    yield text(body, "spec", "distinguisherMethod", "type") or NONE
    yield age(body, now)
    yield next(dangling, "?")


def _priority_level(body: JSONObject, now: datetime) -> Iterator[JSON]:
    limited = part(body, "spec", "limited")
    queuing = part(limited, "limitResponse", "queuing")
    yield name_of(body)
    yield text(body, "spec", "type")
    yield NONE if limited is None else count(limited, "nominalConcurrencyShares")
    for field in ("queues", "handSize", "queueLengthLimit"):
        yield NONE if queuing is None else count(queuing, field)
    yield age(body, now)


def _api_service(body: JSONObject, now: datetime) -> Iterator[JSON]:
    service = part(body, "spec", "service")
    available = next(
        (item for item in objects(body, "status", "conditions") if text(item, "type") == "Available"), None
    )
    yield name_of(body)
    yield "Local" if service is None else f"{text(service, 'namespace')}/{text(service, 'name')}"
    status, reason = text(available, "status") or "Unknown", text(available, "reason")
    yield f"{status} ({reason})" if status != "True" and reason else status
    yield age(body, now)


def _claim_state(body: JSONObject) -> str:
    is_deleted = part(body, "metadata", "deletionTimestamp") is not None
    states = ["deleted"] if is_deleted else []
    if part(body, "status", "allocation") is not None:
        states += ["allocated", "reserved"] if objects(body, "status", "reservedFor") else ["allocated"]
    elif not is_deleted:
        states.append("pending")
    return ",".join(states)


PRINTERS: Printers = {
    ("", "componentstatuses"): Printer(columns("NAME Status Message Error"), _component),
    ("", "configmaps"): Printer(
        columns("NAME Data AGE"), _named(lambda body: count(body, "data") + count(body, "binaryData"))
    ),
    ("", "events"): Printer(
        columns("Last_Seen Type Reason Object Subobject* Source* Message First_Seen* Count* Name*"), _event
    ),
    ("", "namespaces"): Printer(columns("NAME Status AGE"), _named(lambda body: text(body, "status", "phase"))),
    ("", "nodes"): Printer(
        columns("NAME Status Roles AGE Version Internal-IP* External-IP* OS-Image* Kernel-Version* Container-Runtime*"),
        _node,
    ),
    ("", "resourcequotas"): Printer(columns("NAME Request Limit AGE"), _quota),
    ("", "secrets"): Printer(
        columns("NAME Type Data AGE"), _named(lambda body: text(body, "type"), lambda body: count(body, "data"))
    ),
    ("", "serviceaccounts"): Printer(columns("NAME AGE"), _named()),
    ("apiregistration.k8s.io", "apiservices"): Printer(columns("NAME Service Available AGE"), _api_service),
    ("coordination.k8s.io", "leases"): Printer(
        columns("NAME Holder AGE"), _named(lambda body: text(body, "spec", "holderIdentity"))
    ),
    ("coordination.k8s.io", "leasecandidates"): Printer(
        columns("NAME LeaseName BinaryVersion EmulationVersion AGE"),
        _named(
            lambda body: text(body, "spec", "leaseName"),
            lambda body: text(body, "spec", "binaryVersion"),
            lambda body: text(body, "spec", "emulationVersion"),
        ),
    ),
    ("events.k8s.io", "events"): Printer(
        columns("Last_Seen Type Reason Object Subobject* Source* Message First_Seen* Count* Name*"), _event
    ),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): Printer(
        columns("NAME PriorityLevel MatchingPrecedence DistinguisherMethod AGE MissingPL"), _flow_schema
    ),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): Printer(
        columns("NAME Type NominalConcurrencyShares Queues HandSize QueueLengthLimit AGE"), _priority_level
    ),
    ("node.k8s.io", "runtimeclasses"): Printer(columns("NAME Handler AGE"), _named(lambda body: text(body, "handler"))),
    ("resource.k8s.io", "deviceclasses"): Printer(columns("NAME AGE"), _named()),
    ("resource.k8s.io", "resourceclaims"): Printer(columns("NAME State AGE"), _named(_claim_state)),
    ("resource.k8s.io", "resourceclaimtemplates"): Printer(columns("NAME AGE"), _named()),
    ("resource.k8s.io", "resourceslices"): Printer(
        columns("NAME Node Driver Pool AGE"),
        _named(
            lambda body: text(body, "spec", "nodeName"),
            lambda body: text(body, "spec", "driver"),
            lambda body: text(body, "spec", "pool", "name"),
        ),
    ),
    ("scheduling.k8s.io", "priorityclasses"): Printer(
        columns("NAME Value:integer Global-Default:boolean AGE PreemptionPolicy"), _priority_class
    ),
    ("scheduling.k8s.io", "workloads"): Printer(columns("NAME AGE"), _named()),
}
