"""Reviews of policies and exceptions: refusals, their messages, and warnings."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pyverno.errors import HostError
from pyverno.kube.admissionreview import AdmissionRequest, AdmissionResponse
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.webhook.policyreviews import DocumentReviews, ExceptionSettings
from tests.support.webhookserver import review_body

RULE: JSONObject = {
    "name": "check",
    "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
    "validate": {"failureAction": "Enforce", "message": "no", "pattern": {"metadata": {"labels": {"a": "?*"}}}},
}


def ask(
    resource: JSONObject, path: str = "/policyvalidate", settings: ExceptionSettings | None = None, **request: Any
) -> AdmissionResponse:
    """Return the response to a request on a Kyverno object."""
    reviews = DocumentReviews(lambda: BUILTIN_KINDS, settings or ExceptionSettings())
    body = review_body(resource, **request)["request"]
    admission_request = AdmissionRequest("admission.k8s.io/v1", "uid", body)
    return asyncio.run(reviews.paths()[path](admission_request))


def policy(rule: JSONObject) -> JSONObject:
    """Return a ClusterPolicy with one rule."""
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "check"},
        "spec": {"rules": [rule]},
    }


def test_a_valid_policy_is_taken_with_the_advice_to_migrate() -> None:
    """All legacy kinds have this warning, as in Kyverno."""
    answer = ask(policy(RULE))
    assert answer.allowed
    assert [
        "ClusterPolicy (kyverno.io) is deprecated and will be removed in a future release; migrate to "
        "ValidatingPolicy, MutatingPolicy, GeneratingPolicy or ImageValidatingPolicy (policies.kyverno.io), see "
        "https://kyverno.io/docs/guides/migration-to-cel/"
    ] == list(answer.warnings)


BAD: list[tuple[JSONObject, str]] = [
    (
        {**RULE, "validate": {"patern": {}}},
        "spec.rules[0].validate.patern: unknown field `patern`: did you mean `pattern`?",
    ),
    ({**RULE, "match": {}}, "spec.rules[0].match"),
    ({**RULE, "validate": {"pattern": {"a": "{{ nonsense }}"}}}, "spec.rules[0]: policy contains invalid variables"),
]


@pytest.mark.parametrize(("rule", "text"), BAD)
def test_a_policy_that_does_not_compile_is_refused_with_its_field(rule: JSONObject, text: str) -> None:
    """The message has the path of the field and no invented file position."""
    answer = ask(policy(rule))
    assert not answer.allowed
    assert answer.message.startswith(text)
    assert ":1:1" not in answer.message


def test_every_error_of_a_policy_in_cel_is_a_warning_as_well() -> None:
    """As in Kyverno, in the words of the API server; the expression that follows an error stays in the message."""
    answer = ask(
        {
            "apiVersion": "policies.kyverno.io/v1",
            "kind": "ValidatingPolicy",
            "metadata": {"name": "p"},
            "spec": {"validations": [{"expression": "object.+"}]},
        }
    )
    required = "spec.matchConstraints: Required value: a matchConstraints with at least one resource rule is required"
    assert (False, required) == (answer.allowed, answer.warnings[0])
    assert [line for line in answer.message.splitlines() if line.startswith("spec.")] == list(answer.warnings[:2])


def test_mistakes_that_lints_find_are_warnings() -> None:
    """The policy is stored, because the author may intend it."""
    pattern = {"spec": {"=(hostPid)": False}}
    answer = ask(policy({**RULE, "validate": {"message": "no", "pattern": pattern}}))
    place = "PV104 spec.rules[0].validate.pattern.spec[=(hostPid)]"
    assert (True, f"{place}: Pod has no field `hostPid` here: did you mean `hostPID`?") == (
        answer.allowed,
        answer.warnings[0],
    )


def test_a_pattern_that_is_nested_too_deeply_is_no_crash() -> None:
    """The compiler reports the depth, so lints skip the pattern."""
    pattern: JSONObject = {}
    for _ in range(3000):
        pattern = {"spec": pattern}
    answer = ask(policy({**RULE, "validate": {"message": "no", "pattern": pattern}}))
    assert not answer.allowed


def test_an_update_of_the_status_is_not_checked() -> None:
    """Controllers write the status; the spec is unchanged."""
    assert ask(policy({**RULE, "match": {}}), subResource="status").allowed
    assert ask(policy({**RULE, "match": {}}), operation="DELETE", object=None).allowed


def test_kinds_that_the_cluster_does_not_serve_are_warned_about() -> None:
    """A CRD may be installed later, so the policy is stored."""
    answer = ask(policy({**RULE, "match": {"any": [{"resources": {"kinds": ["Nonesuch"]}}]}}))
    assert answer.allowed
    assert any("Nonesuch" in warning for warning in answer.warnings)


EXCEPTION: JSONObject = {
    "apiVersion": "kyverno.io/v2",
    "kind": "PolicyException",
    "metadata": {"name": "allow", "namespace": "team"},
    "spec": {
        "exceptions": [{"policyName": "check", "ruleNames": ["check"]}],
        "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
    },
}


@pytest.mark.parametrize(
    ("settings", "warning"),
    [
        (ExceptionSettings(), "PolicyException resources would not be processed until it is enabled."),
        (ExceptionSettings(enabled=True), "The exceptionNamespace flag is not set"),
        (
            ExceptionSettings(enabled=True, namespace="other"),
            "PolicyException resource namespace must match the defined namespace.",
        ),
    ],
)
def test_an_exception_without_effect_is_warned_about(settings: ExceptionSettings, warning: str) -> None:
    """It is stored, because a matching policy may be created later."""
    answer = ask(EXCEPTION, "/exceptionvalidate", settings)
    assert answer.allowed
    assert warning == answer.warnings[0]


def test_an_exception_that_works_is_taken_without_that_warning() -> None:
    """`*` allows every namespace."""
    warnings = ask(EXCEPTION, "/exceptionvalidate", ExceptionSettings(enabled=True, namespace="*")).warnings
    assert all("PolicyException resource" not in warning for warning in warnings)


def test_policies_are_never_changed() -> None:
    """The path exists only because the webhook configurations name it."""
    assert AdmissionResponse() == ask(policy(RULE), "/policymutate")


def test_a_valid_policy_is_refused_for_reasons_of_the_cluster() -> None:
    """The response has all reasons; an invalid policy is refused for its form first."""

    async def refusals(policy: ClusterPolicy) -> tuple[str, ...]:
        return (f"{policy.name} asks too much", "and more")

    def answer(body: JSONObject) -> AdmissionResponse:
        reviews = DocumentReviews(lambda: BUILTIN_KINDS, ExceptionSettings(), refusals)
        return asyncio.run(reviews.review(AdmissionRequest("admission.k8s.io/v1", "uid", review_body(body)["request"])))

    refused = answer(policy(RULE))
    assert (False, "check asks too much\nand more") == (refused.allowed, refused.message)
    assert "asks too much" not in answer(policy({**RULE, "match": {}})).message


def test_advice_about_the_cluster_is_a_warning_of_a_valid_policy() -> None:
    """The policy is stored although an account lacks permissions for its reports."""

    async def advice(policy: ClusterPolicy) -> tuple[str, ...]:
        return (f"{policy.name} will have no reports",)

    reviews = DocumentReviews(lambda: BUILTIN_KINDS, ExceptionSettings(), advice=advice)
    request = AdmissionRequest("admission.k8s.io/v1", "uid", review_body(policy(RULE))["request"])
    answer = asyncio.run(reviews.review(request))
    assert (True, "check will have no reports") == (answer.allowed, answer.warnings[-1])


@pytest.mark.parametrize(
    ("error", "text"), [(HostError("away"), "away"), (KeyError("canary"), "internal error (fault-missing)")]
)
def test_advice_that_cannot_be_had_refuses_no_policy(error: Exception, text: str) -> None:
    """Only warnings depend on it: an API server that does not answer, or a bug, is a warning of its own."""

    async def advice(policy: ClusterPolicy) -> tuple[str, ...]:
        raise error

    reviews = DocumentReviews(lambda: BUILTIN_KINDS, ExceptionSettings(), advice=advice)
    request = AdmissionRequest("admission.k8s.io/v1", "uid", review_body(policy(RULE))["request"])
    answer = asyncio.run(reviews.review(request))
    expected = f"what this policy needs of the cluster could not be checked: {text}"
    assert (True, expected) == (answer.allowed, answer.warnings[-1])


@pytest.mark.parametrize("kind", ["Deployment/scale", "Pod.exec", "*/scale", "*/*", "apps/v1/Deployment/s*"])
def test_kinds_with_subresources_need_admission_only(kind: str) -> None:
    """Background scans do not cover subresources; a wildcard that matches some is refused like a name."""
    rule = {**RULE, "match": {"any": [{"resources": {"kinds": [kind]}}]}}
    body = policy(rule)
    refused = ask(body)
    text = f"spec.rules[0].match.any[0].resources.kinds[0]: background scan enabled with subresource {kind}"
    assert (False, text) == (refused.allowed, refused.message)
    assert ask({**body, "spec": {**body["spec"], "background": False}}).allowed


@pytest.mark.parametrize("kind", ["Nonesuch", "None*", "Pod/nonesuch", "autoscaling/v1/Scale"])
def test_a_kind_that_the_cluster_does_not_serve_is_a_warning(kind: str) -> None:
    """The text is Kyverno's; subresources and wildcards are resolved as well."""
    answer = ask(policy({**RULE, "match": {"any": [{"resources": {"kinds": [kind]}}]}}))
    text = f"unable to convert GVK to GVR for kinds {kind}, err: resource not found"
    assert [f"the kind defined in the all match resource is invalid: {text}"] == [
        each for each in answer.warnings if "GVK" in each
    ]
