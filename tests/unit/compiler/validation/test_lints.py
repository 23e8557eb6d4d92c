"""Valid policies that are probably not meant so are warned about."""

import pytest

from pyverno.compiler.autogen.patterns import expand
from pyverno.compiler.validation.lints import deprecation_warning, exception_warnings, lint
from pyverno.policy.decode import decode
from tests.unit.policy.documents import POLICY, cluster_policy, document


def warnings(text: str) -> list[str]:
    policy = cluster_policy(text)
    return [warning.split(".")[0] for warning in lint(policy, expand(policy))]


ANNOTATED = POLICY.replace(
    "name: check", "name: check\n  annotations: {pod-policies.kyverno.io/autogen-controllers: %s}", 1
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (POLICY, []),
        (ANNOTATED % "none", []),
        (ANNOTATED % "'DaemonSet,Deployment,Job,StatefulSet,CronJob'", []),
        (
            ANNOTATED % "Deployment",
            [
                "Policies that match Pods apply to all Pods including those created and "
                "managed by controllers excluded from autogen"
            ],
        ),
        (
            POLICY.replace("  rules:", "  validationFailureAction: enforce\n  rules:"),
            ["Validation failure actions enforce/audit are deprecated, use Enforce/Audit instead"],
        ),
        (
            POLICY.replace("hostNetwork: false", "replicas: 1"),
            ["You are matching on replicas but not including the scale subresource in the policy"],
        ),
        (
            POLICY.replace("spec:\n            hostNetwork: false", "status: {a: b}"),
            ["You are matching on status but not including the status subresource in the policy"],
        ),
        (
            POLICY.partition("        pattern:")[0]
            + "        deny: {conditions: {any: [{key: a, operator: In, value: b}]}}\n",
            ["Operator In has been deprecated and will be removed soon"],
        ),
    ],
)
def test_each_lint_has_its_text(text, expected):
    """A warning is reported once, however many autogen copies the rule has."""
    assert warnings(text) == expected


def test_a_legacy_kind_names_its_replacement():
    """Admission advises to move on."""
    policy = cluster_policy(POLICY)
    assert deprecation_warning(policy) == (
        "ClusterPolicy (kyverno.io) is deprecated and will be removed in a future release; migrate to "
        "ValidatingPolicy, MutatingPolicy, GeneratingPolicy or ImageValidatingPolicy (policies.kyverno.io), "
        "see https://kyverno.io/docs/guides/migration-to-cel/"
    )


EXCEPTION = """\
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: x, namespace: team}
spec:
  match: {any: [{resources: {kinds: [Pod]}}]}
  exceptions: [{policyName: p, ruleNames: ["*"]}]
"""


@pytest.mark.parametrize(
    ("enabled", "namespace", "expected"),
    [
        (False, "*", ("PolicyException resources would not be processed until it is enabled.",)),
        (True, "", ("The exceptionNamespace flag is not set",)),
        (True, "other", ("PolicyException resource namespace must match the defined namespace.",)),
        (True, "team", ()),
        (True, "*", ()),
    ],
)
def test_an_exception_without_effect_is_warned_about(enabled, namespace, expected):
    """Exceptions work when enabled and in the right namespace only."""
    exception = decode(document(EXCEPTION)).policy
    assert exception_warnings(exception, enabled=enabled, namespace=namespace) == expected
