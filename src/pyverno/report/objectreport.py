"""The report of one object: PolicyReports (wgpolicyk8s.io) or Reports (openreports.io) with results of all sources.

A report is named by the uid of its object, which owns it. Results are merged by policy and rule: the newest wins, and
an unchanged one keeps its timestamp, so that a report changes only when a result does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from pyverno.engine.result import MAX_MESSAGE, ResourceRef
from pyverno.kube.json import JSONObject, encode
from pyverno.kube.names import MAX_NAME
from pyverno.kube.reportapis import ReportApi
from pyverno.value import dataclass

__all__ = [
    "MAX_RESULTS",
    "ReportSubject",
    "bounded_result",
    "merge_results",
    "report_name",
    "reports_of",
    "results_digest",
    "subject_of",
]

MAX_RESULTS: Final = 1000
"""The limit of results in one report; an object with more results has several reports."""

_MAX_BYTES: Final = 1024 * 1024
_MAX_PROPERTIES: Final = 64 * 1024
_RULE_SOURCE: Final = "kyverno"
_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
_STATUSES: Final = ("error", "fail", "pass", "skip", "warn")
_BINDINGS: Final = ("binding", "mapBinding")
_REFERENCE: Final = ("apiVersion", "kind", "name", "uid")


@dataclass(frozen=True, slots=True)
class ReportSubject:
    """The object that a report is made for."""

    ref: ResourceRef
    uid: str


ResultKey = tuple[str, str, str, str]


def _key(item: Mapping[str, object]) -> ResultKey:
    """Return the identity of a result among those of one object.

    Kyverno: rules count for its own legacy policies only. Here bindings of admission policies count as well.
    """
    source = str(item.get("source") or "")
    rule = str(item.get("rule") or "") if source == _RULE_SOURCE else ""
    properties = item.get("properties")
    binding = ""
    if isinstance(properties, dict):
        binding = next((str(properties[name]) for name in _BINDINGS if properties.get(name)), "")
    return source, str(item.get("policy") or ""), rule, binding


def _seconds(item: Mapping[str, object]) -> int:
    timestamp = item.get("timestamp")
    seconds = timestamp.get("seconds") if isinstance(timestamp, dict) else 0
    return seconds if isinstance(seconds, int) else 0


def _essence(item: JSONObject) -> JSONObject:
    """Return a result without its timestamp."""
    return {key: value for key, value in item.items() if key != "timestamp"}


def merge_results(
    existing: Iterable[JSONObject],
    scanned: Iterable[JSONObject],
    others: Iterable[JSONObject],
    *,
    is_scanned: Callable[[JSONObject], bool] = lambda _item: False,
    is_current: Callable[[JSONObject], bool] = lambda _item: True,
    is_kept: Callable[[JSONObject], bool] = lambda _item: True,
) -> list[JSONObject]:
    """Return the results of an object in the order of reports, each as `bounded_result` leaves it.

    `existing` are those of the present report, `scanned` those of a background scan and `others` those of ephemeral
    reports, oldest first. `is_scanned` returns whether only the scan may give a result: such results of other origins
    are dropped. `is_current` returns whether policy and rule still exist. An existing result that is not kept only
    lends its timestamp to the same result. The newest result wins; among equally old
    ones the last, because timestamps are in seconds.

    >>> def item(result, seconds):
    ...     return {"source": "kyverno", "policy": "p", "result": result, "timestamp": {"seconds": seconds}}
    >>> [each["result"] for each in merge_results([item("pass", 5)], (), [item("fail", 4), item("skip", 6)])]
    ['skip']
    >>> merge_results([item("pass", 5)], [item("pass", 9)], ())[0]["timestamp"]
    {'seconds': 5}
    """
    known_before = list(existing)
    kept = {_key(item): item for item in known_before if is_kept(item)}
    before = {_key(item): item for item in known_before} | kept
    found: dict[ResultKey, JSONObject] = {}
    for item in kept.values():
        if is_current(item) and not is_scanned(item):
            found[_key(item)] = item
    for item in map(bounded_result, others):
        if is_current(item) and not is_scanned(item):
            known = found.get(_key(item))
            if known is None or _seconds(item) >= _seconds(known):
                found[_key(item)] = item
    for item in map(bounded_result, scanned):
        found[_key(item)] = item
    merged = [_with_old_time(item, before.get(key)) for key, item in found.items()]
    return sorted(merged, key=_order)


def _with_old_time(item: JSONObject, before: JSONObject | None) -> JSONObject:
    if before is None or before is item or _essence(before) != _essence(item):
        return item
    return before


def _order(item: JSONObject) -> tuple[str, str, str, int]:
    """Kyverno: policy, rule, source, time; the objects of one report are all the same."""
    return str(item.get("policy") or ""), str(item.get("rule") or ""), str(item.get("source") or ""), _seconds(item)


def results_digest(items: Iterable[JSONObject]) -> bytes:
    """Return 16 bytes that differ when results do as reports hold them, whatever their order and timestamps.

    >>> one = {"policy": "a", "result": "pass", "timestamp": {"seconds": 1}}
    >>> results_digest([one]) == results_digest([{**one, "timestamp": {"seconds": 2}}])
    True
    """
    made = hashlib.blake2b(digest_size=16)
    for text in sorted(encode(_sort(_essence(bounded_result(item)))) for item in items):
        made.update(text.encode())
        made.update(b"\0")
    return made.digest()


def _sort(item: JSONObject) -> JSONObject:
    return {
        key: dict(sorted(value.items())) if isinstance(value, dict) else value for key, value in sorted(item.items())
    }


def report_name(uid: str, number: int) -> str:
    """Return the name of one of the reports of an object.

    >>> report_name("8f5e", 0), report_name("8f5e", 1)
    ('8f5e', '8f5e-2')
    """
    return f"{uid}-{number + 1}" if number else uid


def subject_of(report: JSONObject) -> ReportSubject | None:
    """Return the object in the scope of a report, None without one.

    >>> scope = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "u-1"}
    >>> subject_of({"metadata": {"namespace": "team"}, "scope": scope}).ref.namespace
    'team'
    """
    scope = report.get("scope")
    if not isinstance(scope, dict) or not all(isinstance(scope.get(name), str) for name in _REFERENCE):
        return None
    namespace = (report.get("metadata") or {}).get("namespace") or ""
    ref = ResourceRef(scope["apiVersion"], scope["kind"], namespace, scope["name"])
    return ReportSubject(ref, scope["uid"])


def reports_of(subject: ReportSubject, items: Sequence[JSONObject], api: ReportApi) -> Iterator[JSONObject]:
    """Yield the reports of an object, each with at most `MAX_RESULTS` results and about a megabyte.

    >>> from pyverno.kube.reportapis import POLICY_REPORTS
    >>> subject = ReportSubject(ResourceRef("v1", "Pod", "default", "web"), "u-1")
    >>> items = [{"policy": "p", "result": "pass"}] * 1500
    >>> [len(each["results"]) for each in reports_of(subject, items, POLICY_REPORTS)]
    [1000, 500]
    """
    for number, part in enumerate(_parts(items)):
        yield _report(subject, part, api, report_name(subject.uid, number))


def _parts(items: Sequence[JSONObject]) -> Iterator[list[JSONObject]]:
    part: list[JSONObject] = []
    size = 0
    for item in map(bounded_result, items):
        length = len(encode(item).encode())
        if part and (len(part) >= MAX_RESULTS or size + length > _MAX_BYTES):
            yield part
            part, size = [], 0
        part.append(item)
        size += length
    if part:
        yield part


def bounded_result(item: JSONObject) -> JSONObject:
    """Return a result that fits into a report: long texts are cut, and properties beyond 64 KiB are left out.

    >>> cut = bounded_result({"message": "x" * 20_000})
    >>> len(cut["message"]), cut["message"][-4:], bounded_result(cut) is cut
    (16384, 'x...', True)
    """
    message, properties = item.get("message"), item.get("properties")
    if isinstance(message, str) and len(message) > MAX_MESSAGE:
        item = {**item, "message": _cut(message)}
    if isinstance(properties, dict) and sum(map(len, properties)) + _length(properties) > MAX_MESSAGE:
        kept, room = {}, _MAX_PROPERTIES
        for key, value in properties.items():
            short = _cut(value) if isinstance(value, str) else value
            size = len(key) + len(str(short))
            if size <= room:
                kept[key], room = short, room - size
        item = item if kept == properties else {**item, "properties": kept}
    return item


def _length(properties: JSONObject) -> int:
    return sum(len(value) for value in properties.values() if isinstance(value, str))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_MESSAGE else f"{text[: MAX_MESSAGE - 3]}..."


def _report(subject: ReportSubject, items: list[JSONObject], api: ReportApi, name: str) -> JSONObject:
    ref = subject.ref
    reference: JSONObject = {"apiVersion": ref.api_version, "kind": ref.kind, "name": ref.name, "uid": subject.uid}
    metadata: JSONObject = {
        "name": name[:MAX_NAME],
        "labels": {_MANAGED_BY: _RULE_SOURCE},
        "ownerReferences": [reference],
    }
    if ref.namespace:
        metadata["namespace"] = ref.namespace
    summary = dict.fromkeys(_STATUSES, 0)
    for item in items:
        if item.get("result") in summary:
            summary[item["result"]] += 1
    return {
        "apiVersion": api.api_version,
        "kind": api.namespaced_kind if ref.namespace else api.cluster_kind,
        "metadata": metadata,
        "scope": {**reference, **({"namespace": ref.namespace} if ref.namespace else {})},
        "summary": summary,
        "results": items,
    }
