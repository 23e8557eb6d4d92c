"""Tests of `validation.pods`."""

from __future__ import annotations

import pytest

from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.validation.cases import claims, errors_of, prepared, refusals

ROWS = refusals("pods")


@pytest.mark.parametrize(("body", "expected"), ROWS, ids=claims(ROWS))
def test_what_is_wrong_is_said_in_the_words_of_an_api_server(body: JSONObject, expected: list[str]) -> None:
    """Every row of the table is refused with exactly these errors."""
    assert sorted(expected) == sorted(errors_of(body))


def _pod(**spec: object) -> JSONObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "a", "image": "x"}], **spec},
    }


def test_the_image_of_a_pod_may_change() -> None:
    """Images, nearer deadlines and more tolerations are what may change."""
    old = prepared(_pod())
    assert [] == errors_of(_pod(containers=[{"name": "a", "image": "y"}]), old)
    assert [] == errors_of(_pod(activeDeadlineSeconds=5), old)
    assert [] == errors_of(_pod(tolerations=[{"key": "k", "operator": "Exists"}]), old)


@pytest.mark.parametrize(
    ("spec", "beginning"),
    [
        ({"containers": []}, "spec.containers: Required value"),
        (
            {"hostNetwork": True},
            "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`",
        ),
        ({"containers": [{"name": "a", "image": "x"}] * 2}, 'spec.containers[1].name: Duplicate value: "a"'),
    ],
)
def test_the_rest_of_a_pod_may_not_change(spec: dict[str, object], beginning: str) -> None:
    """The text lists what may change."""
    errors = errors_of(_pod(**spec), prepared(_pod()))
    assert errors[0].startswith(beginning)


def test_a_toleration_stays() -> None:
    """It may get another duration only."""
    old = prepared(_pod(tolerations=[{"key": "k", "operator": "Exists"}]))
    expected = "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"
    assert [expected] == errors_of(_pod(), old)


def test_a_deadline_only_comes_nearer() -> None:
    """The deadline can be neither extended nor removed."""
    old = prepared(_pod(activeDeadlineSeconds=5))
    assert [] == errors_of(_pod(activeDeadlineSeconds=4), old)
    later = "spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous value"
    assert [later] == errors_of(_pod(activeDeadlineSeconds=6), old)


def test_a_pod_may_end_at_once() -> None:
    """A grace period of zero is a value, not a missing field."""
    assert [] == errors_of(_pod(terminationGracePeriodSeconds=0))
