"""Checks of Deployments, ReplicaSets, ReplicationControllers, StatefulSets and DaemonSets."""

from __future__ import annotations

from typing import Final

from kubesandbox.objects.fielderrors import forbidden, go_struct, go_value, invalid, required, unsupported
from kubesandbox.validation.check import (
    Check,
    Errors,
    form,
    immutable,
    label_selector,
    not_negative,
    one_of,
    struct,
)
from kubesandbox.validation.names import dns_label_problems
from kubesandbox.validation.storage import claim_spec
from kubesandbox.validation.workloads.pods import pod_template
from pyverno.errors import ValueSyntaxError
from pyverno.kube.json import JSON, JSONObject, equal
from pyverno.kube.selector import compile_selector
from pyverno.kube.status import FieldError

__all__ = [
    "MISMATCH",
    "daemon_set",
    "daemon_set_update",
    "deployment",
    "deployment_update",
    "matches",
    "replica_set",
    "replica_set_update",
    "replication_controller",
    "spec_of",
    "stateful_set",
    "stateful_set_update",
]

MISMATCH: Final = "`selector` does not match template `labels`"
_STATEFUL_FIELDS: Final = (
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
)


def spec_of(body: JSON) -> JSONObject:
    """Return the specification of an object."""
    found: JSONObject = body.get("spec") or {}
    return found


def _template_labels(spec: JSONObject) -> JSONObject:
    found: JSONObject = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    return found


def _selector(spec: JSONObject, kind: str, errors: Errors) -> None:
    selector = spec.get("selector")
    if selector is None:
        errors.append(required("spec.selector"))
        return
    label_selector(selector, "spec.selector", errors)
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        errors.append(invalid("spec.selector", selector, f"empty selector is invalid for {kind}"))


def matches(spec: JSONObject, errors: Errors) -> bool:
    """Check that a selector takes the labels of its template; return whether it can be read."""
    """Check that the selector selects the template's labels; tell whether the selector can be read at all."""
    selector = spec.get("selector")
    labels = _template_labels(spec)
    try:
        # no selector selects nothing
        fits = selector is not None and compile_selector(selector)(labels)
    except ValueSyntaxError:
        return False
    if not fits:
        errors.append(invalid("spec.template.metadata.labels", labels or None, MISMATCH))
    return True


def _always_restarts(spec: JSONObject, kind: str, errors: Errors) -> None:
    pod = (spec.get("template") or {}).get("spec") or {}
    policy = pod.get("restartPolicy")
    if policy != "Always":
        errors.append(unsupported("spec.template.spec.restartPolicy", policy, ("Always",)))
    if pod.get("activeDeadlineSeconds") is not None:
        what = f"activeDeadlineSeconds in {kind} is not Supported"
        errors.append(forbidden("spec.template.spec.activeDeadlineSeconds", what))


_COUNTS: Final[Check] = struct({"replicas": not_negative, "minReadySeconds": not_negative})
_HISTORY: Final[Check] = struct({"revisionHistoryLimit": not_negative, "progressDeadlineSeconds": not_negative})


def _share(value: JSON, path: str, errors: Errors) -> int | None:
    """Check a number or a percentage; return it, or None when it is neither."""
    if type(value) is int:
        not_negative(value, path, errors)
        return value
    text = str(value)
    if not text.endswith("%") or not text[:-1].isdecimal():
        what = (
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex "
            "used for validation is '[0-9]+%')"
        )
        errors.append(invalid(path, value, what))
        return None
    return int(text[:-1])


def _rolling(strategy: JSONObject, path: str, errors: Errors) -> None:
    rolling = strategy.get("rollingUpdate") or {}
    amounts = {}
    for key in ("maxUnavailable", "maxSurge"):
        if rolling.get(key) is not None:
            amounts[key] = _share(rolling[key], f"{path}.{key}", errors)
    if amounts.get("maxUnavailable") == 0 and amounts.get("maxSurge", 0) == 0:
        what = "may not be 0 when `maxSurge` is 0"
        errors.append(invalid(f"{path}.maxUnavailable", rolling.get("maxUnavailable"), what))
    share = rolling.get("maxUnavailable")
    if isinstance(share, str) and (amounts.get("maxUnavailable") or 0) > 100:
        errors.append(invalid(f"{path}.maxUnavailable", share, "must not be greater than 100%"))


def _strategy(path: str, strategy: JSONObject, *supported: str) -> FieldError:
    listed = ", ".join(go_value(name) for name in supported)
    shown = go_struct(strategy, ("Type", "RollingUpdate"))
    return FieldError(path, "Unsupported value", f"supported values: {listed}", shown)


def deployment(body: JSON, path: str, errors: Errors) -> None:
    """Check a Deployment."""
    spec = spec_of(body)
    struct({"replicas": not_negative})(spec, "spec", errors)
    _selector(spec, "deployment", errors)
    # upstream judges the template by the code of ReplicaSets
    _template(spec, "ReplicaSet", errors)
    strategy = spec.get("strategy") or {}
    kind = strategy.get("type")
    if kind == "Recreate":
        if strategy.get("rollingUpdate") is not None:
            what = "may not be specified when strategy `type` is 'Recreate'"
            errors.append(forbidden("spec.strategy.rollingUpdate", what))
    elif kind == "RollingUpdate":
        if strategy.get("rollingUpdate") is None:
            what = "this should be defaulted and never be nil"
            errors.append(required("spec.strategy.rollingUpdate", what))
        else:
            _rolling(strategy, "spec.strategy.rollingUpdate", errors)
    else:
        errors.append(_strategy("spec.strategy", strategy, "Recreate", "RollingUpdate"))
    struct({"minReadySeconds": not_negative})(spec, "spec", errors)
    _HISTORY(spec, "spec", errors)
    progress, ready = spec.get("progressDeadlineSeconds"), spec.get("minReadySeconds") or 0
    if progress is not None and progress <= ready:
        errors.append(invalid("spec.progressDeadlineSeconds", progress, "must be greater than minReadySeconds"))


def _template(spec: JSONObject, kind: str, errors: Errors) -> None:
    if matches(spec, errors):
        pod_template(spec.get("template") or {}, "spec.template", errors)
        _always_restarts(spec, kind, errors)
    else:
        errors.append(invalid("spec.selector", spec.get("selector"), "invalid label selector"))


def replica_set(body: JSON, path: str, errors: Errors) -> None:
    """Check a ReplicaSet."""
    spec = spec_of(body)
    _COUNTS(spec, "spec", errors)
    _selector(spec, "deployment", errors)
    _template(spec, "ReplicaSet", errors)


def replication_controller(body: JSON, path: str, errors: Errors) -> None:
    """Check a ReplicationController, whose selector is a map of labels."""
    spec = spec_of(body)
    _COUNTS(spec, "spec", errors)
    selector, template = spec.get("selector") or {}, spec.get("template")
    if not selector:
        errors.append(required("spec.selector", ""))
    if template is None:
        errors.append(required("spec.template", ""))
        return
    labels = (template.get("metadata") or {}).get("labels") or {}
    if not selector.items() <= labels.items():
        errors.append(invalid("spec.template.metadata.labels", labels, MISMATCH))
    pod_template(template, "spec.template", errors)
    _always_restarts(spec, "ReplicationController", errors)


def daemon_set(body: JSON, path: str, errors: Errors) -> None:
    """Check a DaemonSet."""
    spec = spec_of(body)
    label_selector(spec.get("selector"), "spec.selector", errors)
    matches(spec, errors)
    selector = spec.get("selector")
    if selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions"):
        errors.append(invalid("spec.selector", selector, "empty selector is invalid for daemonset"))
    pod_template(spec.get("template") or {}, "spec.template", errors)
    _always_restarts(spec, "DaemonSet", errors)
    struct({"minReadySeconds": not_negative})(spec, "spec", errors)
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") == "RollingUpdate":
        _daemon_rolling(strategy, errors)
    elif strategy.get("type") != "OnDelete":
        errors.append(_strategy("spec.updateStrategy", strategy, "RollingUpdate", "OnDelete"))
    struct({"revisionHistoryLimit": not_negative})(spec, "spec", errors)


def _daemon_rolling(strategy: JSONObject, errors: Errors) -> None:
    path, rolling = "spec.updateStrategy.rollingUpdate", strategy.get("rollingUpdate") or {}
    unavailable = _share(rolling.get("maxUnavailable", 1), f"{path}.maxUnavailable", errors)
    surge = _share(rolling.get("maxSurge", 0), f"{path}.maxSurge", errors)
    if unavailable and surge:
        what = "may not be set when maxUnavailable is non-zero"
        errors.append(invalid(f"{path}.maxSurge", rolling.get("maxSurge"), what))
    elif unavailable == 0 and surge == 0:
        what = "cannot be 0 when maxUnavailable is 0"
        errors.append(required(f"{path}.maxUnavailable", what.replace("maxUnavailable is 0", "maxSurge is 0")))


def _unavailable(value: JSON, path: str, errors: Errors) -> None:
    if not _share(value, path, errors):
        errors.append(invalid(path, value, "cannot be 0"))


def stateful_set(body: JSON, path: str, errors: Errors) -> None:
    """Check a StatefulSet."""
    spec = spec_of(body)
    policy = spec.get("podManagementPolicy")
    if policy not in ("OrderedReady", "Parallel"):
        errors.append(invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"))
    strategy = spec.get("updateStrategy") or {}
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "OnDelete":
        if rolling is not None:
            what = "only allowed for updateStrategy 'RollingUpdate'"
            shown = go_struct({"partition": 0, **rolling}, ("Partition", "MaxUnavailable"))
            errors.append(FieldError("spec.updateStrategy.rollingUpdate", "Invalid value", what, shown))
    elif kind == "RollingUpdate":
        struct({"partition": not_negative, "maxUnavailable": _unavailable})(
            rolling, "spec.updateStrategy.rollingUpdate", errors
        )
    else:
        shown = go_struct(strategy, ("Type", "RollingUpdate"))
        what = "must be 'RollingUpdate' or 'OnDelete'"
        errors.append(FieldError("spec.updateStrategy", "Invalid value", what, shown))
    retention = one_of("Retain", "Delete")
    struct({"whenDeleted": retention, "whenScaled": retention})(
        spec.get("persistentVolumeClaimRetentionPolicy"), "spec.persistentVolumeClaimRetentionPolicy", errors
    )
    claims = spec.get("volumeClaimTemplates") or ()
    for index, claim in enumerate(claims):
        claim_spec(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec", errors)
    _COUNTS(spec, "spec", errors)
    form(dns_label_problems)(spec.get("serviceName") or "", "spec.serviceName", errors)
    _selector(spec, "statefulset", errors)
    names = frozenset(str((claim.get("metadata") or {}).get("name", "")) for claim in claims)
    if matches(spec, errors):
        pod_template(spec.get("template") or {}, "spec.template", errors, names)
    else:
        errors.append(invalid("spec.selector", spec.get("selector"), ""))
    _always_restarts(spec, "StatefulSet", errors)


def deployment_update(body: JSONObject, old: JSONObject, subresource: str, errors: Errors) -> bool:
    """Check a changed Deployment, and that its selector is as it was."""
    deployment(body, "", errors)
    _same_selector(body, old, errors)
    return True


def replica_set_update(body: JSONObject, old: JSONObject, subresource: str, errors: Errors) -> bool:
    """Check a changed ReplicaSet, and that its selector is as it was."""
    replica_set(body, "", errors)
    _same_selector(body, old, errors)
    return True


def daemon_set_update(body: JSONObject, old: JSONObject, subresource: str, errors: Errors) -> bool:
    """Check that the selector of a DaemonSet is as it was."""
    _same_selector(body, old, errors)
    return False


def _same_selector(body: JSONObject, old: JSONObject, errors: Errors) -> None:
    immutable(spec_of(body).get("selector"), spec_of(old).get("selector"), "spec.selector", errors)


def stateful_set_update(body: JSONObject, old: JSONObject, subresource: str, errors: Errors) -> bool:
    """Check that only what may change did."""
    stateful_set(body, "", errors)
    new, before = spec_of(body), spec_of(old)
    fixed = [{key: item for key, item in spec.items() if key not in _STATEFUL_FIELDS} for spec in (new, before)]
    if not equal(*fixed):
        what = (
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
            "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
        )
        errors.append(forbidden("spec", what))
    return True
