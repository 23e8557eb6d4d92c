"""Jobs and CronJobs; their policies are in `jobpolicies`."""

from __future__ import annotations

from typing import Final

from kubesandbox.objects.fielderrors import go_struct, invalid, required, unsupported
from kubesandbox.validation.check import Check, Errors, form, immutable, label_selector, not_negative, struct
from kubesandbox.validation.names import dns_subdomain_problems
from kubesandbox.validation.workloads.controllers import MISMATCH, matches, spec_of
from kubesandbox.validation.workloads.jobpolicies import pod_failure_policy, success_policy
from kubesandbox.validation.workloads.pods import pod_template
from pyverno.errors import ValueSyntaxError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.status import FieldError
from pyverno.kube.time.cron import parse_standard

__all__ = ["cron_job", "job", "job_update"]


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


_MOST_PODS: Final = 100_000
_MOST_WITH_LIMIT: Final = 10_000
_WITH_LIMIT: Final = (
    f"must be less than or equal to {_MOST_WITH_LIMIT} when completions are above {_MOST_PODS} and used with "
    "backoff limit per index"
)


def _job_spec(spec: JSONObject, path: str, errors: Errors) -> None:
    _JOB_COUNTS(spec, path, errors)
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        errors.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    _managed_by(spec, path, errors)
    mode = spec.get("completionMode", "NonIndexed")
    if mode not in ("NonIndexed", "Indexed"):
        errors.append(unsupported(f"{path}.completionMode", mode, ("NonIndexed", "Indexed")))
    if mode == "Indexed":
        _indexed(spec, path, errors)
    if mode == "NonIndexed":
        for key in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(key) is not None:
                errors.append(invalid(f"{path}.{key}", spec[key], _NEEDS_INDEXES))
    failure, success = spec.get("podFailurePolicy"), spec.get("successPolicy")
    if failure is not None:
        pod_failure_policy(failure, spec, f"{path}.podFailurePolicy", errors)
    if success is not None and mode != "Indexed":
        rules = [go_struct(rule, ("SucceededIndexes", "SucceededCount")) for rule in success.get("rules") or ()]
        shown = f'{{"Rules":[{",".join(rules)}]}}'
        errors.append(FieldError(f"{path}.successPolicy", "Invalid value", _NEEDS_INDEXES, shown))
    elif success is not None:
        success_policy(success, spec, f"{path}.successPolicy", errors)
    replacement = spec.get("podReplacementPolicy")
    known = ("Failed", "TerminatingOrFailed") if failure is None else ("Failed",)
    if replacement is not None and replacement not in known:
        errors.append(unsupported(f"{path}.podReplacementPolicy", replacement, known))
    pod_template(spec.get("template") or {}, f"{path}.template", errors)
    _restart_policy(spec, path, errors)


_NEEDS_INDEXES: Final = "requires indexed completion mode"


def _managed_by(spec: JSONObject, path: str, errors: Errors) -> None:
    name = spec.get("managedBy")
    if name is None:
        return
    domain, slash, rest = str(name).partition("/")
    if not slash or not domain or not rest:
        what = 'must be a domain-prefixed path (such as "acme.io/foo")'
        errors.append(invalid(f"{path}.managedBy", name, what))
    else:
        form(dns_subdomain_problems)(domain, f"{path}.managedBy", errors)


def _indexed(spec: JSONObject, path: str, errors: Errors) -> None:
    completions, parallel = spec.get("completions"), spec.get("parallelism") or 0
    if completions is None:
        errors.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if parallel > _MOST_PODS:
        what = f"must be less than or equal to {_MOST_PODS} when completion mode is Indexed"
        errors.append(invalid(f"{path}.parallelism", parallel, what))
    lost = spec.get("maxFailedIndexes")
    if lost is not None and completions is not None and lost > completions:
        errors.append(invalid(f"{path}.maxFailedIndexes", lost, "must be less than or equal to completions"))
    if spec.get("backoffLimitPerIndex") is None or (completions or 0) <= _MOST_PODS:
        return
    if lost is None:
        what = f"must be specified when completions is above {_MOST_PODS}"
        errors.append(required(f"{path}.maxFailedIndexes", what))
    for key, count in (("parallelism", parallel), ("maxFailedIndexes", lost or 0)):
        if count > _MOST_WITH_LIMIT:
            errors.append(invalid(f"{path}.{key}", count, _WITH_LIMIT))


def job(body: JSON, path: str, errors: Errors) -> None:
    """Check a Job."""
    spec = spec_of(body)
    if spec.get("manualSelector") and spec.get("selector") is None:
        errors.append(required("spec.selector"))
        labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
        errors.append(invalid("spec.template.metadata.labels", labels, MISMATCH))
    _job_spec(spec, "spec", errors)
    if spec.get("selector") is not None:
        label_selector(spec["selector"], "spec.selector", errors)
        matches(spec, errors)


def cron_job(body: JSON, path: str, errors: Errors) -> None:
    """Check a CronJob."""
    spec = spec_of(body)
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


def job_update(body: JSONObject, old: JSONObject, subresource: str, errors: Errors) -> bool:
    """Check what of a Job did not change: completions, selector, template, completion mode."""
    new, before = spec_of(body), spec_of(old)
    job(body, "", errors)
    mode = before.get("completionMode")
    if not (mode == "Indexed" and new.get("completions") == new.get("parallelism")):
        immutable(new.get("completions"), before.get("completions"), "spec.completions", errors)
    for key in ("selector", "template", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy"):
        if key == "template" and before.get("suspend") and not (old.get("status") or {}).get("startTime"):
            continue
        immutable(new.get(key), before.get(key), f"spec.{key}", errors)
    return True
