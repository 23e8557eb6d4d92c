"""The status that a kubelet gives its pods."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kubesandbox.controllers.nodes.podstatus import image_name, is_changed, running_status
from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.controllers.cluster import START, pod


def running(body: JSONObject) -> JSONObject:
    return {**body, "status": running_status(body, address="10.244.0.9", host="172.18.0.2", now=START)}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("nginx", "docker.io/library/nginx:latest"),
        ("acme/web:1", "docker.io/acme/web:1"),
        ("localhost:5000/web:1", "localhost:5000/web:1"),
        ("ghcr.io/a/b@sha256:" + "0" * 64, "ghcr.io/a/b@sha256:" + "0" * 64),
        ("Not An Image", "Not An Image"),
    ],
)
def test_images_have_their_full_names(written: str, expected: str) -> None:
    """As a container runtime reports them; what is no reference stays as it is."""
    assert expected == image_name(written)


def test_a_status_is_stable() -> None:
    """Computed again later it is the same, so nothing is written."""
    body = running(pod("web"))
    later = running_status(body, address="10.244.0.9", host="172.18.0.2", now=START + timedelta(hours=1))
    assert body["status"] == later
    assert not is_changed(body)


def test_what_was_said_before_stays() -> None:
    """The quality of service, and a condition of another writer."""
    own = {"type": "example.com/x", "status": "True"}
    body = {**pod("web"), "status": {"qosClass": "BestEffort", "conditions": [own]}}
    status = running(body)["status"]
    assert ("BestEffort", own) == (status["qosClass"], status["conditions"][0])
