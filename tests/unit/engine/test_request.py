"""Requests: the same value from a manifest, a live object, a payload and an AdmissionReview."""

from __future__ import annotations

import pytest

from pyverno.engine.request import Operation, Request, User
from pyverno.errors import UsageError
from pyverno.kube.gvk import GVK, GVR

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}}
REVIEW = {
    "request": {
        "uid": "1",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "name": "web",
        "namespace": "shop",
        "operation": "CREATE",
        "userInfo": {"username": "alice", "groups": ["devs"]},
        "object": POD,
        "dryRun": True,
    }
}


def test_a_manifest_and_a_review_of_it_give_equal_requests():
    """Kind, name, namespace and object are equal; the review adds user, resource and dry run."""
    offline, online = Request.from_manifest(POD), Request.from_admission_review(REVIEW)
    for name in ("operation", "object", "old", "gvk", "name", "namespace", "subresource"):
        assert getattr(offline, name) == getattr(online, name)
    assert (GVR("", "v1", "pods"), True, "alice") == (online.gvr, online.dry_run, online.user.username)


def test_a_bare_request_is_read_like_a_review():
    """The body of `request` alone will do."""
    assert Request.from_admission_review(REVIEW) == Request.from_admission_review(REVIEW["request"])


def test_a_deleted_manifest_becomes_the_old_object():
    """As in a cluster, a DELETE has no new object; rules match the old one."""
    request = Request.from_manifest(POD, operation=Operation.DELETE)
    assert (None, POD, POD) == (request.object, request.old, request.subject)


def test_an_update_without_a_predecessor_replaces_the_object_by_itself():
    """So that comparisons with `oldObject` find no change."""
    request = Request.from_manifest(POD, operation=Operation.UPDATE)
    assert (POD, POD) == (request.object, request.old)


def test_a_live_object_is_a_background_request():
    """Scans ask policies that take part in them, without a user."""
    request = Request.from_live(POD)
    assert (True, "", GVK("", "v1", "Pod")) == (request.is_background, request.user.username, request.gvk)


@pytest.mark.parametrize(
    "read",
    [
        lambda: Request.from_manifest([]),
        lambda: Request.from_payload("text"),
        lambda: Request.from_admission_review({"request": []}),
        lambda: Request.from_admission_review({"request": {**REVIEW["request"], "operation": "PATCH"}}),
        lambda: Request.from_admission_review({}),
        lambda: Request.from_admission_review({"request": {**REVIEW["request"], "object": "a text"}}),
        lambda: Request.from_admission_review({"request": {**REVIEW["request"], "kind": "Pod"}}),
        lambda: Request.from_admission_review({"request": {**REVIEW["request"], "userInfo": {"groups": "devs"}}}),
    ],
)
def test_what_is_no_request_is_a_usage_error(read):
    """Nothing is guessed about a malformed body."""
    with pytest.raises(UsageError):
        read()


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({}, {}),
        ({"cluster_roles": ("view",)}, {"clusterRoles": ["view"]}),
        ({"roles": ("shop:editor",)}, {"roles": ["shop:editor"]}),
    ],
)
def test_a_user_without_roles_has_no_field_of_them(given, shown):
    """As in Kyverno: `request.roles` is null then, and no empty list."""
    variables = Request.from_admission_review(REVIEW, **given).variables()
    assert shown == {key: variables[key] for key in ("roles", "clusterRoles") if key in variables}


def test_the_variable_request_shows_user_and_roles_where_there_are_any():
    """Roles are resolved by the cluster and are no part of the review."""
    request = Request.from_admission_review(REVIEW, roles=("shop:editor",), cluster_roles=("view",))
    shown = request.variables()
    assert ({"username": "alice", "groups": ["devs"]}, ["shop:editor"], ["view"]) == (
        shown["userInfo"],
        shown["roles"],
        shown["clusterRoles"],
    )
    assert "userInfo" not in Request.from_manifest(POD).variables()


def test_the_questions_about_an_old_object_are_a_creation_and_an_idle_update():
    """An update of an object that failed before is judged by both."""
    old = {**POD, "spec": {}}
    created, unchanged = Request.from_manifest(POD, operation=Operation.UPDATE, old=old).about_old_object()
    assert (Operation.CREATE, old, None) == (created.operation, created.object, created.old)
    assert (Operation.UPDATE, old, old) == (unchanged.operation, unchanged.object, unchanged.old)


def test_a_user_reads_back_as_it_was_written():
    """`userInfo` keeps uid and extra values."""
    info = {"username": "alice", "uid": "7", "groups": ["devs"], "extra": {"scopes": ["a", "b"]}}
    assert info == User.from_json(info).to_json()


def test_a_policy_event_has_neither_operation_nor_user():
    """Rules match the object as one that is created; policies see the empty operation, and write `|| 'BACKGROUND'`."""
    request = Request.from_policy_event(POD, namespace_labels={"team": "a"})
    assert (Operation.CREATE, False) == (request.operation, request.is_background)
    assert ("", "web") == (request.variables()["operation"], request.variables()["name"])
    assert "userInfo" not in request.variables()


def test_a_request_for_an_existing_object_keeps_operation_and_user():
    """The object does not change, so it is also the old object."""
    trigger = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token", "namespace": "a"}}
    asked = Request.from_manifest(trigger, user=User("alice"))
    request = asked.for_existing(POD, gvr=GVR("", "v1", "pods"), subresource="status", namespace_labels={"team": "b"})
    assert (POD, POD, "web", "shop") == (request.object, request.old, request.name, request.namespace)
    assert ("Pod", "status", "alice") == (request.gvk.kind, request.subresource, request.user.username)
