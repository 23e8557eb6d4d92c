"""PolicyExceptions for failing results, to be reviewed by a person and then applied.

An exception names exactly the object, rule and controls that failed; for a controller it also includes the controller's
Pods. The exception of a CEL policy names the object.
"""

from __future__ import annotations

from pyverno.engine.result import PodSecurityDetail, ResourceRef, Status
from pyverno.engine.rule import PolicyInfo
from pyverno.kube.json import JSONObject, encode
from pyverno.policy.kinds import Family, kinds_of
from pyverno.report.policyreport import ReportEntry
from pyverno.report.summary import reported_status

__all__ = ["exception_for"]

_TTL_LABEL = "cleanup.kyverno.io/ttl"
_CEL_KINDS = kinds_of(Family.CEL)
_CRON_PREFIX, _PREFIX = "autogen-cronjob-", "autogen-"


def exception_for(entry: ReportEntry, *, ttl: str = "", audit_warn: bool = False) -> JSONObject | None:
    """Return the exception for a failing result, None for any other; `ttl` is Go's text of a duration ("" = none)."""
    result, ref = entry.result, entry.resource
    if reported_status(result, audit_warn=audit_warn) is not Status.FAIL:
        return None
    policy, rule = result.rule.policy.key, result.rule.name
    kinds, rules = _expand(ref.kind, rule)
    names = [ref.name, f"{ref.name}-*"] if len(kinds) > 1 else [ref.name]
    description: JSONObject = {"kinds": kinds, "names": names}
    if ref.namespace:
        description["namespaces"] = [ref.namespace]
    metadata: JSONObject = {"name": "-".join((policy.replace("/", "-"), rule, ref.namespace, ref.name))}
    if ttl:
        metadata["labels"] = {_TTL_LABEL: ttl}
    if result.rule.policy.kind in _CEL_KINDS:
        return _cel_exception(result.rule.policy, ref, metadata)
    spec: JSONObject = {
        "exceptions": [{"policyName": policy, "ruleNames": rules}],
        "match": {"all": [{"resources": description}]},
    }
    controls = _controls(result.detail) if isinstance(result.detail, PodSecurityDetail) else []
    if controls:
        spec["podSecurity"] = controls
    return {"apiVersion": "kyverno.io/v2beta1", "kind": "PolicyException", "metadata": metadata, "spec": spec}


def _cel_exception(policy: PolicyInfo, ref: ResourceRef, metadata: JSONObject) -> JSONObject:
    parts = [("kind", ref.kind), ("metadata.name", ref.name), ("metadata.?namespace.orValue('')", ref.namespace)]
    condition = " && ".join(f"object.{path} == {encode(text)}" for path, text in parts)
    name = "-".join(filter(None, (policy.key.replace("/", "-"), ref.namespace, ref.name)))
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "PolicyException",
        "metadata": {**metadata, "name": name},
        "spec": {
            "policyRefs": [{"name": policy.name, "kind": policy.kind}],
            "matchConditions": [{"name": "the-object", "expression": condition}],
        },
    }


def _expand(kind: str, rule: str) -> tuple[list[str], list[str]]:
    """Return the kind and the rule; for a rule of autogen also those of the object's Pods (and Jobs)."""
    if kind == "CronJob" and rule.startswith(_CRON_PREFIX):
        origin = rule.removeprefix(_CRON_PREFIX)
        return [kind, "Job", "Pod"], [rule, f"{_PREFIX}{origin}", origin]
    if rule.startswith(_PREFIX):
        return [kind, "Pod"], [rule, rule.removeprefix(_PREFIX)]
    return [kind], [rule]


def _controls(detail: PodSecurityDetail) -> list[JSONObject]:
    controls: list[JSONObject] = []
    for check in detail.checks:
        control: JSONObject = {"controlName": check["name"]}
        if check["images"]:
            control["images"] = [any_tag(image) for image in check["images"]]
        controls.append(control)
    return controls


def any_tag(image: str) -> str:
    """Return an image reference with `*` in the place of tag and digest; a registry's port stays.

    >>> any_tag("registry:5000/app:1.2"), any_tag("nginx@sha256:00"), any_tag("nginx")
    ('registry:5000/app*', 'nginx*', 'nginx')
    """
    path, slash, last = image.rpartition("/")
    for mark in ("@", ":"):
        name, found, _ = last.partition(mark)
        if found:
            last = f"{name.partition(':')[0]}*"
            break
    return f"{path}{slash}{last}"
