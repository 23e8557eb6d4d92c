"""Checks of kinds with few rules: ConfigMaps, Secrets, priority classes, disruption budgets, autoscalers."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final

from kubesandbox.objects.fielderrors import forbidden, go_struct, invalid, required, too_long, unsupported
from kubesandbox.validation.check import Errors, form, immutable, label_selector, not_negative
from kubesandbox.validation.names import (
    config_key_problems,
    path_segment_problems,
)
from pyverno.errors import DocumentError
from pyverno.kube.json import JSON, JSONObject, decode, equal
from pyverno.kube.status import FieldError

__all__ = [
    "autoscaler",
    "config_map",
    "config_map_update",
    "disruption_budget",
    "priority_class",
    "priority_class_update",
    "secret",
    "secret_update",
]

_MAX_BYTES: Final = 1024 * 1024
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
    if size > _MAX_BYTES:
        errors.append(too_long("[]", _MAX_BYTES))


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
    if sum(len(str(value)) * 3 // 4 for value in data.values()) > _MAX_BYTES:
        errors.append(too_long("data", _MAX_BYTES))
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
