"""Containers of Pods: names, images, ports, environment, mounts, probes, resources."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from kubesandbox.objects.fielderrors import duplicate, forbidden, invalid, not_found, required, unsupported
from kubesandbox.validation.check import (
    Check,
    Errors,
    all_of,
    at_least,
    each,
    form,
    needed,
    not_negative,
    one_of,
    port_number,
    port_or_name,
    struct,
)
from kubesandbox.validation.names import (
    config_key_problems,
    dns_label_problems,
    dns_subdomain_problems,
    env_name_problems,
    port_name_problems,
)
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.labelsyntax import label_key_problems
from pyverno.kube.quantity import try_quantity

__all__ = [
    "PROFILES",
    "container_errors",
    "containers_errors",
    "ephemeral_errors",
    "init_container_errors",
    "resource_errors",
]

_STANDARD: Final = ("cpu", "memory", "ephemeral-storage")
_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


_PROTOCOLS: Final = needed(one_of("SCTP", "TCP", "UDP"))
_PORT_NUMBERS: Final[Check] = struct(
    {"containerPort": needed(port_number), "hostPort": port_number, "protocol": _PROTOCOLS}
)


def _ports(value: JSON, path: str, errors: Errors) -> None:
    names: set[str] = set()
    for index, port in enumerate(value):
        place, name = f"{path}[{index}]", str(port.get("name") or "")
        problems = port_name_problems(name) if name else ()
        if problems:
            errors.extend(invalid(f"{place}.name", name, problem) for problem in problems)
        elif name and name in names:
            errors.append(duplicate(f"{place}.name", name))
        elif name:
            names.add(name)
        _PORT_NUMBERS(port, place, errors)


def _key_reference(value: JSON, path: str, errors: Errors) -> None:
    name = str(value.get("name") or "")
    errors.extend(invalid(f"{path}.name", name, problem) for problem in dns_subdomain_problems(name))
    if not value.get("key"):
        errors.append(required(f"{path}.key"))
    else:
        form(config_key_problems)(value["key"], f"{path}.key", errors)


_SOURCE: Final[Check] = struct(
    {
        "configMapKeyRef": _key_reference,
        "secretKeyRef": _key_reference,
    }
)


def _variable(value: JSON, path: str, errors: Errors) -> None:
    name = str(value.get("name") or "")
    if not name:
        errors.append(required(f"{path}.name"))
    else:
        form(env_name_problems)(name, f"{path}.name", errors)
    source = value.get("valueFrom")
    if source is None:
        return
    place = f"{path}.valueFrom"
    _SOURCE(source, place, errors)
    found = [key for key in _SOURCES if source.get(key) is not None]
    if not found:
        what = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        errors.append(invalid(place, "", what))
    elif value.get("value"):
        errors.append(invalid(place, "", "may not be specified when `value` is not empty"))
    elif len(found) > 1:
        errors.append(invalid(place, "", "may not have more than one field specified at a time"))


def _variables_from(value: JSON, path: str, errors: Errors) -> None:
    for index, item in enumerate(value):
        if item.get("prefix"):
            form(env_name_problems)(item["prefix"], f"{path}[{index}].prefix", errors)
        found = [key for key in ("configMapRef", "secretRef") if item.get(key) is not None]
        for key in found:
            place = f"{path}[{index}].{key}.name"
            if not item[key].get("name"):
                errors.append(required(place))
            else:
                form(dns_subdomain_problems)(item[key]["name"], place, errors)
        if not found:
            errors.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(found) > 1:
            errors.append(invalid(path, "", "may not have more than one field specified at a time"))


def _mounts(container: JSONObject, volumes: Collection[str], path: str, errors: Errors) -> None:
    places: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        place, name, target = f"{path}[{index}]", mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            errors.append(required(f"{place}.name"))
        if name not in volumes:
            errors.append(not_found(f"{place}.name", name))
        if not target:
            errors.append(required(f"{place}.mountPath"))
        if target in places:
            errors.append(invalid(f"{place}.mountPath", target, "must be unique"))
        places.add(target)


def _exec(value: JSON, path: str, errors: Errors) -> None:
    if not value.get("command"):
        errors.append(required(f"{path}.command"))


_HANDLERS: Final[Mapping[str, Check]] = {
    "exec": _exec,
    "httpGet": struct({"path": needed(), "port": port_or_name, "scheme": one_of("HTTP", "HTTPS")}),
    "tcpSocket": struct({"port": port_or_name}),
    "grpc": struct({"port": port_number}),
    "sleep": struct({}),
}


def _handler(value: JSON, path: str, errors: Errors) -> None:
    found = [key for key in _HANDLERS if value.get(key) is not None]
    for key in found[:1]:
        _HANDLERS[key](value[key], f"{path}.{key}", errors)
    for key in found[1:]:
        errors.append(forbidden(f"{path}.{key}", "may not specify more than 1 handler type"))
    if not found:
        errors.append(required(path, "must specify a handler type"))


_TIMES: Final[Check] = struct(
    dict.fromkeys(
        ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"), not_negative
    )
)
_GRACE: Final[Check] = struct({"terminationGracePeriodSeconds": at_least(1, "must be greater than 0")})
_PROBE: Final[Check] = all_of(_handler, _TIMES, _GRACE)


def _must_be_one(value: JSON, path: str, errors: Errors) -> None:
    if value.get("successThreshold", 1) != 1:
        errors.append(invalid(f"{path}.successThreshold", value["successThreshold"], "must be 1"))


def _no_grace(value: JSON, path: str, errors: Errors) -> None:
    grace = value.get("terminationGracePeriodSeconds")
    if grace is not None:
        errors.append(invalid(f"{path}.terminationGracePeriodSeconds", grace, "must not be set for readinessProbes"))


_PROBES: Final[Check] = struct(
    {
        "lifecycle": struct({"preStop": _handler, "postStart": _handler}),
        "livenessProbe": all_of(_PROBE, _must_be_one),
        "readinessProbe": all_of(_PROBE, _no_grace),
        "startupProbe": all_of(_PROBE, _must_be_one),
    }
)


def _identity(value: JSON, path: str, errors: Errors) -> None:
    if type(value) is int and not 0 <= value <= 2**31 - 1:
        errors.append(invalid(path, value, "must be between 0 and 2147483647, inclusive"))


_PROFILE_TYPES: Final[Check] = one_of("Localhost", "RuntimeDefault", "Unconfined")
PROFILES: Final[Mapping[str, Check]] = {
    name: struct({"type": needed(_PROFILE_TYPES, f"type is required when {name} is set")})
    for name in ("seccompProfile", "appArmorProfile")
}
"""Fields of the security contexts of both containers and Pods."""

_SECURITY: Final[Check] = struct(
    {
        "runAsUser": _identity,
        "runAsGroup": _identity,
        **PROFILES,
    }
)


def _resource_name(name: str, path: str, errors: Errors) -> None:
    problems = label_key_problems(name)
    if problems:
        errors.extend(invalid(path, name, problem) for problem in problems)
    elif "/" not in name and name not in _STANDARD and not name.startswith("hugepages-"):
        if name not in ("storage", "pods", "services"):
            errors.append(invalid(path, name, "must be a standard resource type or fully qualified"))
        errors.append(invalid(path, name, "must be a standard resource for containers"))


def resource_errors(value: JSON, path: str, errors: Errors) -> None:
    """Check the resources of a container: known names, no negative amounts, requests within limits."""
    limits, requests = value.get("limits") or {}, value.get("requests") or {}
    for kind, quantities in (("limits", limits), ("requests", requests)):
        for name, text in quantities.items():
            place = f"{path}.{kind}[{name}]"
            _resource_name(name, place, errors)
            amount = try_quantity(str(text))
            if amount is not None and amount.sign() < 0:
                errors.append(invalid(place, str(text), "must be greater than or equal to 0"))
            if kind == "requests":
                _within_limit(name, str(text), limits, path, errors)


def _within_limit(name: str, text: str, limits: JSONObject, path: str, errors: Errors) -> None:
    flexible = "/" not in name and not name.startswith("hugepages-")
    limit = limits.get(name)
    if limit is None:
        if not flexible:
            errors.append(required(f"{path}.limits", "Limit must be set for non overcommitable resources"))
        return
    asked, most = try_quantity(text), try_quantity(str(limit))
    if asked is None or most is None:
        return
    order = asked.compare(most)
    if order and not flexible:
        errors.append(invalid(f"{path}.requests", text, f"must be equal to {name} limit of {limit}"))
    elif order > 0:
        errors.append(invalid(f"{path}.requests", text, f"must be less than or equal to {name} limit of {limit}"))


_POLICIES: Final[Check] = one_of("Always", "IfNotPresent", "Never")
_COMMON_BEFORE_MOUNTS: Final[Check] = struct(
    {
        "name": needed(form(dns_label_problems)),
        "image": needed(),
        "terminationMessagePolicy": needed(one_of("File", "FallbackToLogsOnError")),
        "ports": _ports,
        "env": each(_variable),
        "envFrom": _variables_from,
    }
)
_COMMON_AFTER_MOUNTS: Final[Check] = struct(
    {"imagePullPolicy": needed(_POLICIES), "resources": resource_errors, "securityContext": _SECURITY}
)


def container_errors(container: JSONObject, volumes: Collection[str], path: str, errors: Errors) -> None:
    """Check what all kinds of containers have."""
    _COMMON_BEFORE_MOUNTS(container, path, errors)
    if container.get("volumeMounts"):
        _mounts(container, volumes, f"{path}.volumeMounts", errors)
    _COMMON_AFTER_MOUNTS(container, path, errors)


def containers_errors(spec: JSONObject, volumes: Collection[str], path: str, errors: Errors) -> None:
    """Check the containers of a Pod."""
    containers = spec.get("containers")
    if not containers:
        errors.append(required(path))
        return
    names: set[str] = set()
    for index, container in enumerate(containers):
        place = f"{path}[{index}]"
        container_errors(container, volumes, place, errors)
        _unique_name(container, names, place, errors)
        _PROBES(container, place, errors)
        policy = container.get("restartPolicy")
        if policy is not None and policy not in ("Always", "Never", "OnFailure"):
            errors.append(unsupported(f"{place}.restartPolicy", policy, ("Always", "Never", "OnFailure")))


def _unique_name(container: JSONObject, names: set[str], path: str, errors: Errors) -> None:
    name = container.get("name") or ""
    if name in names:
        errors.append(duplicate(f"{path}.name", name))
    elif name:
        names.add(name)


def init_container_errors(spec: JSONObject, volumes: Collection[str], path: str, errors: Errors) -> None:
    """Check containers that run before the others, and sidecars."""
    names = {container.get("name") or "" for container in spec.get("containers") or ()}
    for index, container in enumerate(spec.get("initContainers") or ()):
        place = f"{path}[{index}]"
        container_errors(container, volumes, place, errors)
        policy = container.get("restartPolicy")
        if policy is not None and policy not in ("Always", "Never", "OnFailure"):
            errors.append(unsupported(f"{place}.restartPolicy", policy, ("Always", "Never", "OnFailure")))
        _unique_name(container, names, place, errors)
        if policy == "Always":
            _PROBES(container, place, errors)
            continue
        for key in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
            if container.get(key) is not None:
                what = "may not be set for init containers without restartPolicy=Always"
                errors.append(forbidden(f"{place}.{key}", what))


_NOT_EPHEMERAL: Final = (
    "ports",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
    "resources",
    "resizePolicy",
)


def ephemeral_errors(spec: JSONObject, volumes: Collection[str], path: str, errors: Errors) -> None:
    """Check containers that were added to a running Pod."""
    others = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    targets = {container.get("name") for container in others}
    names: set[str] = {str(name) for name in targets if name}
    for index, container in enumerate(spec.get("ephemeralContainers") or ()):
        place = f"{path}[{index}]"
        container_errors(container, volumes, place, errors)
        _unique_name(container, names, place, errors)
        target = container.get("targetContainerName")
        if target and target not in targets:
            errors.append(not_found(f"{place}.targetContainerName", target))
        for key in _NOT_EPHEMERAL:
            if container.get(key):
                errors.append(forbidden(f"{place}.{key}", "cannot be set for an Ephemeral Container"))
