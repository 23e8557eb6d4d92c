"""TTL labels, cleanup policies and the heartbeat at the webhook."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from pyverno.kube.admissionreview import AdmissionRequest, AdmissionResponse
from pyverno.kube.kinds import BUILTIN_KINDS
from pyverno.webhook.cleanupreviews import cleanup_paths, review_ttl
from pyverno.webhook.heartbeat import heartbeat_review
from pyverno.webhook.policyreviews import DocumentReviews, ExceptionSettings


def labelled(*, text: Any = None, **request: Any) -> AdmissionRequest:
    """Return a request on an object with a TTL label."""
    labels = {} if text is None else {"cleanup.kyverno.io/ttl": text}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": labels}}
    return AdmissionRequest("admission.k8s.io/v1", "1", {"operation": "CREATE", "object": body, **request})


@pytest.mark.parametrize("text", [None, "1h", "3d12h", "2w", "-1m", "2026-11-22T100000Z", "2026-11-22", "1.5h", 3])
def test_a_valid_time_to_live_has_no_warning(text: Any) -> None:
    """A request without an object has no warning either."""
    assert AdmissionResponse() == asyncio.run(review_ttl(labelled(text=text)))
    assert AdmissionResponse() == asyncio.run(review_ttl(labelled(object=None)))


def test_an_invalid_time_to_live_is_a_warning() -> None:
    """The object is stored and will not expire."""
    assert AdmissionResponse(
        warnings=(
            "cleanup.kyverno.io/ttl label value cannot be parsed as any recognizable format "
            '(parsing time "soon" as "2006-01-02": cannot parse "soon" as "2006")',
        )
    ) == asyncio.run(review_ttl(labelled(text="soon")))


def policy(kind: str, **spec: Any) -> AdmissionRequest:
    """Return a request on a policy that deletes."""
    match = {"any": [{"resources": {"kinds": ["Pod"]}}]}
    is_cleanup = "Cleanup" in kind
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}]
    written = {"match": match} if is_cleanup else {"matchConstraints": {"resourceRules": rules}}
    body = {
        "apiVersion": "kyverno.io/v2" if is_cleanup else "policies.kyverno.io/v1",
        "kind": kind,
        "metadata": {"name": "a", **({} if kind.startswith(("Cluster", "Deleting")) else {"namespace": "team"})},
        "spec": {**written, "schedule": "* * * * *", **spec},
    }
    return AdmissionRequest("admission.k8s.io/v1", "1", {"operation": "CREATE", "object": body})


REVIEW = DocumentReviews(lambda: BUILTIN_KINDS, ExceptionSettings()).review
DEPRECATED = {"ClusterCleanupPolicy": "DeletingPolicy", "CleanupPolicy": "NamespacedDeletingPolicy"}
KINDS = [*DEPRECATED, "DeletingPolicy", "NamespacedDeletingPolicy"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_policy_that_deletes_is_taken(kind: str) -> None:
    """Old kinds get a warning that recommends migration."""
    review = cleanup_paths("/validate", REVIEW)["/validate"]
    answer = asyncio.run(review(policy(kind)))
    assert (True, "") == (answer.allowed, answer.message)
    told = DEPRECATED.get(kind)
    assert [told] == [told for text in answer.warnings if f"migrate to {told} " in text] or not told
    assert bool(told) == bool(answer.warnings)


@pytest.mark.parametrize("kind", KINDS)
def test_a_policy_that_would_never_run_is_refused(kind: str) -> None:
    """The message is that of Kyverno's cleanup controller."""
    answer = asyncio.run(REVIEW(policy(kind, schedule="whenever")))
    assert not answer.allowed
    assert "schedule spec in the " in answer.message
    assert " is not in proper cron format" in answer.message


def test_the_heartbeat_gets_the_time_and_other_leases_pass() -> None:
    """Name and namespace select the heartbeat lease."""
    review = heartbeat_review("kyverno", lambda: datetime(2026, 11, 22, 10, 0, tzinfo=UTC))
    path = "/metadata/annotations/kyverno.io~1last-request-time"
    for namespace, name, expected in (
        ("kyverno", "kyverno-health", [{"op": "replace", "path": path, "value": "2026-11-22T10:00:00Z"}]),
        ("kyverno", "kyverno", []),
        ("elsewhere", "kyverno-health", []),
    ):
        answer = asyncio.run(review(labelled(namespace=namespace, name=name)))
        assert (True, expected) == (answer.allowed, list(answer.patch))
