"""Checks of CEL policies, their exceptions and bindings that need no types: what webhooks and schemas refuse.

Expressions are parsed where a check needs the names they use, but compiling them is the lowering's business. (Kyverno:
pkg/cel/policies, config/crds/policies.kyverno.io)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyverno.compiler.cel.matching import INVALID_SELECTOR, selector_problems
from pyverno.compiler.validation.findings import Findings
from pyverno.errors import ValueSyntaxError
from pyverno.kube.json import encode
from pyverno.kube.selector import compile_selector
from pyverno.kube.time.cronexpr import parse_cronexpr
from pyverno.kube.yaml.fieldpath import Path
from pyverno.lang.cel.syntax.ast import Ident, walk
from pyverno.lang.cel.syntax.macros import STANDARD_MACROS
from pyverno.lang.cel.syntax.parser import parse
from pyverno.lang.cel.syntax.source import CompileError, Source
from pyverno.policy.cel.admissionpolicy import (
    AdmissionBinding,
    MutatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicyBinding,
)
from pyverno.policy.cel.blocks import EvaluationMode
from pyverno.policy.cel.constraints import MatchConstraints, ResourceRule
from pyverno.policy.cel.exception import CelException
from pyverno.policy.cel.imagepolicy import Attestation, Attestor, Given, ImageReference, ImageValidatingPolicy
from pyverno.policy.cel.policies import CelPolicy, DeletingPolicy, GeneratingPolicy, MutatingPolicy
from pyverno.policy.validate import NamedExpression
from pyverno.spelling import did_you_mean

if TYPE_CHECKING:
    from pyverno.policy.decode import AnyPolicy

__all__ = ["check_binding", "check_cel_document", "check_cel_exception", "check_cel_policy", "uses_name"]

_OPERATIONS = ("*", "CREATE", "UPDATE", "DELETE", "CONNECT")
_SCOPES = ("*", "Cluster", "Namespaced")
_NO_HTTP = "http.* is not allowed in namespaced policies; set --allowHTTPInNamespacedPolicies to enable"
_NO_GLOBAL_CONTEXT = "globalContext.* is not allowed in namespaced policies"
_NO_VARIABLES = (
    "variables cannot be referenced in matchConditions when spec.autogen.mutatingAdmissionPolicy.enabled is true; "
    "native MutatingAdmissionPolicy evaluates match conditions before variables, so inline the expression instead"
)


def check_cel_document(policy: AnyPolicy, findings: Findings) -> None:
    """Check a document of any kind that has to do with CEL; Kubernetes' own policies have no findings."""
    match policy:
        case CelPolicy():
            check_cel_policy(policy, findings)
        case CelException():
            check_cel_exception(policy, findings)
        case ValidatingAdmissionPolicyBinding() | MutatingAdmissionPolicyBinding():
            check_binding(policy, findings)


def check_cel_policy(policy: CelPolicy, findings: Findings) -> None:
    """Check a policy; one of a namespace makes no HTTP calls."""
    _check_constraints(policy, findings)
    if not isinstance(policy, ImageValidatingPolicy):  # COMPAT: the schema of this kind requires no unique names
        _check_names(policy, findings)
    match policy:
        case MutatingPolicy():
            _check_unique(policy.spec.target_match_conditions, ("spec", "targetMatchConditions"), findings)
            _check_mutating(policy, findings)
        case GeneratingPolicy():
            _check_generating(policy, findings)
        case DeletingPolicy():
            _check_unique(policy.spec.conditions, ("spec", "conditions"), findings)
            _check_schedule(policy.spec.schedule, findings)
        case ImageValidatingPolicy():
            for reference in policy.spec.match_image_references:
                _check_reference(reference, findings)
            # Kyverno: of two with one name, only the last counts
            _check_unique(policy.spec.attestors, ("spec", "attestors"), findings)  # guard: attestors have one name each
            _check_unique(policy.spec.attestations, ("spec", "attestations"), findings)
            for attestor in policy.spec.attestors:
                _check_attestor(attestor, findings)
    if policy.is_namespaced:
        for expression in policy.spec.expressions():
            if uses_name(expression.text, "http"):
                findings.error("http", expression.path, _NO_HTTP)
            if uses_name(expression.text, "globalContext"):
                findings.error("namespaced-global-context", expression.path, _NO_GLOBAL_CONTEXT)


def check_cel_exception(exception: CelException, findings: Findings) -> None:
    """Check an exception."""
    references = exception.spec.policy_refs
    if not references:
        findings.error("exception", ("spec", "policyRefs"), "must specify at least one policy ref")
    for reference in references:
        for name, value in (("name", reference.name), ("kind", reference.kind)):
            if not value:
                findings.error("exception", (*reference.path, name), f"must specify policy {name}")


def check_binding(binding: AdmissionBinding, findings: Findings) -> None:
    """Check the selectors of a binding, which is lowered only with the policy that it names."""
    spec = binding.spec
    if spec.match_resources is not None:
        _check_selectors(spec.match_resources, findings)
    if spec.param_ref is not None and spec.param_ref.selector is not None:
        try:
            compile_selector(spec.param_ref.selector)
        except ValueSyntaxError as error:
            findings.error(INVALID_SELECTOR, (*spec.param_ref.path, "selector"), error.message)


def uses_name(expression: str, name: str) -> bool:
    """Return whether an expression mentions a variable, bound or not; what does not parse mentions none.

    >>> uses_name("has(variables.x)", "variables"), uses_name("'variables'", "variables")
    (True, False)
    """
    if name not in expression:
        return False
    try:
        root = parse(Source(expression), STANDARD_MACROS)
    except CompileError:
        return False
    return any(isinstance(node, Ident) and node.name.removeprefix(".") == name for node in walk(root))


def _check_constraints(policy: CelPolicy, findings: Findings) -> None:
    constraints = policy.spec.match_constraints
    # payloads that are no Kubernetes objects are not matched by resource rules
    if policy.spec.evaluation.mode is EvaluationMode.KUBERNETES and (
        constraints is None or not constraints.resource_rules
    ):
        text = "Required value: a matchConstraints with at least one resource rule is required"
        findings.error("match-constraints", ("spec", "matchConstraints"), text)
    if constraints is not None:
        _warn_about_rules(constraints, findings)
    if isinstance(policy, MutatingPolicy) and policy.spec.target_match_constraints is not None:
        targets = policy.spec.target_match_constraints.constraints
        _warn_about_rules(targets, findings)
        _check_selectors(targets, findings)


def _check_selectors(constraints: MatchConstraints, findings: Findings) -> None:
    """Check what no lowering of the document itself looks at."""
    for path, message in selector_problems(constraints):
        findings.error(INVALID_SELECTOR, path, message)


def _warn_about_rules(constraints: MatchConstraints, findings: Findings) -> None:
    """Warn about words that upstream's schemas accept, although no request ever has them."""
    for rule in (*constraints.resource_rules, *constraints.exclude_resource_rules):
        for operation in rule.operations:
            _warn_about_word("operation", operation, _OPERATIONS, rule, findings)
        if rule.scope:
            _warn_about_word("scope", rule.scope, _SCOPES, rule, findings)


def _warn_about_word(noun: str, word: str, known: tuple[str, ...], rule: ResourceRule, findings: Findings) -> None:
    if word not in known:
        where = findings.source.location(rule.path)
        findings.warn(f"{where}: unknown {noun} `{word}` matches no request{did_you_mean(word, known)}")


def _check_names(policy: CelPolicy, findings: Findings) -> None:
    _check_unique(policy.spec.match_conditions, ("spec", "matchConditions"), findings)
    _check_unique(policy.spec.variables, ("spec", "variables"), findings)


def _check_unique(items: Iterable[NamedExpression | Attestor | Attestation], path: Path, findings: Findings) -> None:
    seen: set[str] = set()
    for index, each in enumerate(items):
        if each.name in seen:
            findings.error("duplicate-name", (*path, index), f"Duplicate value: {encode({'name': each.name})}")
        seen.add(each.name)


def _check_mutating(policy: MutatingPolicy, findings: Findings) -> None:
    spec = policy.spec
    if not spec.evaluation.admission and not spec.evaluation.mutate_existing:
        text = "disabling both admission and mutateExisting evaluation modes is not allowed"
        findings.error("modes", ("spec", "evaluation"), text)
    if spec.autogen.admission_policy:
        for condition in spec.match_conditions:
            if uses_name(condition.expression, "variables"):
                findings.error("variable", (*condition.path, "expression"), _NO_VARIABLES)


def _check_generating(policy: GeneratingPolicy, findings: Findings) -> None:
    if not policy.spec.generate:
        findings.error("generate", ("spec", "generate"), "must have at least 1 item")
    for entry in policy.spec.generate:
        if (entry.expression is None) == (entry.template is None):
            findings.error("generate", entry.path, "exactly one of expression or template must be set")
        elif entry.template == "":
            findings.error("generate", entry.template_path, "must be at least 1 character long")


def _check_schedule(schedule: str, findings: Findings) -> None:
    path: Path = ("spec", "schedule")
    if not schedule:
        findings.error("schedule", path, "schedule is required")
        return
    try:
        parse_cronexpr(schedule)
    except ValueSyntaxError as error:
        text = f"schedule spec in the deletingPolicy is not in proper cron format: {error.message}"
        findings.error("schedule", path, text)


def _check_reference(reference: ImageReference, findings: Findings) -> None:
    if not reference.glob and reference.expression is None:
        findings.error("image-reference", reference.path, "either glob or expression must be set")
    elif reference.glob and reference.expression is not None:
        findings.error("image-reference", reference.path, "only one of glob or expression can be set")


def _check_attestor(attestor: Attestor, findings: Findings) -> None:
    cosign, notary = attestor.cosign, attestor.notary
    if (cosign is None) == (notary is None):
        findings.error("attestor", attestor.path, "exactly one of cosign or notary must be set")
    given: list[Given | None] = []
    if notary is not None:
        given += [notary.certs, notary.tsa_certs]
    if cosign is not None:
        given.append(cosign.trusted_root)
        if cosign.certificate is not None:
            given += [cosign.certificate.cert, cosign.certificate.cert_chain]
    for each in given:
        if each is not None and bool(each.value) == (each.expression is not None):
            findings.error("attestor", each.path, "exactly one of value or expression must be set")
