"""Policies of Jobs."""

from __future__ import annotations

import pytest

from kubesandbox.controllers.workloads.jobpolicies import failing_message, failure_of, is_failed_pod, matched_success
from pyverno.kube.json import JSON, JSONObject


def job(*rules: JSONObject, **spec: JSON) -> JSONObject:
    return {"spec": {**({"podFailurePolicy": {"rules": [*rules]}} if rules else {}), **spec}}


def failed(code: int = 1, *conditions: JSONObject, name: str = "main", **metadata: JSON) -> JSONObject:
    ended = {"name": name, "state": {"terminated": {"exitCode": code}}}
    status = {"phase": "Failed", "containerStatuses": [ended], "conditions": [*conditions]}
    return {"metadata": {"name": "p", "namespace": "n", **metadata}, "status": status}


def codes(action: str, operator: str, *values: int, **more: str) -> JSONObject:
    return {"action": action, "onExitCodes": {"operator": operator, "values": [*values], **more}}


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([], ""),
        ([codes("Ignore", "In", 1)], "Ignore"),
        ([codes("Ignore", "In", 2)], ""),
        ([codes("Count", "NotIn", 2)], "Count"),
        ([codes("FailIndex", "NotIn", 1), codes("Count", "In", 1)], "Count"),
        ([codes("Ignore", "In", 1, containerName="other")], ""),
        ([codes("Ignore", "In", 1, containerName="main")], "Ignore"),
    ],
)
def test_the_first_rule_that_fits_says_what_a_failure_is(rules: list[JSONObject], expected: str) -> None:
    """Only what is ignored does not count."""
    found = failure_of(job(*rules), failed(1))
    assert (expected, expected != "Ignore") == (found.action, found.is_counted)


def test_containers_that_succeeded_fit_no_rule() -> None:
    """Also where their code is not among those that are named."""
    assert "" == failure_of(job(codes("FailJob", "NotIn", 3)), failed(0)).action


def test_conditions_fit_by_type_and_status() -> None:
    """True where a rule names none."""
    rule = {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget"}]}
    there = {"type": "DisruptionTarget", "status": "True"}
    assert "Pod n/p has condition DisruptionTarget matching FailJob rule at index 0" == failing_message(
        job(rule), [failed(1, there)]
    )
    assert "" == failing_message(job(rule), [failed(1, {**there, "status": "False"})])


def test_a_job_fails_for_a_container() -> None:
    """It is named with its code; without a policy nothing is said."""
    rule = codes("FailJob", "In", 42)
    assert "Container main for pod n/p failed with exit code 42 matching FailJob rule at index 1" == failing_message(
        job(codes("Count", "In", 1), rule), [failed(1), failed(42)]
    )
    assert "" == failing_message(job(), [failed(42)])


def test_deleted_pods_are_failures_unless_only_failed_ones_are_replaced() -> None:
    """Which is what a failure policy needs as well."""
    leaving = {"metadata": {"deletionTimestamp": "2030-01-01T12:00:00Z"}, "status": {"phase": "Running"}}
    assert is_failed_pod(leaving, job())
    assert not is_failed_pod(leaving, job(podReplacementPolicy="Failed"))
    assert not is_failed_pod(leaving, job(codes("Count", "In", 1)))
    assert not is_failed_pod({**leaving, "status": {"phase": "Succeeded"}}, job())


@pytest.mark.parametrize(
    ("rules", "succeeded", "expected"),
    [
        ([{"succeededCount": 2}], {1}, ""),
        ([{"succeededCount": 2}], {1, 4}, "Matched rules at index 0"),
        ([{"succeededIndexes": "0"}, {"succeededIndexes": "2-3"}], {2, 3}, "Matched rules at index 1"),
        ([{"succeededIndexes": "2-3"}], {2, 4}, ""),
        ([{"succeededIndexes": "2-9", "succeededCount": 1}], {3}, "Matched rules at index 0"),
        ([{"succeededIndexes": "8-9"}], {3}, ""),  # there are only five completions
    ],
)
def test_enough_has_succeeded(rules: list[JSONObject], succeeded: set[int], expected: str) -> None:
    """By number, by count, or so many out of these."""
    assert expected == matched_success(job(completions=5, successPolicy={"rules": rules}), succeeded)
