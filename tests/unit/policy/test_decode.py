"""Documents become policies of their kind, or errors with stable codes."""

import pytest

from pyverno.policy.cleanup import CleanupPolicy
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.decode import decode
from pyverno.policy.exception import PolicyException
from pyverno.policy.globalcontext import GlobalContextEntry
from tests.unit.policy.documents import POLICY, document, problems

HEAD = "apiVersion: {}\nkind: {}\nmetadata: {{name: x, namespace: team}}\nspec: "
MATCH = "{any: [{resources: {kinds: [Pod]}}]}"


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "expected"),
    [
        ("kyverno.io/v1", "Policy", "{rules: []}", ClusterPolicy),
        ("kyverno.io/v2beta1", "ClusterPolicy", "{rules: []}", ClusterPolicy),
        ("kyverno.io/v2", "CleanupPolicy", f"{{schedule: '* * * * *', match: {MATCH}}}", CleanupPolicy),
        ("kyverno.io/v2beta1", "ClusterCleanupPolicy", f"{{schedule: '* * * * *', match: {MATCH}}}", CleanupPolicy),
        (
            "kyverno.io/v2",
            "PolicyException",
            f"{{match: {MATCH}, exceptions: [{{policyName: p, ruleNames: ['*']}}]}}",
            PolicyException,
        ),
        (
            "kyverno.io/v2alpha1",
            "GlobalContextEntry",
            "{kubernetesResource: {version: v1, resource: pods}}",
            GlobalContextEntry,
        ),
    ],
)
def test_each_kind_has_its_type(api_version, kind, spec, expected):
    """Every supported kind and version decodes."""
    decoded = decode(document(HEAD.format(api_version, kind) + spec))
    assert decoded.errors == ()
    assert type(decoded.policy) is expected


@pytest.mark.parametrize(
    ("api_version", "kind", "code"),
    [
        ("policies.kyverno.io/v9", "ValidatingPolicy", "unknown-version"),
        ("admissionregistration.k8s.io/v9", "ValidatingAdmissionPolicy", "unknown-version"),
        ("kyverno.io/v9", "ClusterPolicy", "unknown-version"),
        ("kyverno.io/v1", "ClusterPolice", "unknown-kind"),
        ("v1", "Pod", "unknown-kind"),
    ],
)
def test_other_kinds_have_stable_codes(api_version, kind, code):
    """The error code states why the document cannot be decoded."""
    assert [found for found, _, _ in problems(HEAD.format(api_version, kind) + "{}")] == [code]


def test_a_document_that_is_no_object_is_an_error():
    """A list is not a policy."""
    assert problems("[1]") == [
        ("wrong-type", "", "expected an object, found a list: write it without `- ` or brackets")
    ]


def test_missing_type_is_an_error():
    """A document without apiVersion or kind is not decoded."""
    assert [path for _, path, _ in problems("metadata: {name: x}")] == ["", ""]


def test_a_misspelled_kind_gets_a_suggestion():
    """Near kinds of the same group are suggested."""
    ((_, _, message),) = problems(POLICY.replace("ClusterPolicy", "ClusterPolicies"))
    assert message.endswith("did you mean `ClusterPolicy`?")
