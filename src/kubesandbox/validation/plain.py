"""Kinds with few rules: Secrets, ConfigMaps, Namespaces, quotas, priorities, budgets, autoscalers."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final

from kubesandbox.objects.fielderrors import duplicate, forbidden, go_struct, invalid, required, too_long, unsupported
from kubesandbox.validation.check import Errors, form, immutable, label_selector, not_negative
from kubesandbox.validation.names import (
    address_problems,
    config_key_problems,
    dns_label_problems,
    path_segment_problems,
)
from pyverno.errors import DocumentError
from pyverno.kube.json import JSON, JSONObject, decode, equal
from pyverno.kube.labelsyntax import label_key_problems
from pyverno.kube.quantity import try_quantity
from pyverno.kube.status import FieldError

__all__ = [
    "autoscaler",
    "config_map",
    "config_map_update",
    "disruption_budget",
    "endpoint_slice",
    "endpoints",
    "lease",
    "limit_range",
    "priority_class",
    "priority_class_update",
    "resource_quota",
    "runtime_class",
    "secret",
    "secret_update",
    "signing_request",
]

_MOST_BYTES: Final = 1024 * 1024
_IMMUTABLE_SET: Final = "field is immutable when `immutable` is set"
_REDACTED: Final = "<secret contents redacted>"


def config_map(body: JSON, path: str, errors: Errors) -> None:
    """Check a ConfigMap."""
    data, binary = body.get("data") or {}, body.get("binaryData") or {}
    size = 0
    for key, value in data.items():
        form(config_key_problems)(key, f"data[{key}]", errors)
        if key in binary:
            errors.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
        size += len(str(value).encode("utf-8", "replace"))
    for key, value in binary.items():
        form(config_key_problems)(key, f"binaryData[{key}]", errors)
        size += len(str(value)) * 3 // 4
    if size > _MOST_BYTES:
        errors.append(too_long("[]", _MOST_BYTES))


def config_map_update(body: JSONObject, old: JSONObject, subresource: str, errors: Errors) -> bool:
    """Check that an immutable ConfigMap did not change."""
    _immutable_data(body, old, ("data", "binaryData"), errors)
    return False


def _immutable_data(body: JSONObject, old: JSONObject, fields: tuple[str, ...], errors: Errors) -> None:
    if not old.get("immutable"):
        return
    if not body.get("immutable"):
        errors.append(forbidden("immutable", _IMMUTABLE_SET))
    for key in fields:
        if not equal(body.get(key) or {}, old.get(key) or {}):
            errors.append(forbidden(key, _IMMUTABLE_SET))


_SECRET_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


def secret(body: JSON, path: str, errors: Errors) -> None:
    """Check a Secret, and that its type's keys are there."""
    data = body.get("data") or {}
    for key in data:
        form(config_key_problems)(key, f"data[{key}]", errors)
    if sum(len(str(value)) * 3 // 4 for value in data.values()) > _MOST_BYTES:
        errors.append(too_long("data", _MOST_BYTES))
    kind = body.get("type") or ""
    if kind == "kubernetes.io/service-account-token":
        name = "kubernetes.io/service-account.name"
        if not ((body.get("metadata") or {}).get("annotations") or {}).get(name):
            errors.append(required(f"metadata.annotations[{name}]"))
    if kind == "kubernetes.io/basic-auth" and "username" not in data and "password" not in data:
        errors.extend(required(f"data[{key}]") for key in ("username", "password"))
    for key in _SECRET_KEYS.get(kind, ()):
        if key not in data:
            errors.append(required(f"data[{key}]"))
        elif key.startswith(".docker"):
            _docker(str(data[key]), f"data[{key}]", errors)


def _docker(value: str, path: str, errors: Errors) -> None:
    try:
        found = decode(base64.b64decode(value))
    except DocumentError as error:
        errors.append(invalid(path, _REDACTED, error.message))
        return
    if not isinstance(found, dict):
        what = "json: cannot unmarshal value into Go value of type map[string]interface {}"
        errors.append(invalid(path, _REDACTED, what))


def secret_update(body: JSONObject, old: JSONObject, subresource: str, errors: Errors) -> bool:
    """Check that the type of a Secret did not change, nor anything of an immutable one."""
    immutable(body.get("type"), old.get("type"), "type", errors)
    _immutable_data(body, old, ("data",), errors)
    return False


def resource_quota(body: JSON, path: str, errors: Errors) -> None:
    """Check a ResourceQuota."""
    for name, value in ((body.get("spec") or {}).get("hard") or {}).items():
        place = f"spec.hard[{name}]"
        problems = label_key_problems(name)
        errors.extend(invalid(place, name, problem) for problem in problems)
        if not problems and "/" not in name and name not in _QUOTA_NAMES and not name.startswith(_QUOTA_STARTS):
            what = "must be a standard resource for quota"
            errors.append(invalid(place, name, "must be a standard resource type or fully qualified"))
            errors.append(invalid(place, name, what))
        amount = try_quantity(str(value))
        if amount is not None and amount.sign() < 0:
            errors.append(invalid(place, str(value), "must be greater than or equal to 0"))


_QUOTA_NAMES: Final = frozenset(
    [
        "cpu",
        "memory",
        "ephemeral-storage",
        "storage",
        "pods",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "resourcequotas",
        "requests.cpu",
        "requests.memory",
        "requests.storage",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
        "services.nodeports",
        "services.loadbalancers",
    ]
)
_QUOTA_STARTS: Final = ("hugepages-", "requests.hugepages-", "count/")


def limit_range(body: JSON, path: str, errors: Errors) -> None:
    """Check a LimitRange: minimum, default and maximum of every resource in order."""
    seen: set[str] = set()
    for index, item in enumerate((body.get("spec") or {}).get("limits") or ()):
        place = f"spec.limits[{index}]"
        kind = str(item.get("type") or "")
        if kind in seen:
            errors.append(duplicate(f"{place}.type", kind))
        seen.add(kind)
        for key in ("default", "defaultRequest") if kind == "Pod" else ():
            if item.get(key):
                errors.append(forbidden(f"{place}.{key}", "may not be specified when `type` is 'Pod'"))
        problems = label_key_problems(kind)
        errors.extend(invalid(f"{place}.type", kind, problem) for problem in problems)
        if not problems and "/" not in kind and kind not in ("Pod", "Container", "PersistentVolumeClaim"):
            errors.append(invalid(f"{place}.type", kind, "must be a standard limit type or fully qualified"))
        _ordered(item, place, errors)


_ORDER: Final = (
    ("min", "max", "min value {low} is greater than max value {high}"),
    ("defaultRequest", "default", "default request value {low} is greater than default limit value {high}"),
    ("defaultRequest", "max", "default request value {low} is greater than max value {high}"),
    ("default", "max", "default value {low} is greater than max value {high}"),
    ("min", "defaultRequest", "min value {low} is greater than default request value {high}"),
    ("min", "default", "min value {low} is greater than default value {high}"),
)


def _ordered(item: JSONObject, path: str, errors: Errors) -> None:
    for low_key, high_key, text in _ORDER:
        for name, value in (item.get(low_key) or {}).items():
            other = (item.get(high_key) or {}).get(name)
            low, high = try_quantity(str(value)), try_quantity(str(other))
            if other is None or low is None or high is None or low.compare(high) <= 0:
                continue
            place = low_key if low_key != "min" or high_key == "max" else high_key
            shown = str(other) if (low_key, high_key) == ("min", "defaultRequest") else str(value)
            errors.append(invalid(f"{path}.{place}[{name}]", shown, text.format(low=value, high=other)))


def priority_class(body: JSON, path: str, errors: Errors) -> None:
    """Check a PriorityClass."""
    name = str((body.get("metadata") or {}).get("name", ""))
    value = body.get("value", 0)
    if name.startswith("system-") and (name, value) not in _SYSTEM_CLASSES:
        what = (
            "priority class names with 'system-' prefix are reserved for system use only. error: "
            f"{name} is not a known system priority class"
        )
        errors.append(forbidden("metadata.name", what))
    if value > 1_000_000_000 and not name.startswith("system-"):
        errors.append(forbidden("value", "maximum allowed value of a user defined priority is 1000000000"))
    policy = body.get("preemptionPolicy")
    if policy is not None and policy not in ("PreemptLowerPriority", "Never"):
        errors.append(unsupported("preemptionPolicy", policy, ("PreemptLowerPriority", "Never")))


_SYSTEM_CLASSES: Final = (("system-node-critical", 2000001000), ("system-cluster-critical", 2000000000))


def priority_class_update(body: JSONObject, old: JSONObject, subresource: str, errors: Errors) -> bool:
    """Check that value and preemption policy did not change."""
    if body.get("value", 0) != old.get("value", 0):
        errors.append(forbidden("value", "may not be changed in an update."))
    immutable(body.get("preemptionPolicy"), old.get("preemptionPolicy"), "preemptionPolicy", errors)
    return True


def disruption_budget(body: JSON, path: str, errors: Errors) -> None:
    """Check a PodDisruptionBudget."""
    spec = body.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        shown = go_struct(spec, ("MinAvailable", "Selector", "MaxUnavailable", "UnhealthyPodEvictionPolicy"))
        what = "minAvailable and maxUnavailable cannot be both set"
        errors.append(FieldError("spec", "Invalid value", what, shown))
    for key in ("minAvailable", "maxUnavailable"):
        if spec.get(key) is not None:
            _share(spec[key], f"spec.{key}", errors)
    label_selector(spec.get("selector"), "spec.selector", errors)
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in ("AlwaysAllow", "IfHealthyBudget"):
        errors.append(unsupported("spec.unhealthyPodEvictionPolicy", policy, ("AlwaysAllow", "IfHealthyBudget")))


def _share(value: JSON, path: str, errors: Errors) -> None:
    if type(value) is int:
        not_negative(value, path, errors)
        return
    text = str(value)
    if not text.endswith("%") or not text[:-1].isdecimal():
        what = (
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex "
            "used for validation is '[0-9]+%')"
        )
        errors.append(invalid(path, value, what))
    elif int(text[:-1]) > 100:
        errors.append(invalid(path, value, "must not be greater than 100%"))


_METRICS: Final[Mapping[str, str]] = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}


def autoscaler(body: JSON, path: str, errors: Errors) -> None:
    """Check a HorizontalPodAutoscaler."""
    spec = body.get("spec") or {}
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if least is not None and least < 1:
        errors.append(invalid("spec.minReplicas", least, "must be greater than or equal to 1"))
    if most < 1:
        errors.append(invalid("spec.maxReplicas", most, "must be greater than 0"))
    if least is not None and most < least:
        errors.append(invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
    target = spec.get("scaleTargetRef") or {}
    for key in ("kind", "name"):
        if not target.get(key):
            errors.append(required(f"spec.scaleTargetRef.{key}"))
        else:
            form(path_segment_problems)(target[key], f"spec.scaleTargetRef.{key}", errors)
    if "/" not in str(target.get("apiVersion") or "") and target.get("apiVersion") != "v1":
        version = target.get("apiVersion") or ""
        errors.append(invalid("spec.scaleTargetRef.apiVersion", version, "apiVersion must specify API group"))
    metrics = spec.get("metrics") or ()
    for index, metric in enumerate(metrics):
        _metric(metric, f"spec.metrics[{index}]", errors)
    if least == 0 and not any(metric.get("type") in ("Object", "External") for metric in metrics):
        what = "must specify at least one Object or External metric to support scaling to zero replicas"
        errors.append(forbidden("spec.metrics", what))


def _metric(metric: JSONObject, path: str, errors: Errors) -> None:
    kind = metric.get("type") or ""
    if not kind:
        errors.append(required(f"{path}.type", "must specify a metric source type"))
    if kind not in _METRICS:
        errors.append(unsupported(f"{path}.type", kind, tuple(_METRICS)))
        return
    own = _METRICS[kind]
    if metric.get(own) is None:
        errors.append(required(f"{path}.{own}", "must populate information for the given metric source"))
    elif own == "resource":
        _resource_metric(metric[own], f"{path}.{own}", errors)
    for other in _METRICS.values():
        if other != own and metric.get(other) is not None:
            errors.append(forbidden(f"{path}.{other}", "must populate the given metric source only"))


def _resource_metric(value: JSONObject, path: str, errors: Errors) -> None:
    if not value.get("name"):
        errors.append(required(f"{path}.name", "must specify a resource name"))
    target = value.get("target") or {}
    kind, place = target.get("type") or "", f"{path}.target"
    if not kind:
        errors.append(required(f"{place}.type", "must specify a metric target type"))
    if kind not in ("Utilization", "Value", "AverageValue"):
        errors.append(invalid(f"{place}.type", kind, "must be either Utilization, Value, or AverageValue"))
    share, amount = target.get("averageUtilization"), target.get("averageValue")
    if share is not None and share < 1:
        errors.append(invalid(f"{place}.averageUtilization", share, "must be greater than 0"))
    if share is None and amount is None:
        what = "must set either a target raw value or a target utilization"
        errors.append(required(f"{place}.averageUtilization", what))
    if share is not None and amount is not None:
        what = "may not set both a target raw value and a target utilization"
        errors.append(forbidden(f"{place}.averageValue", what))


def signing_request(body: JSON, path: str, errors: Errors) -> None:
    """Check a CertificateSigningRequest."""
    spec = body.get("spec") or {}
    request = spec.get("request")
    if not request or b"BEGIN CERTIFICATE REQUEST" not in base64.b64decode(request):
        errors.append(invalid("spec.request", request, "PEM block type must be CERTIFICATE REQUEST"))
    if not spec.get("usages"):
        errors.append(required("spec.usages"))
    if not spec.get("signerName"):
        errors.append(required("spec.signerName"))
    elif "/" not in str(spec["signerName"]):
        what = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        errors.append(invalid("spec.signerName", spec["signerName"], what))


def endpoints(body: JSON, path: str, errors: Errors) -> None:
    """Check Endpoints."""
    for index, subset in enumerate(body.get("subsets") or ()):
        place = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            errors.append(required(place, "must specify `addresses` or `notReadyAddresses`"))
        for key in ("addresses", "notReadyAddresses"):
            for number, item in enumerate(subset.get(key) or ()):
                address = str(item.get("ip") or "")
                problems = address_problems(address)
                errors.extend(invalid(f"{place}.{key}[{number}].ip", address, problem) for problem in problems)


def endpoint_slice(body: JSON, path: str, errors: Errors) -> None:
    """Check an EndpointSlice."""
    kind = body.get("addressType") or ""
    if not kind:
        errors.append(required("addressType"))
    elif kind not in ("FQDN", "IPv4", "IPv6"):
        errors.append(unsupported("addressType", kind, ("FQDN", "IPv4", "IPv6")))
    for index, item in enumerate(body.get("endpoints") or ()):
        if not item.get("addresses"):
            errors.append(required(f"endpoints[{index}].addresses", "must contain at least 1 address"))


def runtime_class(body: JSON, path: str, errors: Errors) -> None:
    """Check a RuntimeClass."""
    handler = str(body.get("handler") or "")
    errors.extend(invalid("handler", handler, problem) for problem in dns_label_problems(handler))


def lease(body: JSON, path: str, errors: Errors) -> None:
    """Check a Lease."""
    spec = body.get("spec") or {}
    for key in ("leaseDurationSeconds", "leaseTransitions"):
        value = spec.get(key)
        if key == "leaseDurationSeconds" and value is not None and value <= 0:
            errors.append(invalid(f"spec.{key}", value, "must be greater than 0"))
        elif value is not None and value < 0:
            errors.append(invalid(f"spec.{key}", value, "must be greater than or equal to 0"))
