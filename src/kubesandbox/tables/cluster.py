"""Rows of what every cluster has: namespaces, nodes, events, settings, accounts, quotas, leases, classes.

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


def _row_with(*between: Callable[[JSONObject], JSON]) -> Cells:
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


def _priority_class(body: JSONObject, now: datetime) -> Iterator[JSON]:
    yield name_of(body)
    yield count(body, "value")
    yield flag(body, "globalDefault")
    yield age(body, now)
    yield text(body, "preemptionPolicy")


PRINTERS: Printers = {
    ("", "configmaps"): Printer(
        columns("NAME Data AGE"), _row_with(lambda body: count(body, "data") + count(body, "binaryData"))
    ),
    ("", "events"): Printer(
        columns("Last_Seen Type Reason Object Subobject* Source* Message First_Seen* Count* Name*"), _event
    ),
    ("", "namespaces"): Printer(columns("NAME Status AGE"), _row_with(lambda body: text(body, "status", "phase"))),
    ("", "nodes"): Printer(
        columns("NAME Status Roles AGE Version Internal-IP* External-IP* OS-Image* Kernel-Version* Container-Runtime*"),
        _node,
    ),
    ("", "resourcequotas"): Printer(columns("NAME Request Limit AGE"), _quota),
    ("", "secrets"): Printer(
        columns("NAME Type Data AGE"), _row_with(lambda body: text(body, "type"), lambda body: count(body, "data"))
    ),
    ("", "serviceaccounts"): Printer(columns("NAME AGE"), _row_with()),
    ("coordination.k8s.io", "leases"): Printer(
        columns("NAME Holder AGE"), _row_with(lambda body: text(body, "spec", "holderIdentity"))
    ),
    ("events.k8s.io", "events"): Printer(
        columns("Last_Seen Type Reason Object Subobject* Source* Message First_Seen* Count* Name*"), _event
    ),
    ("node.k8s.io", "runtimeclasses"): Printer(
        columns("NAME Handler AGE"), _row_with(lambda body: text(body, "handler"))
    ),
    ("scheduling.k8s.io", "priorityclasses"): Printer(
        columns("NAME Value:integer Global-Default:boolean AGE PreemptionPolicy"), _priority_class
    ),
}
