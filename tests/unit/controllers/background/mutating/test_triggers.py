"""Admission requests of UpdateRequests: as recorded, with the stored object, or obsolete."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pyverno.controllers.background.mutating.triggers import Triggers
from pyverno.controllers.background.work import Done, Waiting, read_request
from pyverno.engine.request import Request, User
from pyverno.errors import HostError
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS, KindTable
from pyverno.kube.status import StatusError
from pyverno.webhook.configuration import Configuration
from tests.support.apiserver import serving, status

CREATED = datetime(2026, 1, 1, tzinfo=UTC)
SHOP = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"team": "a"}}}


class Facts:
    """A cluster with one namespace."""

    kinds: KindTable = BUILTIN_KINDS
    configuration = Configuration()

    def namespace(self, name: str) -> JSONObject | None:
        """Return the namespace."""
        return SHOP if name == "shop" else None

    def roles_of(self, user: User, namespace: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the roles of a user."""
        return (("shop:admin",), ("view",)) if user.username == "alice" else ((), ())


def body(name: str, *, uid: str = "1", version: str = "5", **data: str) -> JSONObject:
    """Return a ConfigMap."""
    metadata = {"name": name, "namespace": "shop", "uid": uid, "resourceVersion": version}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def update(operation: str = "", *, resource: JSONObject | None = None, **admission: Any) -> JSONObject:
    """Return an UpdateRequest for a request on a ConfigMap, or without a request."""
    context: JSONObject = {}
    if operation:
        request = {
            "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
            "resource": {"group": "", "version": "v1", "resource": "configmaps"},
            "operation": operation,
            "namespace": "shop",
            "name": "settings",
            **admission,
        }
        context = {
            "userInfo": {
                "userInfo": {"username": "alice"},
                "roles": ["kube-system:root"],
                "clusterRoles": ["cluster-admin"],
            },
            "admissionRequestInfo": {"admissionRequest": request, "operation": operation},
        }
    return {
        "apiVersion": "kyverno.io/v2",
        "kind": "UpdateRequest",
        "metadata": {"name": "ur-1", "namespace": "kyverno", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"requestType": "mutate", "policy": "p", "rule": "r", "resource": resource or {}, "context": context},
    }


PATH = "GET /api/v1/namespaces/shop/configmaps/settings"
REF = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "settings", "uid": "1"}


LIST = "GET /api/v1/namespaces/shop/configmaps"
REVIEWS = "POST /apis/authorization.k8s.io/v1/subjectaccessreviews"


def request(
    written: JSONObject, *answers: Any, seconds: float = 0.0, before: Any = None, allowed: bool = True
) -> Request | Waiting | Done:
    """Return the request of an UpdateRequest of this age; the server gives these answers for the object.

    `before` is what it had in the version before, and `allowed` whether the user may send the request.
    """

    async def run() -> Request | Waiting | Done:
        async with serving() as (script, client):
            script.on(PATH, *(answers or (status(404, "NotFound"),)))
            script.on(LIST, before if isinstance(before, tuple) else {"items": [] if before is None else [before]})
            script.on(REVIEWS, {"status": {"allowed": allowed}})
            triggers = Triggers(client, Facts(), lambda: CREATED + timedelta(seconds=seconds))
            return await triggers.request(read_request(written))

    return asyncio.run(run())


def test_a_request_comes_with_its_user_and_namespace() -> None:
    """The objects are those of the API server, and roles are what bindings give, whatever was recorded."""
    old, new = body("settings", version="4", a="1"), body("settings", a="2")
    found = request(update("UPDATE", object=body("settings", a="x"), oldObject={**old, "data": {}}), new, before=old)
    assert isinstance(found, Request)
    assert (new, old, "shop") == (found.object, found.old, found.namespace)
    assert ("alice", ("shop:admin",), ("view",)) == (found.user.username, found.user.roles, found.user.cluster_roles)
    assert {"team": "a"} == found.namespace_labels


def test_a_user_who_may_not_send_the_request_did_not() -> None:
    """Nobody but the API server knows who asked; it knows who might have."""
    written = update("CREATE", object=body("settings"))
    assert isinstance(request(written, body("settings"), allowed=True), Request)
    found = request(written, body("settings"), allowed=False)
    assert isinstance(found, Done)
    assert (True, "user `alice` may not create configmaps, so did not send the request") == (
        found.is_refused,
        found.message,
    )


@pytest.mark.parametrize("operation", ["", "CREATE", "UPDATE"])
def test_the_namespace_is_read_where_the_watch_is_behind(operation: str) -> None:
    """Without its labels a rule with a `namespaceSelector` would not match, and say nothing (CVE-2025-46342)."""
    old, new = (_in_new(version) for version in ("4", "5"))
    named = {"metadata": {"name": "new", "labels": {"team": "b"}}}
    written = update(operation, object=new, oldObject=old if operation == "UPDATE" else None, namespace="new")
    written["spec"]["resource"] = {**REF, "namespace": "new"}

    async def run(answer: Any) -> Request | Waiting | Done:
        async with serving() as (script, client):
            script.on("GET /api/v1/namespaces/new/configmaps/settings", new)
            script.on("GET /api/v1/namespaces/new/configmaps", {"items": [old]})
            script.on("GET /api/v1/namespaces/new", answer)
            script.on(REVIEWS, {"status": {"allowed": True}})
            return await Triggers(client, Facts(), lambda: CREATED).request(read_request(written))

    found = asyncio.run(run(named))
    assert isinstance(found, Request)
    assert {"team": "b"} == found.namespace_labels
    with pytest.raises(StatusError):
        asyncio.run(run(status(403, "Forbidden")))


def _in_new(version: str) -> JSONObject:
    found = body("settings", version=version)
    return {**found, "metadata": {**found["metadata"], "namespace": "new"}}


def test_a_created_object_is_the_stored_one() -> None:
    """Later webhooks may have changed it, and it may be stored after its UpdateRequest."""
    stored = body("settings", a="2")
    late = (status(404, "NotFound"), status(404, "NotFound"), stored)
    for answers in ((stored,), late):
        found = request(update("CREATE", object=body("settings", a="1")), *answers)
        assert isinstance(found, Request)
        assert stored == found.object


def test_an_object_that_is_not_created_yet_is_waited_for() -> None:
    """A watch event wakes the request; after the longest duration of a creation it is done."""
    created = update("CREATE", object=body("settings"))
    waiting = request(created, seconds=1)
    assert isinstance(waiting, Waiting)
    assert [("configmaps", "shop", "settings")] == [(on.resource.resource, on.namespace, on.name) for on in waiting.on]
    assert isinstance(request(created, seconds=61), Done)


def test_another_object_of_the_name_is_no_trigger() -> None:
    """A different uid shows that the named object is gone; the new object has its own request (0b8c53a4)."""
    assert isinstance(request(update("CREATE", object=body("settings")), body("settings", uid="2")), Done)
    assert isinstance(request(update(resource=REF), body("settings", uid="2")), Done)


def test_a_trigger_without_a_request_is_read() -> None:
    """Other versions of Kyverno write such requests when a policy changes."""
    found = request(update(resource=REF), body("settings", a="1"))
    assert isinstance(found, Request)
    assert (True, {"a": "1"}) == (found.is_policy_event, found.object["data"])
    assert isinstance(request(update(resource=REF)), Done)


def test_what_cannot_be_read_is_an_error() -> None:
    """An error never reads as a deleted object."""
    with pytest.raises(HostError, match="does not serve Gadget"):
        request(update(resource={**REF, "kind": "Gadget"}))


def versioned(version: str, **data: str) -> JSONObject:
    """Return the ConfigMap in a version."""
    return body("settings", version=version, **data)


def test_an_update_is_read_once_it_is_stored() -> None:
    """The new object may be left out of the request: two versions of a large object are more than etcd takes."""
    old, new = versioned("4", a="1"), versioned("5", a="2")
    for answers in ((new,), (old, old, new)):
        found = request(update("UPDATE", oldObject=old), *answers, before=old)
        assert isinstance(found, Request)
        assert (new, old) == (found.object, found.old)


def test_an_update_that_changes_nothing_is_confirmed_at_once() -> None:
    """The API server keeps the version of an object that stays the same."""
    old = versioned("4", a="1")
    found = request(update("UPDATE", object=old, oldObject=old), old)
    assert isinstance(found, Request)
    assert (old, old) == (found.object, found.old)


def test_an_update_that_is_not_stored_is_waited_for() -> None:
    """As long as an API server may take; then nothing is to be done."""
    old = versioned("4", a="1")
    waiting = request(update("UPDATE", oldObject=old), old, seconds=1)
    assert isinstance(waiting, Waiting)
    assert [("configmaps", "shop", "settings")] == [(on.resource.resource, on.namespace, on.name) for on in waiting.on]
    assert isinstance(request(update("UPDATE", oldObject=old), old, seconds=61), Done)
    assert isinstance(request(update("UPDATE", oldObject=old)), Done)
    other = {**old, "metadata": {**old["metadata"], "uid": "2", "resourceVersion": "9"}}
    assert isinstance(request(update("UPDATE", oldObject=old), other), Done)


@pytest.mark.parametrize("reads_old", [True, False])
def test_without_history_an_update_serves_rules_that_read_no_old_object(reads_old: bool) -> None:
    """An API server forgets old versions after minutes; a policy that compares both is not done on a claim."""
    old, new = versioned("4", a="1"), versioned("5", a="2")

    async def run() -> Request | Waiting | Done:
        async with serving() as (script, client):
            script.on(PATH, new)
            script.on(LIST, status(410, "Expired"))
            script.on(REVIEWS, {"status": {"allowed": True}})
            written = read_request(update("UPDATE", object=new, oldObject=old))
            return await Triggers(client, Facts(), lambda: CREATED).request(written, reads_old=reads_old)

    found = asyncio.run(run())
    assert reads_old is (isinstance(found, Done) and found.is_refused)
    assert isinstance(found, Done) or (new, new) == (found.object, found.old)
