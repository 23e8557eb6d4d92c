"""The spec of the pod in a request."""

from __future__ import annotations

import pytest

from kubesandbox.admission.plugins.pods import each_container, is_pod_write, pod_spec, with_spec
from pyverno.engine.request import Operation
from tests.support.admissionstage import config_map, pod, request


@pytest.mark.parametrize(
    ("body", "changes", "expected"),
    [
        (pod(), {}, True),
        (pod(), {"subresource": "status"}, False),
        (pod(), {"operation": Operation.UPDATE}, False),
        (config_map(), {}, False),
    ],
)
def test_only_pods_themselves_count(body, changes, expected):
    """No subresource, no other operation, no other kind."""
    assert expected is is_pod_write(request(body, **changes), Operation.CREATE)


def test_changes_make_new_values():
    """The request and its object stay as they are."""
    attributes = request(pod({"name": "a"}, initContainers=[{"name": "i"}]))
    spec = pod_spec(attributes)
    changed = with_spec(attributes, each_container(spec, lambda each: {**each, "image": "x"}))
    assert [("a", "x")] == [(each["name"], each["image"]) for each in pod_spec(changed)["containers"]]
    assert [("i", "x")] == [(each["name"], each["image"]) for each in pod_spec(changed)["initContainers"]]
    assert {"name": "a"} == pod_spec(attributes)["containers"][0]
    assert {} == pod_spec(request({**pod(), "spec": None}))
