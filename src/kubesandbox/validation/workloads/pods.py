"""Pods and their templates.

`pod_spec` judges what stands in `spec`; `pod_update` what may change afterwards. This module must never know who made a
Pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubesandbox.objects.fielderrors import duplicate, forbidden, invalid, required, unsupported
from kubesandbox.validation.check import (
    Check,
    Errors,
    all_of,
    between,
    each,
    form,
    label_selector,
    labels,
    needed,
    one_of,
    struct,
    unique,
)
from kubesandbox.validation.names import address_problems, dns_label_problems, dns_subdomain_problems
from kubesandbox.validation.workloads.containers import containers_errors, ephemeral_errors, init_container_errors
from kubesandbox.validation.workloads.volumes import volumes_errors
from pyverno.kube.json import JSON, JSONObject, equal
from pyverno.kube.labelsyntax import label_key_problems, label_value_problems
from pyverno.regex import regex

__all__ = ["pod", "pod_spec", "pod_template", "pod_update"]

_INT32_MAX: Final = 2**31 - 1
_UPDATABLE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_SYSTEM_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")


def _toleration(value: JSON, path: str, errors: Errors) -> None:
    key, operator, effect = value.get("key") or "", value.get("operator") or "", value.get("effect") or ""
    if key:
        errors.extend(invalid(f"{path}.key", key, problem) for problem in label_key_problems(key))
    elif operator != "Exists":
        what = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        errors.append(invalid(f"{path}.operator", operator, what))
    if value.get("tolerationSeconds") is not None and effect != "NoExecute":
        what = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        errors.append(invalid(f"{path}.effect", effect, what))
    text = value.get("value") or ""
    if operator in ("", "Equal"):
        problems = label_value_problems(text)
        if problems:
            errors.append(invalid(f"{path}.operator", text, ";".join(problems)))
    elif operator == "Exists":
        if text:
            errors.append(invalid(f"{path}.operator", text, "value must be empty when `operator` is 'Exists'"))
    else:
        errors.append(unsupported(f"{path}.operator", operator, ("Equal", "Exists")))
    if effect and effect not in ("NoExecute", "NoSchedule", "PreferNoSchedule"):
        errors.append(unsupported(f"{path}.effect", effect, ("NoSchedule", "PreferNoSchedule", "NoExecute")))


def _node_term(value: JSON, path: str, errors: Errors) -> None:
    for index, item in enumerate(value.get("matchExpressions") or ()):
        place, operator, values = f"{path}.matchExpressions[{index}]", item.get("operator"), item.get("values") or ()
        if operator in ("In", "NotIn"):
            if not values:
                what = "must be specified when `operator` is 'In' or 'NotIn'"
                errors.append(required(f"{place}.values", what))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                what = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                errors.append(forbidden(f"{place}.values", what))
        elif operator in ("Gt", "Lt"):
            if len(values) != 1:
                what = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                errors.append(required(f"{place}.values", what))
        else:
            errors.append(invalid(f"{place}.operator", operator or "", "not a valid selector operator"))
        key = str(item.get("key") or "")
        errors.extend(invalid(f"{place}.key", key, problem) for problem in label_key_problems(key))


def _node_selector(value: JSON, path: str, errors: Errors) -> None:
    terms = value.get("nodeSelectorTerms")
    if not terms:
        errors.append(required(f"{path}.nodeSelectorTerms", "must have at least one node selector term"))
        return
    for index, term in enumerate(terms):
        _node_term(term, f"{path}.nodeSelectorTerms[{index}]", errors)


def _topology_key(value: JSON, path: str, errors: Errors) -> None:
    errors.extend(invalid(path, value, problem) for problem in label_key_problems(str(value)))


def _affinity_term(value: JSON, path: str, errors: Errors) -> None:
    label_selector(value.get("labelSelector"), f"{path}.labelSelector", errors)
    key = value.get("topologyKey")
    if not key:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    _topology_key(key or "", f"{path}.topologyKey", errors)


_WEIGHT: Final[Check] = between(1, 100)
_WEIGHTED: Final[Check] = each(struct({"weight": _WEIGHT, "podAffinityTerm": _affinity_term}))
_POD_AFFINITY: Final[Check] = struct(
    {
        "requiredDuringSchedulingIgnoredDuringExecution": each(_affinity_term),
        "preferredDuringSchedulingIgnoredDuringExecution": _WEIGHTED,
    }
)


def _preferred_node(value: JSON, path: str, errors: Errors) -> None:
    weight = value.get("weight", 0)
    if not 1 <= weight <= 100:
        errors.append(invalid(f"{path}.weight", weight, "must be in the range 1-100"))
    _node_term(value.get("preference") or {}, f"{path}.preference", errors)


_AFFINITY: Final[Check] = struct(
    {
        "nodeAffinity": struct(
            {
                "requiredDuringSchedulingIgnoredDuringExecution": _node_selector,
                "preferredDuringSchedulingIgnoredDuringExecution": each(_preferred_node),
            }
        ),
        "podAffinity": _POD_AFFINITY,
        "podAntiAffinity": _POD_AFFINITY,
    }
)


def _spread(value: JSON, path: str, errors: Errors) -> None:
    if not (value.get("maxSkew") or 0) > 0:
        errors.append(invalid(f"{path}.maxSkew", value.get("maxSkew", 0), "must be greater than zero"))
    if not value.get("topologyKey"):
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    else:
        _topology_key(value["topologyKey"], f"{path}.topologyKey", errors)
    one_of("DoNotSchedule", "ScheduleAnyway")(value.get("whenUnsatisfiable", ""), f"{path}.whenUnsatisfiable", errors)
    label_selector(value.get("labelSelector"), f"{path}.labelSelector", errors)


def _spreads(value: JSON, path: str, errors: Errors) -> None:
    seen: set[str] = set()
    for index, item in enumerate(value):
        _spread(item, f"{path}[{index}]", errors)
        pair = f"{{{item.get('topologyKey', '')}, {item.get('whenUnsatisfiable', '')}}}"
        if pair in seen:
            errors.append(duplicate(f"{path}[{index}].{{topologyKey, whenUnsatisfiable}}", pair))
        seen.add(pair)


_SYSCTL_SHOWN: Final = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_SYSCTL: Final = regex(_SYSCTL_SHOWN)


def _sysctls(value: JSON, path: str, errors: Errors) -> None:
    names: set[str] = set()
    for index, item in enumerate(value):
        name = item.get("name") or ""
        if not name:
            errors.append(required(f"{path}[{index}].name"))
        elif not _SYSCTL.fullmatch(name):
            what = f"must have at most 253 characters and match regex {_SYSCTL_SHOWN}"
            errors.append(invalid(f"{path}[{index}].name", name, what))
        elif name in names:
            errors.append(duplicate(f"{path}[{index}].name", name))
        names.add(name)


def _group(value: JSON, path: str, errors: Errors) -> None:
    if type(value) is int and not 0 <= value <= _INT32_MAX:
        errors.append(invalid(path, value, f"must be between 0 and {_INT32_MAX}, inclusive"))


def _seccomp(value: JSON, path: str, errors: Errors) -> None:
    kinds = ("Localhost", "RuntimeDefault", "Unconfined")
    kind = value.get("type") or ""
    if kind == "Localhost" and not value.get("localhostProfile"):
        errors.append(required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost"))
    elif kind != "Localhost" and value.get("localhostProfile") is not None:
        what = "can only be set when seccomp type is Localhost"
        errors.append(invalid(f"{path}.localhostProfile", value["localhostProfile"], what))
    if not kind:
        errors.append(required(f"{path}.type", "type is required when seccompProfile is set"))
    elif kind not in kinds:
        errors.append(unsupported(f"{path}.type", kind, kinds))


_SECURITY: Final[Check] = struct(
    {
        "fsGroup": _group,
        "supplementalGroups": each(_group),
        "runAsUser": _group,
        "runAsGroup": _group,
        "sysctls": _sysctls,
        "fsGroupChangePolicy": one_of("Always", "OnRootMismatch"),
        "seccompProfile": _seccomp,
    }
)


def _secrets(value: JSON, path: str, errors: Errors) -> None:
    for index, item in enumerate(value):
        extra = {key: text for key, text in item.items() if key != "name"}
        if extra:
            errors.append(invalid(f"{path}[{index}]", item, "only name may be set"))


def _host_alias(value: JSON, path: str, errors: Errors) -> None:
    for problem in address_problems(value.get("ip") or ""):
        errors.append(invalid(f"{path}.ip", value.get("ip") or "", problem))
    for index, name in enumerate(value.get("hostnames") or ()):
        form(dns_subdomain_problems)(name, f"{path}.hostnames[{index}]", errors)


def _readiness_gate(value: JSON, path: str, errors: Errors) -> None:
    kind = str(value.get("conditionType") or "")
    errors.extend(invalid(f"{path}.conditionType", kind, problem) for problem in label_key_problems(kind))


def _scheduling_gate(value: JSON, path: str, errors: Errors) -> None:
    name = str(value.get("name") or "")
    errors.extend(invalid(path, name, problem) for problem in label_key_problems(name))


def _system(value: JSON, path: str, errors: Errors) -> None:
    name = value.get("name") or ""
    if not name:
        errors.append(required(f"{path}.name"))
    elif name not in ("linux", "windows"):
        errors.append(unsupported(path, name, ("linux", "windows")))


_TAIL: Final[Check] = struct(
    {
        "restartPolicy": needed(one_of("Always", "OnFailure", "Never")),
        "dnsPolicy": needed(one_of(*_SYSTEM_POLICIES)),
        "nodeSelector": labels,
        "securityContext": _SECURITY,
        "imagePullSecrets": _secrets,
        "affinity": _AFFINITY,
        "schedulingGates": all_of(each(_scheduling_gate), unique("name")),
        "topologySpreadConstraints": _spreads,
        "serviceAccountName": form(dns_subdomain_problems),
        "nodeName": form(dns_subdomain_problems),
        "activeDeadlineSeconds": between(1, _INT32_MAX),
        "hostname": form(dns_label_problems),
        "subdomain": form(dns_label_problems),
        "tolerations": each(_toleration),
        "hostAliases": each(_host_alias),
        "priorityClassName": form(dns_subdomain_problems),
        "runtimeClassName": form(dns_subdomain_problems),
        "preemptionPolicy": one_of("PreemptLowerPriority", "Never"),
        "readinessGates": each(_readiness_gate),
        "os": _system,
    }
)


def _dns(value: JSONObject, path: str, errors: Errors) -> None:
    if value.get("dnsPolicy") == "None":
        config = value.get("dnsConfig")
        what = "must provide `dnsConfig` when `dnsPolicy` is None"
        if config is None:
            errors.append(required(f"{path}.dnsConfig", what))
        elif not config.get("nameservers"):
            what = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            errors.append(required(f"{path}.dnsConfig.nameservers", what))


def _proc_mounts(value: JSONObject, path: str, errors: Errors) -> None:
    if value.get("hostUsers") is False:
        return
    for key in ("containers", "initContainers", "ephemeralContainers"):
        for index, container in enumerate(value.get(key) or ()):
            if (container.get("securityContext") or {}).get("procMount") == "Unmasked":
                place = f"{path}.{key}[{index}].securityContext.procMount"
                errors.append(invalid(place, "Unmasked", "`hostUsers` must be false to use `Unmasked`"))


def _shared_processes(value: JSONObject, path: str, errors: Errors) -> None:
    if value.get("hostPID") and value.get("shareProcessNamespace"):
        what = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.append(invalid(f"{path}.securityContext.shareProcessNamespace", True, what))


def _host_network(value: JSONObject, path: str, errors: Errors) -> None:
    if not value.get("hostNetwork"):
        return
    for key in ("containers", "initContainers"):
        for index, container in enumerate(value.get(key) or ()):
            for number, port in enumerate(container.get("ports") or ()):
                host, own = port.get("hostPort"), port.get("containerPort")
                if host and host != own:
                    place = f"{path}.{key}[{index}].ports[{number}].hostPort"
                    errors.append(invalid(place, host, "must match `containerPort` when `hostNetwork` is true"))


def pod_spec(value: JSON, path: str, errors: Errors, extra_volumes: frozenset[str] = frozenset()) -> None:
    """Check the specification of a Pod; `extra_volumes` are those that somebody else adds."""
    if value.get("terminationGracePeriodSeconds") is None:
        errors.append(required(f"{path}.terminationGracePeriodSeconds"))
    volumes = volumes_errors(value.get("volumes"), f"{path}.volumes", errors) | extra_volumes
    containers_errors(value, volumes, f"{path}.containers", errors)
    init_container_errors(value, volumes, f"{path}.initContainers", errors)
    ephemeral_errors(value, volumes, f"{path}.ephemeralContainers", errors)
    _proc_mounts(value, path, errors)
    _host_network(value, path, errors)
    _shared_processes(value, path, errors)
    _TAIL(value, path, errors)
    _dns(value, path, errors)


def pod(value: JSON, path: str, errors: Errors) -> None:
    """Check a Pod that is to be made."""
    pod_spec(value.get("spec") or {}, "spec", errors)
    if (value.get("spec") or {}).get("ephemeralContainers"):
        errors.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))


def pod_template(value: JSON, path: str, errors: Errors, extra_volumes: frozenset[str] = frozenset()) -> None:
    """Check the template of Pods."""
    metadata = value.get("metadata") or {}
    labels(metadata.get("labels") or {}, f"{path}.labels", errors)
    pod_spec(value.get("spec") or {}, f"{path}.spec", errors, extra_volumes)
    if (value.get("spec") or {}).get("ephemeralContainers"):
        what = "ephemeral containers not allowed in pod template"
        errors.append(forbidden(f"{path}.spec.ephemeralContainers", what))


def pod_update(body: JSONObject, old: JSONObject, subresource: str, errors: Errors) -> bool:
    """Check what changed: images, deadlines that get nearer and new tolerations may."""
    new, before = body.get("spec") or {}, old.get("spec") or {}
    pod_spec(new, "spec", errors)
    if subresource in ("ephemeralcontainers", "resize", "binding"):
        return True
    for key in ("containers", "initContainers"):
        if len(new.get(key) or ()) != len(before.get(key) or ()):
            errors.append(forbidden(f"spec.{key}", "pod updates may not add or remove containers"))
            return True
    if not _deadline(new, before, errors):
        return True
    _tolerations(new, before, errors)
    munged = {**new, **_kept(new, before)}
    if not equal(_without_none(munged), _without_none({**before, **_same(before)})):
        errors.append(forbidden("spec", f"{_UPDATABLE}\n{_difference(before, munged)}"))
    return True


def _deadline(new: JSONObject, before: JSONObject, errors: Errors) -> bool:
    deadline, kept = new.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    path = "spec.activeDeadlineSeconds"
    if deadline is None:
        if kept is not None:
            errors.append(invalid(path, None, "must not update from a positive integer to nil value"))
        return True
    if not 0 <= deadline <= _INT32_MAX:
        errors.append(invalid(path, deadline, f"must be between 0 and {_INT32_MAX}, inclusive"))
        return False
    if kept is not None and kept < deadline:
        errors.append(invalid(path, deadline, "must be less than or equal to previous value"))
        return False
    return True


def _tolerations(new: JSONObject, before: JSONObject, errors: Errors) -> None:
    given = new.get("tolerations") or []
    for old in before.get("tolerations") or ():
        fixed = {key: item for key, item in old.items() if key != "tolerationSeconds"}
        same = ({key: item for key, item in each.items() if key != "tolerationSeconds"} for each in given)
        if fixed not in same:
            what = "existing toleration can not be modified except its tolerationSeconds"
            errors.append(forbidden("spec.tolerations", what))
            return


def _kept(new: JSONObject, before: JSONObject) -> JSONObject:
    """Return the fields that may change, as they were."""
    kept: JSONObject = {
        key: before.get(key)
        for key in ("activeDeadlineSeconds", "tolerations", "schedulingGates", "ephemeralContainers")
    }
    for key in ("containers", "initContainers"):
        pairs = zip(new.get(key) or (), before.get(key) or (), strict=True)
        if new.get(key):
            kept[key] = [{**container, "image": old.get("image")} for container, old in pairs]
    if (before.get("terminationGracePeriodSeconds") or 0) < 0 and new.get("terminationGracePeriodSeconds") == 1:
        kept["terminationGracePeriodSeconds"] = before["terminationGracePeriodSeconds"]
    return kept


def _same(before: JSONObject) -> JSONObject:
    return {key: before.get(key) for key in ("containers", "initContainers") if before.get(key)}


def _without_none(value: JSONObject) -> JSONObject:
    return {key: item for key, item in value.items() if item is not None}


def _difference(before: Mapping[str, JSON], after: Mapping[str, JSON]) -> str:
    """Name the fields that differ; the API server prints a diff of Go values here."""
    keys = sorted(key for key in {*before, *after} if not equal(before.get(key), after.get(key)))
    return f"changed: {', '.join(keys)}"
