"""Findings: results with their source locations, for all machine-readable formats.

Locations come from the document that a resource was read from.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyverno.engine.result import PatternDetail, ResourceRef, RuleResult
from pyverno.errors import NOWHERE, Location
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import Document
from pyverno.report.problem import located
from pyverno.report.summary import reported_status
from pyverno.value import dataclass, field

__all__ = ["Finding", "finding"]

_ANNOTATION = "policies.kyverno.io/"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one rule for one resource.

    `status` is that of a report (pass, fail, warn, error, skip). `location` is the field of the resource at fault if it
    is known, else the resource; `rule_location` is where the rule was written. `path` is the field's path
    (`/spec/containers/0/image/`). `origin` is the name of the rule that this one was generated from for a controller of
    pods.
    """

    policy: str
    rule: str
    resource: ResourceRef
    status: str
    message: str = ""
    severity: str = ""
    category: str = ""
    title: str = ""
    description: str = ""
    origin: str = ""
    path: str = ""
    location: Location = NOWHERE
    rule_location: Location = NOWHERE
    exceptions: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_problem(self) -> bool:
        """Return whether the finding needs attention."""
        return self.status in ("fail", "warn", "error")

    @property
    def rule_id(self) -> str:
        """`policy/rule`, the same for a rule and its copies for pod controllers; `policy` for rules without a name."""
        rule = self.origin or self.rule
        return f"{self.policy}/{rule}" if rule else self.policy

    def to_json(self) -> JSONObject:
        """Return the finding as an object; empty parts are left out."""
        ref = self.resource
        item: JSONObject = {
            "policy": self.policy,
            "rule": self.rule,
            "status": self.status,
            "message": self.message,
            "severity": self.severity,
            "category": self.category,
            "path": self.path,
            "exceptions": list(self.exceptions),
            "properties": dict(self.properties),
            "resource": {
                "apiVersion": ref.api_version,
                "kind": ref.kind,
                "namespace": ref.namespace,
                "name": ref.name,
                **located(self.location),
            },
            "source": located(self.rule_location),
        }
        item["resource"] = {key: value for key, value in item["resource"].items() if value}
        return {key: value for key, value in item.items() if value}


def finding(
    result: RuleResult,
    resource: ResourceRef,
    document: Document,
    *,
    audit_warn: bool = False,
    blamed: tuple[str | int, ...] | None = None,
    rule_location: Location | None = None,
) -> Finding:
    """Return the finding of a result about a resource that was read from a document.

    `blamed` is the path of the field at fault if the caller knows it, else the pattern's path is used. `rule_location`
    is the part of the rule that decided, by default the whole rule.
    """
    policy = result.rule.policy
    path = result.detail.path if isinstance(result.detail, PatternDetail) else ""
    steps = _steps(path) if blamed is None else blamed
    if blamed:
        path = "".join(f"/{step}" for step in blamed) + "/"
    return Finding(
        policy=policy.key,
        rule=result.rule_name,
        resource=resource,
        status=reported_status(result, audit_warn=audit_warn).value,
        message=result.message,
        severity=policy.annotations.get(f"{_ANNOTATION}severity", ""),
        category=policy.annotations.get(f"{_ANNOTATION}category", ""),
        title=policy.annotations.get(f"{_ANNOTATION}title", ""),
        description=policy.annotations.get(f"{_ANNOTATION}description", ""),
        origin=result.rule.origin,
        path=path,
        location=document.location(steps),
        rule_location=result.rule.location if rule_location is None else rule_location,
        exceptions=result.exceptions,
        properties=result.properties,
    )


def _steps(path: str) -> tuple[str | int, ...]:
    return tuple(int(step) if step.isascii() and step.isdigit() else step for step in path.split("/") if step)
