"""Responses as traces of OpenTelemetry: a span for the request, below it one for each policy and each rule.

Spans are made after the response was sent, so that they delay no request. A review is timed as a whole; its rules share
the time in equal parts, one after the other, as they do in the metrics. This module must never export anything, and is
imported only where OpenTelemetry is installed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context

from pyverno.engine.result import RuleResult
from pyverno.engine.result import Status as Outcome
from pyverno.engine.rule import PolicyInfo
from pyverno.kube.admissionreview import AdmissionRequest
from pyverno.kube.gvk import parse_api_version
from pyverno.kube.json import JSON
from pyverno.telemetry.observer import AdmissionOutcome

__all__ = ["Traces"]

_MAX_CHARACTERS: Final = 256
_NANOSECONDS: Final = 1_000_000_000
_OBJECTS: Final = {
    "kind": ("kind", ("group", "version", "kind")),
    "requestKind": ("requestkind", ("group", "version", "kind")),
    "resource": ("resource", ("group", "version", "resource")),
    "requestResource": ("requestresource", ("group", "version", "resource")),
}
"""Parts of a request that are objects, what they are called in attributes, and their fields."""
_TEXTS: Final = {
    "name": "name",
    "namespace": "namespace",
    "uid": "uid",
    "operation": "operation",
    "subResource": "subresource",
    "requestSubResource": "requestsubresource",
}

Attributes = dict[str, str | bool | int | Sequence[str]]


class Traces:
    """An `Observer` of the webhook server that makes spans with Kyverno's names and attributes."""

    def __init__(self, tracer: Tracer) -> None:
        """Take what begins spans."""
        self._tracer = tracer

    def answered(
        self, admission_request: AdmissionRequest, path: str, outcome: AdmissionOutcome, seconds: float
    ) -> None:
        """Make the spans of one answer."""
        end = time.time_ns()
        begin = end - int(seconds * _NANOSECONDS)
        gvk = admission_request.kind
        verb = "MUTATE" if "mutate" in path else "VALIDATE"
        http = self._begin(f"ADMISSION POST {path}", None, begin, {"http.method": "POST", "http.url": _cut(path)})
        name = f"{verb} {admission_request.operation} {gvk.api_version}, Kind={gvk.kind}"
        admission = self._begin(
            name, http, begin, {**_describe_request(admission_request), **_answered(admission_request, outcome)}
        )
        if outcome.review is not None and outcome.review.results:
            self._record_rules(outcome.review.results, admission, begin, end)
        admission.end(end)
        http.end(end)

    def failed(self, path: str, error: BaseException) -> None:
        """Make the span of a request that was refused."""
        span = self._begin(
            f"ADMISSION POST {path}", None, time.time_ns(), {"http.method": "POST", "http.url": _cut(path)}
        )
        span.set_status(Status(StatusCode.ERROR, type(error).__name__))
        span.end()

    def _record_rules(self, results: Sequence[RuleResult], above: Span, begin: int, end: int) -> None:
        share = (end - begin) // len(results)
        moment = begin
        for policy, of_policy in _by_policy(results):
            span = self._begin(f"POLICY {policy.namespace}/{policy.name}", above, moment, _about(policy))
            for result in of_policy:
                attributes: Attributes = {
                    **_about(policy),
                    "kyverno.rule.name": _cut(result.rule.name),
                    "kyverno.rule.result": result.status.value,
                }
                rule = self._begin(f"RULE {result.rule.name}", span, moment, attributes)
                if result.status is Outcome.ERROR:
                    rule.set_status(Status(StatusCode.ERROR))
                moment += share
                rule.end(moment)
            span.end(moment)

    def _begin(self, name: str, above: Span | None, moment: int, attributes: Attributes) -> Span:
        context = Context() if above is None else set_span_in_context(above, Context())
        kind = SpanKind.SERVER if above is None else SpanKind.INTERNAL
        return self._tracer.start_span(_cut(name), context, kind, attributes, start_time=moment)


def _by_policy(results: Sequence[RuleResult]) -> list[tuple[PolicyInfo, list[RuleResult]]]:
    """Return results by policy, in the order in which the first of each came."""
    found: dict[tuple[str, str], tuple[PolicyInfo, list[RuleResult]]] = {}
    for result in results:
        policy = result.rule.policy
        found.setdefault((policy.kind, policy.key), (policy, []))[1].append(result)
    return list(found.values())


def _about(policy: PolicyInfo) -> Attributes:
    group, version = parse_api_version(policy.api_version)
    return {
        "kyverno.policy.group": group,
        "kyverno.policy.version": version,
        "kyverno.policy.kind": policy.kind,
        "kyverno.policy.name": _cut(policy.name),
        "kyverno.policy.namespace": _cut(policy.namespace),
    }


def _describe_request(admission_request: AdmissionRequest) -> Attributes:
    request = admission_request.request
    user = _object(request.get("userInfo"))
    found: Attributes = {
        "admission.request.dryrun": admission_request.is_dry_run,
        "admission.request.user.name": _cut(user.get("username")),
        "admission.request.user.uid": _cut(user.get("uid")),
        "admission.request.user.groups": [_cut(group) for group in user.get("groups") or ()],
    }
    for key, name in _TEXTS.items():
        found[f"admission.request.{name}"] = _cut(request.get(key))
    for key, (name, parts) in _OBJECTS.items():
        value = _object(request.get(key))
        for part in parts:
            found[f"admission.request.{name}.{part}"] = _cut(value.get(part))
    return found


def _answered(admission_request: AdmissionRequest, outcome: AdmissionOutcome) -> Attributes:
    answer = outcome.answer
    found: Attributes = {
        "admission.response.uid": _cut(admission_request.uid),
        "admission.response.allowed": answer.allowed,
        "admission.response.patchtype": "JSONPatch" if answer.patch and answer.allowed else "",
    }
    if not admission_request.is_secret:  # texts of rules may quote what they looked at
        found["admission.response.warnings"] = [_cut(warning) for warning in answer.warnings]
    if not answer.allowed:
        found["admission.response.result.status"] = "Failure"
        if not admission_request.is_secret:
            found["admission.response.result.message"] = _cut(answer.message)
    return found


def _object(value: JSON) -> Mapping[str, JSON]:
    return value if isinstance(value, Mapping) else {}


def _cut(value: JSON) -> str:
    """Return a text that is no longer than backends take."""
    text = value if isinstance(value, str) else ""
    return text if len(text) <= _MAX_CHARACTERS else f"{text[: _MAX_CHARACTERS - 3]}..."
