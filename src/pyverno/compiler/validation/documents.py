"""Checks of the documents beside rules: cleanup policies, exceptions, global context entries.

This module must not check rules.
(Kyverno: api/kyverno/v2)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyverno.compiler.validation.conditions import check_condition_block
from pyverno.compiler.validation.context import check_confined, check_query
from pyverno.compiler.validation.findings import Findings
from pyverno.compiler.validation.match import check_sections, forbid_user_info
from pyverno.compiler.validation.spec import check_name
from pyverno.errors import ExpressionSyntaxError, ValueSyntaxError
from pyverno.kube.kinds import KindTable
from pyverno.kube.time.cron import CronFieldError, parse_standard
from pyverno.kube.time.duration import try_duration
from pyverno.lang.jmespath import compile_expression
from pyverno.lang.template import compile_template
from pyverno.podsecurity.problems import exclude_problems
from pyverno.policy.cleanup import CleanupPolicy, CleanupSpec
from pyverno.policy.context import ApiCall, ConfigMap, ImageRegistry, Method
from pyverno.policy.exception import PolicyException
from pyverno.policy.globalcontext import ExternalApiCall, GlobalContextEntry, Projection

if TYPE_CHECKING:
    from pyverno.policy.decode import AnyPolicy

__all__ = ["check_cleanup_policy", "check_document", "check_exception", "check_global_context_entry"]


def check_document(document: AnyPolicy, findings: Findings, kinds: KindTable) -> None:
    """Check a cleanup policy, an exception or a global context entry as its kind demands."""
    match document:
        case CleanupPolicy():
            check_cleanup_policy(document, findings, kinds)
        case PolicyException():
            check_exception(document, findings, kinds)
        case GlobalContextEntry():
            check_global_context_entry(document, findings)


def check_cleanup_policy(policy: CleanupPolicy, findings: Findings, kinds: KindTable) -> None:
    """Check a cleanup policy."""
    spec = policy.spec
    check_name(policy.name, findings)
    for entry in spec.context:
        if policy.is_namespaced:
            check_confined(entry, findings)
        match entry:
            case ImageRegistry():
                findings.error("cleanup-context", entry.path, "ImageRegistry is not allowed in CleanUp Policy")
            case ConfigMap():
                findings.error("cleanup-context", entry.path, "ConfigMap is not allowed in CleanUp Policy")
            case ApiCall():
                check_query(entry.jmes_path, (*entry.path, "apiCall", "jmesPath"), findings)
            case _:
                pass
    try:
        parse_standard(spec.schedule)
    except ValueSyntaxError as refusal:
        # Kyverno's text ends before the colon
        where = f" in {refusal.field} field" if isinstance(refusal, CronFieldError) else ""
        text = (
            f"schedule spec in the cleanupPolicy is not in proper cron format: syntax error{where}: {refusal.message}"
        )
        findings.error("schedule", ("spec", "schedule"), text)
    for section in (spec.match, spec.exclude):
        if section is not None and not forbid_user_info(section, findings):
            check_sections(section, findings, namespaced=policy.is_namespaced, kinds=kinds)
    if _is_empty_set(spec):
        findings.error("match-empty-set", ("spec",), "CleanupPolicy is matching an empty set")
    if spec.conditions is not None:
        check_condition_block(spec.conditions, ("spec", "conditions"), findings, complete=False)
        for error in compile_template(spec.conditions).errors:
            text = f"variable substitution failed for policy {policy.name}: {error.message}"
            findings.error("variable", ("spec", "conditions"), text)


def _is_empty_set(spec: CleanupSpec) -> bool:
    if spec.exclude is None or spec.exclude.all or spec.match.all:
        return False
    if spec.match.any and spec.exclude.any:
        return any(block.raw == other.raw for block in spec.match.any for other in spec.exclude.any)
    return bool(spec.exclude.any)


def check_exception(exception: PolicyException, findings: Findings, kinds: KindTable) -> None:
    """Check an exception."""
    spec = exception.spec
    if spec.background:
        forbid_user_info(spec.match, findings)
    check_sections(spec.match, findings, namespaced=False, kinds=kinds)
    for reference in spec.exceptions:
        if not reference.policy_name:
            text = "An exception requires a policy name"
            findings.error("exception", (*reference.path, "policyName"), text)
    for exclude in spec.pod_security:
        for problem in exclude_problems([exclude.raw]):
            findings.error("pod-security", (*exclude.path, problem.path.rpartition(".")[2]), problem.text)
    if spec.conditions is not None:
        check_condition_block(spec.conditions, ("spec", "conditions"), findings, complete=False)


def check_global_context_entry(entry: GlobalContextEntry, findings: Findings) -> None:
    """Check a global context entry."""
    spec = entry.spec
    if (spec.kubernetes_resource is None) == (spec.api_call is None):
        text = "A global context entry should either have KubernetesResource or APICall"
        findings.error("global-context", ("spec", "kubernetesResource"), text)
    if spec.kubernetes_resource is not None:
        resource, path = spec.kubernetes_resource, ("spec", "kubernetesResource")
        if not resource.group and resource.version != "v1":
            findings.error("global-context", (*path, "group"), "A Resource entry requires a group")
        for name, value in (("version", resource.version), ("resource", resource.resource)):
            if not value:
                findings.error("global-context", (*path, name), f"A Resource entry requires a {name}")
    if spec.api_call is not None:
        _check_api_call(spec.api_call, findings)
    for projection in spec.projections:
        _check_projection(projection, entry.name, findings)


def _check_api_call(call: ExternalApiCall, findings: Findings) -> None:
    path = ("spec", "apiCall")
    interval = try_duration(call.refresh_interval)
    if interval is None:
        text = f"`{call.refresh_interval}` is not a duration"
        findings.error("global-context", (*path, "refreshInterval"), text)
    elif interval == 0:
        text = "A Resource entry requires a refresh interval greater than 0 seconds"
        findings.error("global-context", (*path, "refreshInterval"), text)
    if (call.service is None) == (not call.url_path):
        text = "An External API call should either have Service or URLPath"
        findings.error("global-context", (*path, "service"), text)
    if call.data and call.method is not Method.POST:
        text = "An External API call with data should have method as POST"
        findings.error("global-context", (*path, "method"), text)
    if call.retry_limit < 1:
        findings.error("global-context", (*path, "retryLimit"), "the retry limit must be at least 1")


def _check_projection(projection: Projection, entry: str, findings: Findings) -> None:
    if not projection.name:
        findings.error("projection", (*projection.path, "name"), "A projection entry requires a name")
    if projection.name == entry:
        text = "A projection entry requires a name different from the global context entry name"
        findings.error("projection", (*projection.path, "name"), text)
    if not projection.jmes_path:
        findings.error("projection", (*projection.path, "jmesPath"), "A projection entry requires a JMESPath")
        return
    try:
        compile_expression(projection.jmes_path)
    except ExpressionSyntaxError as error:
        findings.error("projection", (*projection.path, "jmesPath"), error.message)
