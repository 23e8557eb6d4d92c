"""PolicyExceptions for CEL policies: policies that they name, expiry and priority."""

import pytest

from pyverno.kube.time.gotime import parse_rfc3339
from pyverno.policy.cel.exception import CelException, ReportResult
from pyverno.policy.decode import decode
from tests.unit.policy.documents import document, problems

TEXT = """\
apiVersion: policies.kyverno.io/{version}
kind: PolicyException
metadata: {{name: e, namespace: team, labels: {{{labels}}}}}
spec:
  policyRefs: [{{name: p, kind: ValidatingPolicy}}]
{lines}
"""


def written(lines="", *, labels="", version="v1"):
    return TEXT.format(lines=lines, labels=labels, version=version)


def exception(lines="", *, labels="", version="v1"):
    result = decode(document(written(lines, labels=labels, version=version)))
    assert result.errors == ()
    assert isinstance(result.policy, CelException)
    return result.policy


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha1"])
def test_it_decodes_in_every_version(version):
    """By default an exception never expires, exempts fully and reports a skip."""
    found = exception(version=version)
    assert (found.spec.expires_at, found.spec.report_result, found.is_partial) == (None, ReportResult.SKIP, False)


def test_policies_are_named_exactly_by_name_and_kind():
    """Wildcards and namespaced twins are other names."""
    found = exception()
    asked = [("ValidatingPolicy", "p"), ("NamespacedValidatingPolicy", "p"), ("ValidatingPolicy", "q")]
    assert [found.names(*each) for each in asked] == [True, False, False]


@pytest.mark.parametrize("line", ["  images: ['ghcr.io/*']", "  allowedValues: [x]"])
def test_allowed_lists_make_it_partial(line):
    """An exception that lists allowed values or images does not stop the policies from running."""
    assert exception(line).is_partial


def test_a_time_that_yaml_would_read_stays_a_text():
    """An unquoted time is the same as a quoted one."""
    found = exception("  expiresAt: 2026-05-01T00:00:00Z")
    assert found.spec.expires_at == parse_rfc3339("2026-05-01T00:00:00Z")


@pytest.mark.parametrize(("label", "expected"), [("'7'", 7), ("'-3'", -3), ("high", 0), ("'1e3'", 0), ("'\uff17'", 0)])
def test_the_priority_is_a_number_in_a_label(label, expected):
    """A label that is not a number counts as no priority."""
    assert exception(labels=f"polex.kyverno.io/priority: {label}").priority == expected


def test_conditions_know_their_place():
    """The path leads to the condition."""
    (condition,) = exception("  matchConditions: [{name: c, expression: 'true'}]").spec.match_conditions
    assert condition.path == ("spec", "matchConditions", 0)


@pytest.mark.parametrize(
    ("lines", "code", "path"),
    [
        ("  expiresAt: tomorrow", "time", "spec.expiresAt"),
        ("  expiresAt: 5", "wrong-type", "spec.expiresAt"),
        ("  reportResult: fail", "unknown-value", "spec.reportResult"),
        ("  exceptions: []", "unknown-field", "spec.exceptions"),
        ("  properties: {a: 1}", "wrong-type", "spec.properties.a"),
    ],
)
def test_what_the_schema_refuses_is_located(lines, code, path):
    """An invalid expiry is an error: the exception must not become permanent."""
    assert [(code, path)] == [found[:2] for found in problems(written(lines))]
