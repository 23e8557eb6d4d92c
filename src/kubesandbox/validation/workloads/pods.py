"""Pods and their templates.

`pod_spec` judges what is in `spec`; `pod_update` what may change afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubesandbox.objects.fielderrors import forbidden, invalid, required
from kubesandbox.validation.check import (
    Check,
    Errors,
    between,
    each,
    form,
    labels,
    needed,
    one_of,
    struct,
)
from kubesandbox.validation.names import dns_label_problems, dns_subdomain_problems
from kubesandbox.validation.workloads.containers import (
    PROFILES,
    containers_errors,
    ephemeral_errors,
    init_container_errors,
)
from kubesandbox.validation.workloads.volumes import volumes_errors
from pyverno.kube.json import JSON, JSONObject, equal

__all__ = ["pod", "pod_spec", "pod_template", "pod_update"]

_INT32_MAX: Final = 2**31 - 1
_UPDATABLE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_SYSTEM_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")


def _group(value: JSON, path: str, errors: Errors) -> None:
    if type(value) is int and not 0 <= value <= _INT32_MAX:
        errors.append(invalid(path, value, f"must be between 0 and {_INT32_MAX}, inclusive"))


_SECURITY: Final[Check] = struct(
    {
        "fsGroup": _group,
        "supplementalGroups": each(_group),
        "runAsUser": _group,
        "runAsGroup": _group,
        "fsGroupChangePolicy": one_of("Always", "OnRootMismatch"),
        **PROFILES,
    }
)


_TAIL: Final[Check] = struct(
    {
        "restartPolicy": needed(one_of("Always", "OnFailure", "Never")),
        "dnsPolicy": needed(one_of(*_SYSTEM_POLICIES)),
        "nodeSelector": labels,
        "securityContext": _SECURITY,
        "serviceAccountName": form(dns_subdomain_problems),
        "nodeName": form(dns_subdomain_problems),
        "activeDeadlineSeconds": between(1, _INT32_MAX),
        "hostname": form(dns_label_problems),
        "subdomain": form(dns_label_problems),
        "priorityClassName": form(dns_subdomain_problems),
        "runtimeClassName": form(dns_subdomain_problems),
        "preemptionPolicy": one_of("PreemptLowerPriority", "Never"),
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


def pod_spec(value: JSON, path: str, errors: Errors, extra_volumes: frozenset[str] = frozenset()) -> None:
    """Check the specification of a Pod; `extra_volumes` are those that controllers add."""
    if value.get("terminationGracePeriodSeconds") is None:
        errors.append(required(f"{path}.terminationGracePeriodSeconds"))
    volumes = volumes_errors(value.get("volumes"), f"{path}.volumes", errors) | extra_volumes
    containers_errors(value, volumes, f"{path}.containers", errors)
    init_container_errors(value, volumes, f"{path}.initContainers", errors)
    ephemeral_errors(value, volumes, f"{path}.ephemeralContainers", errors)
    _TAIL(value, path, errors)
    _dns(value, path, errors)


def _images(spec: JSON, errors: Errors) -> None:
    """Check the images of a Pod; templates may name one by blanks, which something else replaces."""
    for key in ("containers", "initContainers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(key) or ()):
            image = container.get("image")
            if type(image) is str and image != image.strip():
                path = f"spec.{key}[{index}].image"
                errors.append(invalid(path, image, "must not have leading or trailing whitespace"))


def pod(value: JSON, path: str, errors: Errors) -> None:
    """Check a Pod that is to be made."""
    pod_spec(value.get("spec") or {}, "spec", errors)
    _images(value.get("spec") or {}, errors)
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
    _images(new, errors)
    if subresource in ("ephemeralcontainers", "resize", "binding"):
        return True
    for key in ("containers", "initContainers"):
        if len(new.get(key) or ()) != len(before.get(key) or ()):
            errors.append(forbidden(f"spec.{key}", "pod updates may not add or remove containers"))
            return True
    if not _deadline(new, before, errors):
        return True
    _tolerations(new, before, errors)
    munged = {**new, **_restore_mutable_fields(new, before)}
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


def _restore_mutable_fields(new: JSONObject, before: JSONObject) -> JSONObject:
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
