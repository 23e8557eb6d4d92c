"""Exceptions from CEL policies narrow only, in force only while they last."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pyverno.engine.result import Status
from pyverno.errors import HostUnavailableError
from pyverno.offline.host import OfflineHost
from tests.support.celpolicies import (
    CONFIG_MAP,
    ERROR,
    ask,
    conditions,
    exception,
    kyverno,
    named,
    said,
    validations,
)

FAILING = kyverno(validations=validations("false", message="no"))
DENIED = [("fail", "no")]
SKIPPED = [("skip", "rule is skipped due to policy exception: team/let")]
PASSED = [("pass", "rule is passed due to policy exception: team/let")]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, SKIPPED),
        ({"reportResult": "skip"}, SKIPPED),
        ({"reportResult": "pass"}, PASSED),
        ({"matchConditions": conditions("object.metadata.name == 'settings'", "true")}, SKIPPED),
        ({"matchConditions": conditions("object.metadata.name == 'settings'", "false")}, DENIED),
        ({"matchConditions": conditions(ERROR, "false")}, DENIED),
        ({"matchConditions": conditions(ERROR)}, [("error", "failed to load context: no such key: missing")]),
    ],
)
def test_an_exception_exempts_when_all_its_conditions_are_true(spec, expected):
    """A false condition wins over errors; errors alone are errors of the policy."""
    assert expected == said(ask(FAILING, exception(**spec)))


def test_an_exception_that_can_not_be_judged_does_not_exempt_when_errors_are_ignored():
    """The failure policy of the policy decides, as about its own conditions."""
    policy = kyverno(failurePolicy="Ignore", validations=validations("false", message="no"))
    assert DENIED == said(ask(policy, exception(matchConditions=conditions(ERROR))))


@pytest.mark.parametrize(
    "other",
    [exception(policy="another"), exception(kind="MutatingPolicy"), exception(kind="NamespacedValidatingPolicy")],
)
def test_an_exception_is_for_the_policies_that_it_names(other):
    """By name and kind, both exact."""
    assert DENIED == said(ask(FAILING, other))


@dataclass(frozen=True)
class At:
    """A host whose time never changes; None means that it has no clock."""

    time: int | None

    def now(self) -> int:
        if self.time is None:
            raise HostUnavailableError("no clock")
        return self.time

    def random_bits(self, bits: int) -> int:
        return 0

    def lookup_host(self, name: str) -> tuple[str, ...]:
        return ()


@pytest.mark.parametrize(
    ("time", "expected"),
    [(1_767_225_599_999_999_999, SKIPPED), (1_767_225_600_000_000_000, DENIED), (None, DENIED)],
)
def test_an_exception_ends_when_it_expires(time, expected):
    """Expiry is exact to the nanosecond; without a clock the exception is not known to hold."""
    let = exception(expiresAt="2026-01-01T00:00:00Z")
    assert expected == said(ask(FAILING, let, host=OfflineHost(system=At(time))))


def test_exceptions_that_allow_values_are_tried_alone():
    """The policy is evaluated once per exception: allowed values of two exceptions never add up."""
    policy = kyverno(
        variables=named(bad="['a', 'b'].filter(v, !(v in exceptions.allowedValues))"),
        validations=validations("size(variables.bad) == 0", messageExpression="string(size(variables.bad))"),
    )
    first, second = exception("one", allowedValues=["a"]), exception("two", allowedValues=["b"])
    both = exception("both", allowedValues=["a", "b"])
    assert [("fail", "2")] == said(ask(policy, first, second))
    assert [("pass", "success")] == said(ask(policy, first, both, second))
    assert [("pass", "success")] == said(ask(policy, both, first))


@pytest.mark.parametrize(("report", "status"), [("skip", "skip"), ("pass", "pass")])
def test_audit_annotations_of_an_exempt_request_are_not_computed(report, status):
    """An exception for another policy leaves the audit annotations in place."""
    annotations = [{"key": "seen", "valueExpression": "string(object.metadata.name)"}]
    policy = kyverno(validations=validations("true"), auditAnnotations=annotations)
    (result,) = ask(policy, exception(reportResult=report)).results
    assert (status, {}) == (result.status.value, dict(result.properties))
    (result,) = ask(policy, exception(policy="other")).results
    assert {"seen": "settings"} == dict(result.properties)


def test_the_keys_of_exceptions_are_in_the_result():
    """A report names what exempted."""
    (result,) = ask(FAILING, exception("a"), exception("b")).results
    assert (Status.SKIP, ("team/a", "team/b")) == (result.status, result.exceptions)


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("MutatingPolicy", {"mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{}]"}}]}),
        ("GeneratingPolicy", {"generate": [{"expression": "generator.Apply('x', [])"}]}),
    ],
)
def test_every_kind_of_policy_has_exceptions(kind, spec):
    """They skip the policy before anything of it is evaluated."""
    assert SKIPPED == said(ask(kyverno(kind, **spec), exception(kind=kind)))


def test_an_exempted_object_is_not_deleted():
    """Any exception that applies keeps the object."""
    policy = kyverno("DeletingPolicy", schedule="* * * * *", conditions=conditions("true"))
    let = exception(kind="DeletingPolicy", matchConditions=conditions("object.metadata.name == 'settings'"))
    assert [("fail", "resource did not match")] == said(ask(policy, let, deleting=True))
    other = {**CONFIG_MAP, "metadata": {"name": "other", "namespace": "team"}}
    review = ask(policy, let, deleting=True, resource=other)
    assert [("pass", "resource matched")] == said(review)
    assert 1 == len(review.effects)


def test_results_of_deletions_have_the_name_of_the_policy_and_the_bare_error():
    """An exception changes the name of other results only, and its errors stand alone as those of conditions do."""
    policy = kyverno("DeletingPolicy", schedule="* * * * *", conditions=conditions("true"))
    kept = ask(policy, exception(kind="DeletingPolicy"), deleting=True)
    assert [("check", "resource did not match")] == [(each.rule_name, each.message) for each in kept.results]
    unclear = exception(kind="DeletingPolicy", matchConditions=conditions(ERROR))
    assert [("error", "no such key: missing")] == said(ask(policy, unclear, deleting=True))


def test_an_error_in_conditions_of_a_cleanup_policy_is_the_only_result():
    """Nothing is deleted, and the text is that of the variable."""
    condition = {"key": "{{ target.missing }}", "operator": "Equals", "value": "x"}
    spec = {
        "schedule": "* * * * *",
        "match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]},
        "conditions": {"all": [condition]},
    }
    policy = {
        "apiVersion": "kyverno.io/v2",
        "kind": "ClusterCleanupPolicy",
        "metadata": {"name": "check"},
        "spec": spec,
    }
    ((status, message),) = said(ask(policy, deleting=True))
    assert ("error", "failed to substitute variables in condition key") == (status, message.partition(": ")[0])
