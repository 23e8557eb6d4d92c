"""Deletions: immediate, or marked and waiting."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kubesandbox.objects.deletion import check_preconditions, deleted, gone, is_finished
from kubesandbox.parsing.requests import DeleteOptions
from kubesandbox.types.resources import ResourceType, builtin_table
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TABLE = builtin_table("1.35")


def type_of(key: str) -> ResourceType:
    """Return the type that is stored under a key."""
    return TABLE.versions_of(key)[0]


def pod(**spec: object) -> JSONObject:
    """Return a pod that runs."""
    return {
        "metadata": {"name": "p", "generation": 1},
        "spec": {"nodeName": "n", **spec},
        "status": {"phase": "Running"},
    }


def test_objects_go_at_once_where_nothing_holds_them() -> None:
    """Pods that are not scheduled or have ended are deleted at once as well."""
    secret = {"metadata": {"name": "s"}}
    for key, body in (
        ("secrets", secret),
        ("pods", {"metadata": {"name": "p"}, "spec": {}}),
        ("pods", {**pod(), "status": {"phase": "Succeeded"}}),
    ):
        assert deleted(type_of(key), body, DeleteOptions(), NOW).is_gone


def test_finalizers_hold_an_object() -> None:
    """The object gets a deletion timestamp, and its generation rises."""
    body = {"metadata": {"name": "d", "finalizers": ["a/b"], "generation": 3}}
    outcome = deleted(type_of("deployments.apps"), body, DeleteOptions(), NOW)
    assert not outcome.is_gone
    assert {
        "name": "d",
        "finalizers": ["a/b"],
        "generation": 4,
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 0,
    } == outcome.body["metadata"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (DeleteOptions(propagation="Foreground"), ["a/b", "foregroundDeletion"]),
        (DeleteOptions(propagation="Orphan"), ["a/b", "orphan"]),
        (DeleteOptions(propagation="Background"), ["a/b"]),
        (DeleteOptions(orphan=True), ["a/b", "orphan"]),
        (DeleteOptions(orphan=False), ["a/b"]),
        (DeleteOptions(), ["a/b"]),
    ],
)
def test_the_propagation_policy_becomes_a_finalizer(options: DeleteOptions, expected: list[str]) -> None:
    """The garbage collector waits for it."""
    body = {"metadata": {"name": "d", "finalizers": ["a/b"]}}
    outcome = deleted(type_of("deployments.apps"), body, options, NOW)
    assert expected == outcome.body["metadata"]["finalizers"]


def test_a_running_pod_has_its_grace_period() -> None:
    """The period is that of the request or of the pod, else 30 seconds; the timestamp is its end."""
    for body, options, seconds in (
        (pod(), DeleteOptions(), 30),
        (pod(terminationGracePeriodSeconds=5), DeleteOptions(), 5),
        (pod(), DeleteOptions(grace=7), 7),
        (pod(), DeleteOptions(grace=-1), 1),
    ):
        metadata = deleted(type_of("pods"), body, options, NOW).body["metadata"]
        assert (seconds, f"2026-01-01T00:00:{seconds:02}Z") == (
            metadata["deletionGracePeriodSeconds"],
            metadata["deletionTimestamp"],
        )
    assert deleted(type_of("pods"), pod(), DeleteOptions(grace=0), NOW).is_gone


def test_a_second_delete_can_only_shorten_the_grace_period() -> None:
    """A period of zero deletes the pod at once."""
    pods = type_of("pods")
    once = deleted(pods, pod(), DeleteOptions(), NOW).body
    again = deleted(pods, once, DeleteOptions(), NOW)
    assert (False, False, once) == (again.is_gone, again.is_new, again.body)
    sooner = deleted(pods, once, DeleteOptions(grace=5), NOW)
    assert (False, "2026-01-01T00:00:05Z") == (sooner.is_gone, sooner.body["metadata"]["deletionTimestamp"])
    longer = deleted(pods, sooner.body, DeleteOptions(grace=20), NOW)
    assert (False, 5) == (longer.is_new, longer.body["metadata"]["deletionGracePeriodSeconds"])
    assert deleted(pods, once, DeleteOptions(grace=0), NOW).is_gone


def test_namespaces_terminate_until_their_spec_is_empty() -> None:
    """The finalizers of a namespace are in its spec."""
    namespaces = type_of("namespaces")
    body = {"metadata": {"name": "x"}, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
    outcome = deleted(namespaces, body, DeleteOptions(), NOW)
    assert (False, "Terminating") == (outcome.is_gone, outcome.body["status"]["phase"])
    assert not is_finished(namespaces, outcome.body)
    assert is_finished(namespaces, {**outcome.body, "spec": {"finalizers": []}})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            DeleteOptions(uid="x"),
            "the UID in the precondition (x) does not match the UID in record (u). The object might have been deleted "
            "and then recreated",
        ),
        (
            DeleteOptions(resource_version="1"),
            "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (7). The object "
            "might have been modified",
        ),
    ],
)
def test_preconditions_must_hold(options: DeleteOptions, message: str) -> None:
    """Otherwise the answer is 409 and names the kind."""
    body = {"metadata": {"name": "a", "uid": "u", "resourceVersion": "7"}}
    with pytest.raises(StatusError) as caught:
        check_preconditions(type_of("configmaps"), body, options)
    assert (409, f'Operation cannot be fulfilled on ConfigMap "a": {message}') == (
        caught.value.status,
        caught.value.message,
    )
    check_preconditions(type_of("configmaps"), body, DeleteOptions(uid="u", resource_version="7"))


def test_some_kinds_answer_with_the_object_and_most_with_a_status() -> None:
    """The form of the answer is that of Kubernetes for each kind."""
    body = {"kind": "X", "metadata": {"name": "a", "uid": "u"}}
    assert body == gone(type_of("services"), body)
    status = gone(type_of("deployments.apps"), body)
    assert ("Success", {"name": "a", "group": "apps", "kind": "deployments", "uid": "u"}) == (
        status["status"],
        status["details"],
    )
