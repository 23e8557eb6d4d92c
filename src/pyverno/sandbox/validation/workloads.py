"""Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, CronJobs, ReplicationControllers."""

from __future__ import annotations

from typing import Final

from pyverno.errors import ValueSyntaxError
from pyverno.kube.cron import parse_standard
from pyverno.kube.json import JSON, JSONObject, equal
from pyverno.kube.selector import compile_selector
from pyverno.kube.status import FieldError
from pyverno.sandbox.fielderrors import forbidden, go_struct, go_value, invalid, required, unsupported
from pyverno.sandbox.validation.check import (
    Check,
    Errors,
    form,
    immutable,
    label_selector,
    not_negative,
    one_of,
    struct,
)
from pyverno.sandbox.validation.names import dns_label_problems
from pyverno.sandbox.validation.pods import pod_template
from pyverno.sandbox.validation.storage import claim_spec

__all__ = [
    "cron_job",
    "daemon_set",
    "daemon_set_update",
    "deployment",
    "deployment_update",
    "job",
    "job_update",
    "replica_set",
    "replica_set_update",
    "replication_controller",
    "stateful_set",
    "stateful_set_update",
]

_MISMATCH: Final = "`selector` does not match template `labels`"
_STATEFUL_FIELDS: Final = (
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
)


def _spec(body: JSON) -> JSONObject:
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


def _matches(spec: JSONObject, errors: Errors) -> bool:
    """Check that the selector selects the template's labels; tell whether the selector can be read at all."""
    selector = spec.get("selector")
    labels = _template_labels(spec)
    try:
        # no selector selects nothing
        fits = selector is not None and compile_selector(selector)(labels)
    except ValueSyntaxError:
        return False
    if not fits:
        errors.append(invalid("spec.template.metadata.labels", labels or None, _MISMATCH))
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
    spec = _spec(body)
    struct({"replicas": not_negative})(spec, "spec", errors)
    _selector(spec, "deployment", errors)
    _template(spec, "Deployment", errors)
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
    if _matches(spec, errors):
        pod_template(spec.get("template") or {}, "spec.template", errors)
        _always_restarts(spec, kind, errors)
    else:
        errors.append(invalid("spec.selector", spec.get("selector"), "invalid label selector"))


def replica_set(body: JSON, path: str, errors: Errors) -> None:
    """Check a ReplicaSet."""
    spec = _spec(body)
    _COUNTS(spec, "spec", errors)
    _selector(spec, "deployment", errors)
    _template(spec, "ReplicaSet", errors)


def replication_controller(body: JSON, path: str, errors: Errors) -> None:
    """Check a ReplicationController."""
    spec = _spec(body)
    _COUNTS(spec, "spec", errors)
    selector = spec.get("selector") or {}
    if not selector:
        errors.append(required("spec.selector"))
    if spec.get("template") is None:
        errors.append(required("spec.template"))
        return
    labels = _template_labels(spec)
    if any(labels.get(key) != value for key, value in selector.items()):
        errors.append(invalid("spec.template.metadata.labels", labels, _MISMATCH))
    pod_template(spec["template"], "spec.template", errors)
    _always_restarts(spec, "ReplicationController", errors)


def daemon_set(body: JSON, path: str, errors: Errors) -> None:
    """Check a DaemonSet."""
    spec = _spec(body)
    label_selector(spec.get("selector"), "spec.selector", errors)
    _matches(spec, errors)
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


def stateful_set(body: JSON, path: str, errors: Errors) -> None:
    """Check a StatefulSet."""
    spec = _spec(body)
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
        struct({"partition": not_negative})(rolling, "spec.updateStrategy.rollingUpdate", errors)
    else:
        errors.append(invalid("spec.updateStrategy", strategy, "must be 'RollingUpdate' or 'OnDelete'"))
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
    if _matches(spec, errors):
        pod_template(spec.get("template") or {}, "spec.template", errors, names)
    else:
        errors.append(invalid("spec.selector", spec.get("selector"), ""))
    _always_restarts(spec, "StatefulSet", errors)


def _restart_policy(spec: JSONObject, path: str, errors: Errors) -> None:
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy")
    place = f"{path}.template.spec.restartPolicy"
    if policy in ("", "Always", None):
        errors.append(required(place, 'valid values: "OnFailure", "Never"'))
    elif policy not in ("OnFailure", "Never"):
        errors.append(unsupported(place, policy, ("OnFailure", "Never")))
    elif policy != "Never" and spec.get("podFailurePolicy") is not None:
        errors.append(invalid(place, policy, 'only "Never" is supported when podFailurePolicy is specified'))


_JOB_COUNTS: Final[Check] = struct(
    {
        "parallelism": not_negative,
        "completions": not_negative,
        "activeDeadlineSeconds": not_negative,
        "backoffLimit": not_negative,
        "ttlSecondsAfterFinished": not_negative,
        "backoffLimitPerIndex": not_negative,
        "maxFailedIndexes": not_negative,
    }
)


def _job_spec(spec: JSONObject, path: str, errors: Errors) -> None:
    _JOB_COUNTS(spec, path, errors)
    mode = spec.get("completionMode", "NonIndexed")
    if mode not in ("NonIndexed", "Indexed"):
        errors.append(unsupported(f"{path}.completionMode", mode, ("NonIndexed", "Indexed")))
    if mode == "Indexed" and spec.get("completions") is None:
        errors.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if mode == "NonIndexed":
        for key in ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"):
            if spec.get(key) is not None:
                errors.append(invalid(f"{path}.{key}", spec[key], "requires indexed completion mode"))
    pod_template(spec.get("template") or {}, f"{path}.template", errors)
    _restart_policy(spec, path, errors)


def job(body: JSON, path: str, errors: Errors) -> None:
    """Check a Job."""
    spec = _spec(body)
    if spec.get("manualSelector") and spec.get("selector") is None:
        errors.append(required("spec.selector"))
    _job_spec(spec, "spec", errors)
    if spec.get("selector") is not None:
        label_selector(spec["selector"], "spec.selector", errors)
        _matches(spec, errors)


def cron_job(body: JSON, path: str, errors: Errors) -> None:
    """Check a CronJob."""
    spec = _spec(body)
    schedule = spec.get("schedule") or ""
    if not schedule:
        errors.append(required("spec.schedule"))
    else:
        _schedule(schedule, spec.get("timeZone"), errors)
    struct({"startingDeadlineSeconds": not_negative})(spec, "spec", errors)
    policy = spec.get("concurrencyPolicy")
    if policy not in ("Allow", "Forbid", "Replace"):
        errors.append(unsupported("spec.concurrencyPolicy", policy, ("Allow", "Forbid", "Replace")))
    template = (spec.get("jobTemplate") or {}).get("spec") or {}
    _job_spec(template, "spec.jobTemplate.spec", errors)
    if template.get("selector") is not None:
        what = "`selector` will be auto-generated"
        errors.append(invalid("spec.jobTemplate.spec.selector", template["selector"], what))
    if template.get("manualSelector"):
        errors.append(unsupported("spec.jobTemplate.spec.manualSelector", True, ("nil", "false")))
    limits = ("successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    struct(dict.fromkeys(limits, not_negative))(spec, "spec", errors)


def _schedule(schedule: str, zone: JSON, errors: Errors) -> None:
    try:
        parse_standard(schedule)
    except ValueSyntaxError as error:
        errors.append(invalid("spec.schedule", schedule, str(error)))
        return
    if "TZ" in schedule:
        what = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        if zone is not None:
            what = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        errors.append(invalid("spec.schedule", schedule, what))
    elif zone is not None:
        _zone(zone, errors)


def _zone(zone: JSON, errors: Errors) -> None:
    import zoneinfo

    if not zone:
        errors.append(invalid("spec.timeZone", zone, "timeZone must be nil or non-empty string"))
    elif str(zone).lower() == "local":
        what = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        errors.append(invalid("spec.timeZone", zone, what))
    else:
        try:
            zoneinfo.ZoneInfo(str(zone))
        except (ValueError, zoneinfo.ZoneInfoNotFoundError, OSError):
            errors.append(invalid("spec.timeZone", zone, f"unknown time zone {zone}"))


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
    immutable(_spec(body).get("selector"), _spec(old).get("selector"), "spec.selector", errors)


def stateful_set_update(body: JSONObject, old: JSONObject, subresource: str, errors: Errors) -> bool:
    """Check that only what may change did."""
    stateful_set(body, "", errors)
    new, before = _spec(body), _spec(old)
    fixed = [{key: item for key, item in spec.items() if key not in _STATEFUL_FIELDS} for spec in (new, before)]
    if not equal(*fixed):
        what = (
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
            "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
        )
        errors.append(forbidden("spec", what))
    return True


def job_update(body: JSONObject, old: JSONObject, subresource: str, errors: Errors) -> bool:
    """Check what of a Job did not change: completions, selector, template, completion mode."""
    new, before = _spec(body), _spec(old)
    job(body, "", errors)
    mode = before.get("completionMode")
    if not (mode == "Indexed" and new.get("completions") == new.get("parallelism")):
        immutable(new.get("completions"), before.get("completions"), "spec.completions", errors)
    for key in ("selector", "template", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy"):
        if key == "template" and before.get("suspend") and not (old.get("status") or {}).get("startTime"):
            continue
        immutable(new.get(key), before.get(key), f"spec.{key}", errors)
    return True
