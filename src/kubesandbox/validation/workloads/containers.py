"""Containers of Pods: names, images, ports, environment, mounts, probes, resources.

This module must never know the Pod around them, but for the volumes that they may mount.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from kubesandbox.objects.fielderrors import duplicate, forbidden, go_struct, invalid, not_found, required, unsupported
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
from pyverno.kube.status import FieldError

__all__ = ["container_errors", "containers_errors", "ephemeral_errors", "init_container_errors", "resource_errors"]

_STANDARD: Final = ("cpu", "memory", "ephemeral-storage")
_HEADER: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")
_ENV_FIELDS: Final = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_ENV_RESOURCES: Final = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
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


def _field_reference(value: JSON, path: str, errors: Errors) -> None:
    field = str(value.get("fieldPath") or "")
    if not value.get("apiVersion"):
        errors.append(required(f"{path}.apiVersion"))
        return
    if not field:
        errors.append(required(f"{path}.fieldPath"))
        return
    base, bracket, _ = field.partition("[")
    if bracket:
        if base not in ("metadata.labels", "metadata.annotations"):
            errors.append(invalid(path, base, "does not support subscript"))
    elif not _is_field(field):
        errors.append(
            invalid(f"{path}.fieldPath", field, f"error converting fieldPath: field label not supported: {field}")
        )
    elif field not in _ENV_FIELDS:
        errors.append(unsupported(f"{path}.fieldPath", field, _ENV_FIELDS))


def _is_field(path: str) -> bool:
    return path in _ENV_FIELDS or path in (
        "metadata.labels",
        "metadata.annotations",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.hostNetwork",
        "status.phase",
        "status.nominatedNodeName",
    )


def _resource_reference(value: JSON, path: str, errors: Errors) -> None:
    resource = str(value.get("resource") or "")
    if not resource:
        errors.append(required(f"{path}.resource"))
    elif resource not in _ENV_RESOURCES and not resource.startswith(("limits.hugepages-", "requests.hugepages-")):
        errors.append(unsupported(f"{path}.resource", resource, _ENV_RESOURCES))


_SOURCE: Final[Check] = struct(
    {
        "fieldRef": _field_reference,
        "resourceFieldRef": _resource_reference,
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
    devices = {device.get("name") for device in container.get("volumeDevices") or ()}
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
        if name in devices:
            errors.append(invalid(f"{place}.name", name, "must not already exist in volumeDevices"))
        for key in ("subPath", "subPathExpr"):
            inner = str(mount.get(key) or "")
            if inner.startswith("/"):
                errors.append(invalid(f"{path}.{key}", inner, "must be a relative path"))
            if ".." in inner.split("/"):
                errors.append(invalid(f"{path}.{key}", inner, "must not contain '..'"))
        if mount.get("subPath") and mount.get("subPathExpr"):
            what = "subPathExpr and subPath are mutually exclusive"
            errors.append(invalid(f"{place}.subPathExpr", mount["subPathExpr"], what))
        propagation = mount.get("mountPropagation")
        if propagation is not None:
            one_of("Bidirectional", "HostToContainer", "None")(propagation, f"{path}.mountPropagation", errors)


def _image(value: JSON, path: str, errors: Errors) -> None:
    if type(value) is str and value != value.strip():
        errors.append(invalid(path, value, "must not have leading or trailing whitespace"))


def _resize_policies(value: JSON, path: str, errors: Errors) -> None:
    seen: set[str] = set()
    for item in value:
        name = item.get("resourceName") or ""
        if name in seen:
            errors.append(duplicate(path, name))
        seen.add(name)
        one_of("cpu", "memory")(name, path, errors)
        one_of("NotRequired", "RestartContainer")(item.get("restartPolicy") or "", path, errors)


def _exec(value: JSON, path: str, errors: Errors) -> None:
    if not value.get("command"):
        errors.append(required(f"{path}.command"))


def _headers(value: JSON, path: str, errors: Errors) -> None:
    what = (
        "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for "
        "validation is '[-A-Za-z0-9]+')"
    )
    for header in value:
        name = str(header.get("name") or "")
        if not name or not _HEADER.issuperset(name):
            errors.append(invalid(path, name, what))


_HANDLERS: Final[Mapping[str, Check]] = {
    "exec": _exec,
    "httpGet": struct(
        {"path": needed(), "port": port_or_name, "scheme": one_of("HTTP", "HTTPS"), "httpHeaders": _headers}
    ),
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


def _seccomp(value: JSON, path: str, errors: Errors) -> None:
    kind, profile = value.get("type"), value.get("localhostProfile")
    if kind == "Localhost":
        if not profile:
            what = "must be set when seccomp type is Localhost"
            errors.append(required(f"{path}.localhostProfile", what))
    elif profile is not None:
        what = "can only be set when seccomp type is Localhost"
        errors.append(invalid(f"{path}.localhostProfile", profile, what))
    if not kind:
        errors.append(required(f"{path}.type", "type is required when seccompProfile is set"))
    elif kind not in ("Localhost", "RuntimeDefault", "Unconfined"):
        errors.append(unsupported(f"{path}.type", kind, ("Localhost", "RuntimeDefault", "Unconfined")))


_SECURITY_FIELDS: Final = (
    "Capabilities",
    "Privileged",
    "SELinuxOptions",
    "WindowsOptions",
    "RunAsUser",
    "RunAsGroup",
    "RunAsNonRoot",
    "ReadOnlyRootFilesystem",
    "AllowPrivilegeEscalation",
    "ProcMount",
    "SeccompProfile",
    "AppArmorProfile",
)


def _escalation(value: JSON, path: str, errors: Errors) -> None:
    if value.get("allowPrivilegeEscalation") is not False:
        return
    if value.get("privileged"):
        what = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        errors.append(FieldError(path, "Invalid value", what, go_struct(value, _SECURITY_FIELDS)))
    if "CAP_SYS_ADMIN" in ((value.get("capabilities") or {}).get("add") or ()):
        what = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
        errors.append(FieldError(path, "Invalid value", what, go_struct(value, _SECURITY_FIELDS)))


_SECURITY: Final[Check] = struct(
    {
        "runAsUser": _identity,
        "runAsGroup": _identity,
        "procMount": one_of("Default", "Unmasked"),
        "seccompProfile": _seccomp,
    },
    _escalation,
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
    """Check what a container asks for: known names, no negative amounts, requests within limits."""
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
        "image": needed(_image),
        "terminationMessagePolicy": needed(one_of("File", "FallbackToLogsOnError")),
        "resizePolicy": _resize_policies,
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
    _host_ports(containers, path, errors)


def _unique_name(container: JSONObject, names: set[str], path: str, errors: Errors) -> None:
    name = container.get("name") or ""
    if name in names:
        errors.append(duplicate(f"{path}.name", name))
    elif name:
        names.add(name)


def _host_ports(containers: list[JSONObject], path: str, errors: Errors) -> None:
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for number, port in enumerate(container.get("ports") or ()):
            if port.get("hostPort"):
                text = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
                if text in taken:
                    errors.append(duplicate(f"{path}[{index}].ports[{number}].hostPort", text))
                taken.add(text)


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
