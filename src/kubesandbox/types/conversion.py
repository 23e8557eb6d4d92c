"""One object in another served version of its resource.

Most versions of built-in kinds differ in their `apiVersion` only, as those of custom resources without a conversion
webhook do. HorizontalPodAutoscaler and Event have fields of other names and shapes, which are really converted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain

import orjson

from kubesandbox.types.resources import ResourceType
from pyverno.errors import DocumentError
from pyverno.kube.gvk import parse_api_version
from pyverno.kube.json import JSON, JSONObject, decode

__all__ = ["autoscaler_to_v2", "to_version"]


def to_version(type: ResourceType, body: JSONObject) -> JSONObject:
    """Return an object as the given version of its resource has it; the object itself where it is of that version.

    >>> from kubesandbox.types.resources import builtin_table
    >>> autoscalers = builtin_table("1.35").find("autoscaling", "v1", "horizontalpodautoscalers")
    >>> target = {"type": "Utilization", "averageUtilization": 60}
    >>> metric = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    >>> to_version(autoscalers, {"apiVersion": "autoscaling/v2", "spec": {"metrics": [metric]}})["spec"]
    {'targetCPUUtilizationPercentage': 60}
    """
    present = body.get("apiVersion")
    if present == type.api_version:
        return body
    renamed = {**body, "apiVersion": type.api_version}
    group, version = parse_api_version(present) if isinstance(present, str) else ("", "")
    converter = _CONVERTERS.get((type.kind, f"{group}/{version}", f"{type.group}/{type.version}"))
    return converter(renamed) if converter is not None and not type.is_custom else renamed


# ── Event: the same facts under other names ──────────────────────────────────────────────────────────────────────────

_EVENT_NAMES: Mapping[str, str] = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_CORE_NAMES = {new: old for old, new in _EVENT_NAMES.items()}
_CORE_ALWAYS: JSONObject = {
    "involvedObject": {},
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
"""Fields of the core Event that are written even when they are empty."""


def _event_to_core(body: JSONObject) -> JSONObject:
    renamed = {_CORE_NAMES.get(key, key): value for key, value in body.items()}
    return {**renamed, **{key: value for key, value in _CORE_ALWAYS.items() if key not in renamed}}


def _event_from_core(body: JSONObject) -> JSONObject:
    kept = {
        key: value for key, value in body.items() if value or key not in ("reportingComponent", "reportingInstance")
    }
    return {"eventTime": None, **{_EVENT_NAMES.get(key, key): value for key, value in kept.items()}}


# ── HorizontalPodAutoscaler: v1 knows one metric; the others travel in annotations ───────────────────────────────────

_PREFIX = "autoscaling.alpha.kubernetes.io/"
_METRICS, _CURRENT, _CONDITIONS, _BEHAVIOR = (
    _PREFIX + name for name in ("metrics", "current-metrics", "conditions", "behavior")
)
_V1_STATUS = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")


def _autoscaler_to_v1(body: JSONObject) -> JSONObject:
    spec, status = dict(_map(body, "spec")), _map(body, "status")
    notes: dict[str, JSON] = {}
    percentage, metrics = _split_cpu(_list(spec.pop("metrics", None)), "target")
    if percentage is not None:
        spec["targetCPUUtilizationPercentage"] = percentage
    if metrics:
        notes[_METRICS] = [_metric_to_v1(metric, "target") for metric in metrics]
    behavior = spec.pop("behavior", None)
    if behavior:
        notes[_BEHAVIOR] = _capitalize(behavior)
    converted: JSONObject = {"currentReplicas": 0, "desiredReplicas": 0}
    converted |= {key: status[key] for key in _V1_STATUS if key in status}
    percentage, current = _split_cpu(_list(status.get("currentMetrics")), "current")
    if percentage is not None:
        converted["currentCPUUtilizationPercentage"] = percentage
    if current:
        notes[_CURRENT] = [_metric_to_v1(metric, "current") for metric in current]
    if status.get("conditions"):
        notes[_CONDITIONS] = status["conditions"]
    written = {key: orjson.dumps(value).decode() for key, value in notes.items()}
    result = {**body, "metadata": _annotate(body, written), "spec": spec}
    return {**result, "status": converted} if "status" in body else result


def autoscaler_to_v2(body: JSONObject) -> JSONObject:
    """Return the fields of a v1 autoscaler as v2 has them, annotations included; `apiVersion` stays as it is."""
    spec, status = dict(_map(body, "spec")), dict(_map(body, "status"))
    annotations = _map(_map(body, "metadata"), "annotations")
    metrics = [_metric_to_v2(metric, "target") for metric in _list(_note(annotations, _METRICS))]
    percentage = spec.pop("targetCPUUtilizationPercentage", None)
    if percentage is not None:
        target = {"type": "Utilization", "averageUtilization": percentage}
        metrics.append({"type": "Resource", "resource": {"name": "cpu", "target": target}})
    if metrics:
        spec["metrics"] = metrics
    behavior = _note(annotations, _BEHAVIOR)
    if isinstance(behavior, dict):
        spec["behavior"] = _uncapitalize(behavior)
    current = [_metric_to_v2(metric, "current") for metric in _list(_note(annotations, _CURRENT))]
    percentage = status.pop("currentCPUUtilizationPercentage", None)
    if percentage is not None:
        current.append({"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": percentage}}})
    if "status" in body:
        if not status.get("currentReplicas"):
            status.pop("currentReplicas", None)
        status["currentMetrics"] = current or None
        conditions = _list(_note(annotations, _CONDITIONS))
        if conditions:
            status["conditions"] = conditions
    result = {**body, "metadata": _annotate(body, {}), "spec": spec}
    return {**result, "status": status} if "status" in body else result


def _split_cpu(metrics: list[JSON], side: str) -> tuple[int | None, list[JSON]]:
    """Take the utilization of CPU out, which v1 has a field for; of several the first counts, the rest is lost."""
    percentage: int | None = None
    others: list[JSON] = []
    for metric in metrics:
        resource = _map(metric, "resource")
        found = _map(resource, side).get("averageUtilization")
        if metric.get("type") == "Resource" and resource.get("name") == "cpu" and found is not None:
            percentage = found if percentage is None else percentage
        else:
            others.append(metric)
    return percentage, others


_SOURCES: Mapping[str, str] = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}
_VALUE_NAMES: Mapping[str, Mapping[str, str]] = {
    "Resource": {"averageUtilization": "AverageUtilization", "averageValue": "AverageValue"},
    "ContainerResource": {"averageUtilization": "AverageUtilization", "averageValue": "AverageValue"},
    "Pods": {"averageValue": "AverageValue"},
    "Object": {"value": "Value", "averageValue": "averageValue"},
    "External": {"value": "Value", "averageValue": "AverageValue"},
}
"""How v1 calls the values, after `target` or `current`; the one in small letters stands alone."""


def _metric_to_v1(metric: JSONObject, side: str) -> JSONObject:
    kind = metric.get("type", "")
    field = _SOURCES.get(kind, "")
    source = _map(metric, field)
    values = _map(source, side)
    old: JSONObject = {key: source[key] for key in ("name", "container") if key in source}
    if "describedObject" in source:
        old["target"] = source["describedObject"]
    named = _map(source, "metric")
    if "name" in named:
        old["metricName"] = named["name"]
    if "selector" in named:
        old["metricSelector" if kind == "External" else "selector"] = named["selector"]
    for new_name, old_name in _VALUE_NAMES.get(kind, {}).items():
        if new_name in values:
            old[_v1_value(side, old_name)] = values[new_name]
    return {"type": kind, field: old}


def _metric_to_v2(metric: JSONObject, side: str) -> JSONObject:
    kind = metric.get("type", "")
    field = _SOURCES.get(kind, "")
    old = _map(metric, field)
    new: JSONObject = {key: old[key] for key in ("name", "container") if key in old}
    if "target" in old:
        new["describedObject"] = old["target"]
    if "metricName" in old:
        selector = old.get("metricSelector" if kind == "External" else "selector")
        new["metric"] = {"name": old["metricName"], **({"selector": selector} if selector is not None else {})}
    values: JSONObject = {}
    for new_name, old_name in _VALUE_NAMES.get(kind, {}).items():
        if _v1_value(side, old_name) in old:
            values[new_name] = old[_v1_value(side, old_name)]
    if side == "target":
        values = {"type": _target_type(values), **values}
    new[side] = values
    return {"type": kind, field: new}


def _v1_value(side: str, name: str) -> str:
    return name if name[0].islower() else side + name


def _target_type(values: JSONObject) -> str:
    if "averageUtilization" in values:
        return "Utilization"
    return "AverageValue" if "averageValue" in values else "Value"


def _annotate(body: JSONObject, added: Mapping[str, str]) -> JSONObject:
    """Return the metadata with the autoscaler's annotations replaced."""
    metadata = dict(_map(body, "metadata"))
    ours = (_METRICS, _CURRENT, _CONDITIONS, _BEHAVIOR)
    kept = {key: value for key, value in _map(metadata, "annotations").items() if key not in ours}
    annotations = dict(sorted(chain(kept.items(), added.items())))
    if annotations:
        metadata["annotations"] = annotations
    else:
        metadata.pop("annotations", None)
    return metadata


def _note(annotations: JSONObject, key: str) -> JSON:
    text = annotations.get(key)
    try:
        return decode(text) if isinstance(text, str) else None
    except DocumentError:
        return None  # the annotation was edited; the API server drops such text as well


def _capitalize(value: JSON) -> JSON:
    """Write the behavior as the annotation has it: with the names of Go's fields."""
    if isinstance(value, dict):
        return {key[:1].upper() + key[1:]: _capitalize(item) for key, item in value.items()}
    return [_capitalize(item) for item in value] if isinstance(value, list) else value


def _uncapitalize(value: JSON) -> JSON:
    if isinstance(value, dict):
        return {key[:1].lower() + key[1:]: _uncapitalize(item) for key, item in value.items() if item is not None}
    return [_uncapitalize(item) for item in value] if isinstance(value, list) else value


def _map(parent: JSONObject, key: str) -> JSONObject:
    found = parent.get(key)
    return found if isinstance(found, dict) else {}


def _list(value: JSON) -> list[JSON]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


_CONVERTERS: Mapping[tuple[str, str, str], Callable[[JSONObject], JSONObject]] = {
    ("Event", "/v1", "events.k8s.io/v1"): _event_from_core,
    ("Event", "events.k8s.io/v1", "/v1"): _event_to_core,
    ("HorizontalPodAutoscaler", "autoscaling/v1", "autoscaling/v2"): autoscaler_to_v2,
    ("HorizontalPodAutoscaler", "autoscaling/v2", "autoscaling/v1"): _autoscaler_to_v1,
}
"""Kind, group and version from, group and version to."""
