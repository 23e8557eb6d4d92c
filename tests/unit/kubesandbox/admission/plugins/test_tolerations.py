"""DefaultTolerationSeconds."""

from __future__ import annotations

import pytest

from kubesandbox.admission.plugins.tolerations import admit_tolerations
from tests.support.admissionstage import config_map, pod, request

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


@pytest.mark.parametrize(
    ("present", "added"),
    [
        ([], [NOT_READY, UNREACHABLE]),
        ([{"key": NOT_READY, "operator": "Exists", "effect": "NoExecute"}], [UNREACHABLE]),
        ([{"key": UNREACHABLE, "operator": "Exists"}], [NOT_READY]),
        ([{"key": UNREACHABLE, "effect": "NoSchedule"}], [NOT_READY, UNREACHABLE]),
        ([{"operator": "Exists"}], []),
    ],
)
def test_pods_tolerate_trouble_of_nodes_for_five_minutes(present, added):
    """A pod's own tolerations are kept, and missing ones are added."""
    body = pod(tolerations=present) if present else pod()
    found = admit_tolerations(request(body)).object["spec"].get("tolerations", [])
    expected = [{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300} for key in added]
    assert [*present, *expected] == found


def test_other_objects_are_left_alone():
    """Only pods have tolerations."""
    attributes = request(config_map())
    assert attributes is admit_tolerations(attributes)
