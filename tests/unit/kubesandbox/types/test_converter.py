"""Objects of several versions: read, listed, watched and written through the webhook of their definition."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from kubesandbox.local import LocalClient
from kubesandbox.objects.patching import Patch
from kubesandbox.objects.scaling import get_scale
from kubesandbox.parsing.requests import MERGE_PATCH, ListOptions
from pyverno.kube.status import StatusError
from tests.support.admissionstage import STRANGER, answer, configuration, patching, serving, webhook
from tests.unit.kubesandbox.serving import ADMIN, api_server, definition, widget, write

WIDGETS = "widgets.example.com"
DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


def versions(client=None, *, is_served=True):
    """Return a definition, stored as v1, whose v2 calls `color` `paint`; `client` is that of its webhook."""
    crd = definition()
    (old,) = crd["spec"]["versions"]
    new = json.loads(json.dumps(old).replace('"color"', '"paint"'))
    fields = {"selectableFields": [{"jsonPath": ".spec.paint"}]}
    crd["spec"]["versions"] = [{**old, "served": is_served}, {**new, **fields, "name": "v2", "storage": False}]
    if client is not None:
        called = {"conversionReviewVersions": ["v1"], "clientConfig": client}
        crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": called}
    return crd


def repainted(body, version):
    """Return a widget in another version, with a label that marks the conversion."""
    names = {"color": "paint"} if version.endswith("v2") else {"paint": "color"}
    spec = {names.get(key, key): value for key, value in body["spec"].items()}
    labels = {**body["metadata"].get("labels", {}), "via": version.rpartition("/")[2]}
    return {**body, "apiVersion": version, "spec": spec, "metadata": {**body["metadata"], "labels": labels}}


def converted(review, change=lambda body: body, **fields):
    """Answer a ConversionReview; `change` spoils the objects, `fields` the response."""
    asked = review["request"]
    objects = [change(repainted(body, asked["desiredAPIVersion"])) for body in asked["objects"]]
    response = {"uid": asked["uid"], "result": {"status": "Success"}, "convertedObjects": objects, **fields}
    return {"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response}


def served_by(tmp_path, use, convert=converted, **options):
    """Let `use` work with a server whose definition names a webhook."""
    server = api_server()

    async def main():
        async with serving(tmp_path, convert=convert, allow=answer, paint=painting) as served:
            crd = versions(served.client("convert"), **options)
            await server.create(write(server, DEFINITIONS, ""), crd)
            try:
                await use(server, served)
            finally:
                await server.admission.close()

    asyncio.run(main())


painting = patching({"op": "replace", "path": "/spec/paint", "value": "blue"})


def of(server, version):
    """Return the type of a version."""
    found = server.table.find("example.com", version, "widgets")
    assert found is not None
    return found


def through(server, version, name=""):
    """Return a write through a version."""
    return replace(write(server, WIDGETS, name=name), type=of(server, version))


def in_v2(name, **spec):
    return {**widget(name, **spec), "apiVersion": "example.com/v2"}


def colors(page):
    return [(state.body["apiVersion"], state.body["spec"]) for state in page.states]


def test_objects_are_kept_in_one_version_and_shown_in_all(tmp_path):
    """An object is stored in the definition's storage version and answered in the version of the request."""

    async def use(server, served):
        outcome = await server.create(through(server, "v2"), in_v2("w", paint="red"))
        assert ("example.com/v2", {"paint": "red"}) == (outcome.body["apiVersion"], outcome.body["spec"])
        kept = server.get(of(server, "v1"), "default", "w").body
        assert ("example.com/v1", {"color": "red"}) == (kept["apiVersion"], kept["spec"])
        shown = await server.in_version(of(server, "v2"), kept)
        assert ({"paint": "red"}, {"via": "v2"}) == (shown["spec"], shown["metadata"]["labels"])
        path, review = served.asked[0]
        assert "/convert?timeout=30s" == path
        assert ("apiextensions.k8s.io/v1", "ConversionReview") == (review["apiVersion"], review["kind"])
        assert "example.com/v1" == review["request"]["desiredAPIVersion"]

    served_by(tmp_path, use)


def test_a_storage_version_need_not_be_served(tmp_path):
    """Objects are stored in that version even if it is not served."""

    async def use(server, _):
        await server.create(through(server, "v2"), in_v2("w", paint="red"))
        assert "example.com/v1" == server.get(of(server, "v2"), "default", "w").body["apiVersion"]
        page = await server.list(of(server, "v2"), "default", ListOptions())
        assert [("example.com/v2", {"paint": "red"})] == colors(page)

    served_by(tmp_path, use, is_served=False)


def test_lists_are_converted_in_one_call_and_selected_as_they_are_shown(tmp_path):
    """Fields and labels are those of the requested version."""

    async def use(server, served):
        for name, color in (("a", "red"), ("b", "blue")):
            await server.create(through(server, "v1"), widget(name, color=color))
        assert [] == served.asked
        type = of(server, "v2")
        page = await server.list(type, "default", ListOptions(field_selector="spec.paint=blue"))
        assert [("example.com/v2", {"paint": "blue"})] == colors(page)
        assert 2 == len((await server.list(type, "default", ListOptions(label_selector="via=v2"))).states)
        assert [2, 2] == [len(review["request"]["objects"]) for _, review in served.asked]
        assert 2 == len((await server.list(of(server, "v1"), "default", ListOptions())).states)
        assert 2 == len(served.asked)

    served_by(tmp_path, use)


def test_watches_show_changes_in_their_version(tmp_path):
    """Present objects and later changes are both converted."""

    async def use(server, _):
        await server.create(through(server, "v1"), widget("a", color="red"))
        events = server.watch(of(server, "v2"), "default", ListOptions(field_selector="spec.paint=red"))
        seen = await anext(events)
        await server.patch(through(server, "v2", "a"), Patch(MERGE_PATCH, {"spec": {"paint": "green"}}))
        seen += await anext(events)
        await events.aclose()
        assert [("ADDED", {"paint": "red"}), ("DELETED", {"paint": "red"})] == [
            (event.kind, event.body["spec"]) for event in seen
        ]

    served_by(tmp_path, use)


def test_a_watch_of_what_can_not_be_converted_ends_with_the_error(tmp_path):
    """An event that is left out would never arrive later."""

    async def use(server, _):
        events = server.watch(of(server, "v2"), "default", ListOptions(timeout=5))
        assert [] == await anext(events)
        await server.create(through(server, "v1"), widget("a", color="red"))
        ((event,),) = [group async for group in events]
        assert ("ERROR", 500) == (event.kind, event.body["code"])
        with pytest.raises(StatusError, match="conversion webhook for"):
            await anext(server.watch(of(server, "v2"), "default", ListOptions()))

    served_by(tmp_path, use, lambda review: converted(review, uid="other"))


def test_subresources_and_deletions_pass_through_the_webhook(tmp_path):
    """Scale and status of a version, an update in it, a delete whose answer is none of the object's."""

    async def use(server, _):
        await server.create(through(server, "v1"), widget("a", color="red", replicas=2))
        scale = await get_scale(server, of(server, "v2"), "default", "a")
        assert 2 == scale["spec"]["replicas"]
        outcome = await server.patch(
            replace(through(server, "v2", "a"), subresource="status"), Patch(MERGE_PATCH, {"status": {"replicas": 1}})
        )
        assert ({"paint": "red", "replicas": 2}, {"replicas": 1}) == (outcome.body["spec"], outcome.body["status"])
        gone = await server.delete(through(server, "v2", "a"))
        assert "Success" == gone.body["status"]
        assert [] == server.store.all(WIDGETS)

    served_by(tmp_path, use)


def test_equivalent_webhooks_get_custom_objects_converted(tmp_path):
    """A webhook about v2 sees a write in v1 as v2, and its patch comes back as v1."""
    rule = {"apiGroups": ["example.com"], "apiVersions": ["v2"], "operations": ["*"], "resources": ["widgets"]}

    async def use(server, served):
        hooks = configuration("Mutating", webhook(served.client("paint"), rules=[rule]))
        await server.create(write(server, "mutatingwebhookconfigurations.admissionregistration.k8s.io", ""), hooks)
        outcome = await server.create(through(server, "v1"), widget("a", color="red"))
        assert {"color": "blue"} == outcome.body["spec"]
        (seen,) = [review["request"] for path, review in served.asked if path.startswith("/paint")]
        assert ("v2", "v1") == (seen["kind"]["version"], seen["requestKind"]["version"])
        assert {"paint": "red"} == seen["object"]["spec"]

    served_by(tmp_path, use)


def test_without_a_webhook_versions_leave_out_what_they_do_not_know():
    """Only the version is renamed; a field of another version does not show."""
    server = api_server()

    async def main():
        await server.create(write(server, DEFINITIONS, ""), versions())
        await server.create(through(server, "v1"), widget("a", color="red", replicas=1))
        page = await server.list(of(server, "v2"), "default", ListOptions())
        assert [("example.com/v2", {"replicas": 1})] == colors(page)

    asyncio.run(main())


def renamed(body):
    return {**body, "metadata": {**body["metadata"], "name": "other"}}


def foreign(body):
    return {**body, "metadata": {**body["metadata"], "uid": "other"}}


SINGLE = "conversion webhook for example.com/v1, Kind=Widget"


@pytest.mark.parametrize(
    ("fields", "change", "text"),
    [
        ({"uid": "other"}, None, 'failed: expected response.uid="uid-', ),
        ({"result": {"status": "Failure", "message": "no way"}}, None, "failed: no way"),
        ({"result": {"status": "Failure"}}, None, "failed: response.result.status was 'Failure', not 'Success'"),
        ({"result": None}, None, "failed: response.result.status was '', not 'Success'"),
        ({"convertedObjects": []}, None, "returned 0 objects, expected 1"),
        ({}, renamed, "returned invalid object: must have the same name: a != other"),
        ({}, foreign, "returned invalid object: must have the same UID: "),
        (
            {},
            lambda body: {**body, "apiVersion": "example.com/v3"},
            "returned invalid object at index 0: invalid groupVersion "
            "(expected example.com/v2, received example.com/v3)",
        ),
        (
            {},
            lambda body: {**body, "kind": "Gadget"},
            "returned invalid object at index 0: invalid kind (expected Widget, received Gadget)",
        ),
        (
            {},
            lambda body: {**body, "metadata": {**body["metadata"], "labels": {"a": 1}}},
            "returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object",
        ),
        (
            {},
            lambda body: {**body, "metadata": {**body["metadata"], "annotations": []}},
            "returned invalid metadata: invalid metadata.annotations of type []interface {} in converted object",
        ),
        (
            {},
            lambda body: {**body, "metadata": {**body["metadata"], "labels": {"-": "1"}}},
            'returned invalid metadata: metadata.labels: Invalid value: "-": name part must consist of ',
        ),
    ],
)  # fmt: skip
def test_answers_that_no_webhook_may_give_are_reported(tmp_path, fields, change, text):
    """An invalid ConversionReview fails every read and write with Kubernetes' text and code 500."""

    async def use(server, _):
        await server.create(through(server, "v1"), widget("a", color="red"))
        with pytest.raises(StatusError) as refused:
            await server.in_version(of(server, "v2"), server.get(of(server, "v1"), "default", "a").body)
        error = refused.value
        assert (500, True) == (error.status, error.message.startswith(f"{SINGLE} {text}")), error.message
        with pytest.raises(StatusError, match="conversion webhook for"):
            await server.create(through(server, "v2"), in_v2("b", paint="red"))
        with pytest.raises(StatusError, match="conversion webhook for"):
            await server.delete(through(server, "v2", "a"))
        assert ["a"] == [state.key.name for state in server.store.all(WIDGETS)]

    served_by(tmp_path, use, lambda review: converted(review, change or (lambda body: body), **fields))


def test_other_metadata_is_that_of_the_original(tmp_path):
    """Only labels and annotations may change."""

    def meddled(body):
        metadata = {**body["metadata"], "finalizers": ["x/y"], "generation": 99, "annotations": {"a": "b"}}
        return {**body, "metadata": metadata}

    async def use(server, _):
        created = await server.create(through(server, "v1"), widget("a", color="red"))
        shown = await server.in_version(of(server, "v2"), created.body)
        expected = {**created.body["metadata"], "labels": {"via": "v2"}, "annotations": {"a": "b"}}
        assert expected == shown["metadata"]

    served_by(tmp_path, use, lambda review: converted(review, meddled))


def test_a_failed_call_of_a_webhook_has_the_error_text_of_go(tmp_path):
    """The error has the address, the timeout and the cause."""
    server = api_server()

    async def main():
        async with serving(tmp_path, authority=STRANGER, convert=converted) as served:
            client = {**served.client("convert"), "caBundle": ""}
            await server.create(write(server, DEFINITIONS, ""), versions(client))
            await server.create(through(server, "v1"), widget("a", color="red"))
            with pytest.raises(StatusError) as refused:
                await server.in_version(of(server, "v2"), server.get(of(server, "v1"), "default", "a").body)
            await server.admission.close()
        url = f"https://localhost:{served.port}/convert?timeout=30s"
        why = "tls: failed to verify certificate: x509: certificate signed by unknown authority"
        assert f'{SINGLE} failed: Post "{url}": {why}' == refused.value.message

    asyncio.run(main())


def test_defaults_of_the_storage_version_are_filled_in():
    """They show in that version, whichever one was written."""
    crd = versions()
    server = api_server()

    async def main():
        await server.create(write(server, DEFINITIONS, ""), crd)
        await server.create(through(server, "v2"), in_v2("a", paint="red"))
        kept = server.get(of(server, "v1"), "default", "a").body
        assert ("example.com/v1", {"color": "grey"}) == (kept["apiVersion"], kept["spec"])

    asyncio.run(main())


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"apiVersion": "apiextensions.k8s.io/v1beta1"},
            "converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion",
        ),
        ({"kind": "Other"}, 'no kind "Other" is registered for version "apiextensions.k8s.io/v1" in scheme '),
        (
            {"apiVersion": None, "kind": None},
            "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind=",
        ),
        ({"response": None}, "no response provided"),
    ],
)
def test_answers_that_are_no_reviews_are_reported(tmp_path, change, text):
    """The error comes before the objects are read."""

    async def use(server, _):
        created = await server.create(through(server, "v1"), widget("a", color="red"))
        with pytest.raises(StatusError) as refused:
            await server.in_version(of(server, "v2"), created.body)
        assert refused.value.message.startswith(f"{SINGLE} failed: {text}"), refused.value.message

    served_by(tmp_path, use, lambda review: {**converted(review), **change})


def test_controllers_work_in_the_version_that_is_kept(tmp_path):
    """Controllers read and write the storage version without calling the conversion webhook."""

    async def use(server, served):
        await server.create(through(server, "v1"), widget("a", color="red"))
        client = LocalClient(server, ADMIN)
        body = client.get("widgets.example.com", "a", "default")
        assert body is not None
        await client.update("widgets.example.com", {**body, "spec": {"color": "blue"}})
        await client.patch("widgets.example.com", "a", "default", {"metadata": {"finalizers": []}})
        assert {"color": "blue"} == server.get(of(server, "v1"), "default", "a").body["spec"]
        assert [] == served.asked

    served_by(tmp_path, use)
