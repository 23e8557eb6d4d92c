"""Tests of `kubesandbox.objects.qos`."""

from __future__ import annotations

import pytest

from kubesandbox.objects.qos import qos_class
from pyverno.kube.json import JSONObject

FULL = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ([{}], "BestEffort"),
        ([{"limits": {"cpu": "0"}}], "BestEffort"),
        ([{"limits": {"ephemeral-storage": "1Gi"}}], "BestEffort"),
        ([{"requests": {"cpu": "1"}}], "Burstable"),
        ([{"limits": FULL, "requests": {"cpu": "500m", "memory": "1Gi"}}], "Burstable"),
        ([{"limits": FULL}, {}], "Burstable"),
        ([{"limits": FULL, "requests": {"cpu": "1000m", "memory": "1024Mi"}}], "Guaranteed"),
        ([{"limits": FULL}, {"limits": FULL, "requests": FULL}], "Guaranteed"),
    ],
)
def test_the_class_follows_from_requests_and_limits(resources: list[JSONObject], expected: str) -> None:
    """Only CPU and memory count, compared by value."""
    assert expected == qos_class({"containers": [{"resources": each} for each in resources]})


def test_the_requests_of_the_pod_count_first() -> None:
    """Resources of the pod itself precede those of its containers."""
    assert "Guaranteed" == qos_class({"resources": {"limits": FULL}, "containers": [{}]})
