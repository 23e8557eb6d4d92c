"""Checks of Jobs and CronJobs. The policies of Jobs and numbered completions are checked by schema only."""

from __future__ import annotations

from typing import Final

from kubesandbox.objects.fielderrors import invalid, required, unsupported
from kubesandbox.validation.check import Check, Errors, form, immutable, label_selector, not_negative, struct
from kubesandbox.validation.names import dns_subdomain_problems
from kubesandbox.validation.workloads.controllers import MISMATCH, matches, spec_of
from kubesandbox.validation.workloads.pods import pod_template
from pyverno.errors import ValueSyntaxError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.time.cron import parse_standard

__all__ = ["cron_job", "job", "job_update"]


def _restart_policy(spec: JSONObject, path: str, errors: Errors) -> None:
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy")
    place = f"{path}.template.spec.restartPolicy"
    if policy in ("", "Always", None):
        errors.append(required(place, 'valid values: "OnFailure", "Never"'))
    elif policy not in ("OnFailure", "Never"):
        errors.append(unsupported(place, policy, ("OnFailure", "Never")))


_JOB_COUNTS: Final[Check] = struct(
    {
        "parallelism": not_negative,
        "completions": not_negative,
        "activeDeadlineSeconds": not_negative,
        "backoffLimit": not_negative,
        "ttlSecondsAfterFinished": not_negative,
    }
)


def _job_spec(spec: JSONObject, path: str, errors: Errors) -> None:
    _JOB_COUNTS(spec, path, errors)
    _managed_by(spec, path, errors)
    mode = spec.get("completionMode", "NonIndexed")
    if mode not in ("NonIndexed", "Indexed"):
        errors.append(unsupported(f"{path}.completionMode", mode, ("NonIndexed", "Indexed")))
    if mode == "Indexed" and spec.get("completions") is None:
        errors.append(required(f"{path}.completions", "when completion mode is Indexed"))
    pod_template(spec.get("template") or {}, f"{path}.template", errors)
    _restart_policy(spec, path, errors)


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
