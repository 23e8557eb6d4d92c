"""Webhooks are called over HTTPS as an API server calls them, and their answers count as there."""

from __future__ import annotations

import asyncio
import base64
from datetime import timedelta

import pytest
from aiohttp import web

from kubesandbox.attributes import Notes
from pyverno.engine.request import Operation
from pyverno.kube.status import StatusError, bad_request
from tests.support.admissionstage import (
    STRANGER,
    admission,
    admitted,
    answer,
    cluster,
    config_map,
    configuration,
    in_store,
    namespace,
    patching,
    request,
    serving,
    webhook,
)


def sent(view, attributes, notes=None, **options):
    """Send a request through a chain."""
    return admitted(admission(view, **options), attributes, notes)


async def refusal(view, attributes, **options) -> StatusError:
    """Return why a request is refused."""
    with pytest.raises(StatusError) as refused:
        await sent(view, attributes, **options)
    return refused.value


def run(make):
    """Run a test's coroutine."""
    asyncio.run(make())


def test_a_webhook_sees_the_whole_request(tmp_path):
    """The AdmissionReview has the fields, the headers and the query that an API server sends."""

    async def main():
        async with serving(tmp_path, allow=answer) as served:
            _, view = cluster(configuration("Validating", webhook(served.client("allow"))))
            body, old = config_map(data={"a": "b"}), config_map()
            await sent(view, request(body, old=old, operation=Operation.UPDATE))
        (path, review), (headers,) = served.asked[0], served.headers
        assert "/allow?timeout=10s" == path
        assert ("application/json", "application/json, */*", "kube-apiserver-admission") == tuple(
            headers[each] for each in ("Content-Type", "Accept", "User-Agent")
        )
        kind = {"group": "", "version": "v1", "kind": "ConfigMap"}
        resource = {"group": "", "version": "v1", "resource": "configmaps"}
        expected = {
            "uid": "uid-1",
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "name": "c",
            "namespace": "x",
            "operation": "UPDATE",
            "userInfo": {"username": "jane", "groups": ["dev", "system:authenticated"]},
            "object": body,
            "oldObject": old,
            "dryRun": False,
            "options": {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"},
        }
        assert {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": expected} == review

    run(main)


def test_a_deletion_shows_the_old_object_only(tmp_path):
    """On DELETE `object` is null and `oldObject` is what is going to be deleted."""

    async def main():
        async with serving(tmp_path, allow=answer) as served:
            _, view = cluster(configuration("Validating", webhook(served.client("allow"))))
            await sent(view, request(None, old=config_map(), operation=Operation.DELETE))
        review = served.asked[0][1]["request"]
        assert (None, config_map(), "DELETE") == (review["object"], review["oldObject"], review["operation"])

    run(main)


@pytest.mark.parametrize(
    ("status", "code", "reason", "message"),
    [
        (None, 400, "", 'admission webhook "a.example.com" denied the request without explanation'),
        ({"message": "no way"}, 400, "", 'admission webhook "a.example.com" denied the request: no way'),
        ({"reason": "Because"}, 400, "Because", 'admission webhook "a.example.com" denied the request: Because'),
        (
            {"message": "no", "code": 418, "reason": "Teapot"},
            418,
            "Teapot",
            'admission webhook "a.example.com" denied the request: no',
        ),
        ({"message": "no", "code": 200}, 400, "", 'admission webhook "a.example.com" denied the request: no'),
    ],
)
@pytest.mark.parametrize("kind", ["Validating", "Mutating"])
def test_a_denial_has_the_webhooks_words_and_code(tmp_path, kind, status, code, reason, message):
    """The webhook's message follows its name; a code that is no error becomes 400."""

    async def main():
        def deny(review):
            return answer(review, allowed=False, **({"status": status} if status else {}))

        async with serving(tmp_path, deny=deny) as served:
            _, view = cluster(configuration(kind, webhook(served.client("deny"))))
            error = await refusal(view, request(config_map()))
        assert (code, reason, message) == (error.status, error.reason, error.message)

    run(main)


def test_warnings_and_annotations_reach_the_notes(tmp_path):
    """Warnings are for the client, audit annotations get the name of the webhook."""

    async def main():
        def allow(review):
            return answer(review, warnings=["careful", "careful"], auditAnnotations={"key": "value"})

        notes = Notes()
        async with serving(tmp_path, allow=allow) as served:
            _, view = cluster(configuration("Validating", webhook(served.client("allow"))))
            await sent(view, request(config_map()), notes)
        assert ["careful"] == notes.warnings
        assert {"a.example.com/key": "value"} == notes.annotations

    run(main)


def test_mutating_webhooks_see_what_those_before_them_changed(tmp_path):
    """Configurations are called by name, their webhooks in order; each patch applies to the previous result."""

    async def main():
        first = patching({"op": "add", "path": "/data", "value": {"one": "1"}})
        second = patching({"op": "add", "path": "/data/two", "value": "2"})
        async with serving(tmp_path, first=first, second=second, third=answer) as served:
            _, view = cluster(
                configuration("Mutating", webhook(served.client("third")), name="z"),
                configuration(
                    "Mutating", webhook(served.client("first")), webhook(served.client("second"), "b.x.y"), name="a"
                ),
            )
            found = await sent(view, request(config_map()))
        assert {"one": "1", "two": "2"} == found["data"]
        assert ["first", "second", "third"] == [path.strip("/").partition("?")[0] for path, _ in served.asked]
        assert {"one": "1", "two": "2"} == served.asked[2][1]["request"]["object"]["data"]

    run(main)


def test_defaults_are_filled_in_after_a_patch(tmp_path):
    """Fields that a patch leaves out get their defaults before the next webhook sees the object."""

    async def main():
        patch = patching({"op": "add", "path": "/data", "value": {"one": "1"}})
        async with serving(tmp_path, patch=patch, look=answer) as served:
            _, view = cluster(
                configuration("Mutating", webhook(served.client("patch")), webhook(served.client("look"), "b.x.y"))
            )
            chain = admission(view)
            await chain.mutate(request(config_map()), Notes(), redefault=lambda body: {**body, "immutable": False})
            await chain.close()
        assert served.asked[1][1]["request"]["object"]["immutable"] is False

    run(main)


def test_reinvoked_webhooks_are_called_again_after_a_change(tmp_path):
    """With `IfNeeded` a webhook sees once more what others changed after it; with `Never` it does not."""

    async def main():
        def sees(review):
            return answer(review)

        change = patching({"op": "add", "path": "/data", "value": {"late": "1"}})
        async with serving(tmp_path, again=sees, never=sees, change=change) as served:
            _, view = cluster(
                configuration(
                    "Mutating",
                    webhook(served.client("again"), "a.x.y", reinvocationPolicy="IfNeeded"),
                    webhook(served.client("never"), "b.x.y", reinvocationPolicy="Never"),
                    webhook(served.client("change"), "c.x.y"),
                )
            )
            await sent(view, request(config_map()))
        assert ["again", "never", "change", "again"] == [path.strip("/").partition("?")[0] for path, _ in served.asked]
        assert {"late": "1"} == served.asked[3][1]["request"]["object"]["data"]

    run(main)


def test_no_webhook_is_called_again_without_a_later_change(tmp_path):
    """The last webhook that changed the object is not called for its own change."""

    async def main():
        change = patching({"op": "add", "path": "/data", "value": {"a": "1"}})
        async with serving(tmp_path, change=change) as served:
            hook = webhook(served.client("change"), reinvocationPolicy="IfNeeded")
            _, view = cluster(configuration("Mutating", hook))
            await sent(view, request(config_map()))
        assert 1 == len(served.asked)

    run(main)


@pytest.mark.parametrize(
    ("response", "why"),
    [
        ({"uid": "other"}, 'received invalid webhook response: expected response.uid="uid-1", got "other"'),
        (
            {"patch": "W10="},
            "received invalid webhook response: webhook returned response.patch but not response.patchType",
        ),
        (
            {"patchType": "JSONPatch"},
            "received invalid webhook response: webhook returned response.patchType but not response.patch",
        ),
        ({"patchType": "JSONPatch", "patch": "e2dhcmJhZ2U="}, "received undecodable patch in webhook response: "),
        (
            {"patchType": "Merge", "patch": base64.b64encode(b'[{"op":"add","path":"/data","value":{}}]').decode()},
            'unsupported patch type "Merge"',
        ),
    ],
)
def test_answers_that_no_webhook_may_give_are_failures(tmp_path, response, why):
    """A wrong uid, half a patch, a patch that is none: the call has failed, with Kubernetes' words."""

    async def main():
        async with serving(tmp_path, wrong=lambda review: answer(review, **response)) as served:
            _, view = cluster(configuration("Mutating", webhook(served.client("wrong"))))
            error = await refusal(view, request(config_map()))
            _, lenient = cluster(configuration("Mutating", webhook(served.client("wrong"), failurePolicy="Ignore")))
            assert config_map() == await sent(lenient, request(config_map()))
        assert (500, "InternalError") == (error.status, error.reason)
        head = 'Internal error occurred: failed calling webhook "a.example.com": '
        assert error.message.startswith(f"{head}{why}")

    run(main)


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (lambda _: web.Response(text="oops", status=500), 'an error on the server ("oops") has prevented the request'),
        (lambda _: web.Response(text="", status=404), "the server could not find the requested resource"),
        (lambda _: web.Response(text=""), "0-length response with status code: 200 and content type: text/plain"),
        (lambda _: web.Response(text="oops"), "couldn't get version/kind; json parse error: "),
        (
            lambda _: web.json_response({"kind": "Pod", "apiVersion": "v1"}),
            'no kind "Pod" is registered for version "v1"',
        ),
        (lambda review: {"response": answer(review)["response"]}, "expected webhook response of admission.k8s.io/v1, "),
        (
            lambda review: {**answer(review), "apiVersion": "admission.k8s.io/v1beta1"},
            "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
        ),
        (
            lambda _: {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"},
            "received invalid webhook response: webhook response was absent",
        ),
    ],
)
def test_broken_servers_are_distinguished(tmp_path, reply, why):
    """Codes, empty bodies, other kinds and texts each have their sentence."""

    async def main():
        async with serving(tmp_path, broken=reply) as served:
            _, view = cluster(configuration("Validating", webhook(served.client("broken"))))
            error = await refusal(view, request(config_map()))
        assert 500 == error.status
        assert why in error.message

    run(main)


def test_a_validating_webhook_may_not_patch(tmp_path):
    """A patch in the answer of a validating webhook is a failure."""

    async def main():
        async with serving(tmp_path, patch=patching({"op": "add", "path": "/data", "value": {}})) as served:
            _, view = cluster(configuration("Validating", webhook(served.client("patch"))))
            error = await refusal(view, request(config_map()))
        assert "validating webhook may not return response.patch" in error.message

    run(main)


def test_a_patch_that_does_not_fit_refuses_the_request(tmp_path):
    """Such a patch is an error of the server that no failure policy forgives."""

    async def main():
        patch = patching({"op": "remove", "path": "/nope/x"})
        async with serving(tmp_path, patch=patch) as served:
            hook = webhook(served.client("patch"), failurePolicy="Ignore")
            _, view = cluster(configuration("Mutating", hook))
            error = await refusal(view, request(config_map()))
        expected = 'remove operation does not apply: doc is missing path: "/nope/x": missing value'
        assert f"Internal error occurred: {expected}" == error.message

    run(main)


def test_a_patch_that_breaks_the_object_is_the_webhooks_fault(tmp_path):
    """An object that the patch made unreadable is a server error with the decoder's message."""

    async def main():
        def unreadable(_body):
            raise bad_request('ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal')

        patch = patching({"op": "add", "path": "/data", "value": "text"})
        async with serving(tmp_path, patch=patch) as served:
            _, view = cluster(configuration("Mutating", webhook(served.client("patch"))))
            chain = admission(view)
            with pytest.raises(StatusError) as refused:
                await chain.mutate(request(config_map()), Notes(), redefault=unreadable)
            await chain.close()
        assert (500, "Internal error occurred: json: cannot unmarshal") == (refused.value.status, refused.value.message)

    run(main)


def test_slow_webhooks_run_out_of_time(tmp_path):
    """After `timeoutSeconds` the failure policy decides; the text is that of Go's deadline."""

    async def main():
        async def slow(review):
            await asyncio.sleep(5)
            return web.json_response(answer(review))

        async with serving(tmp_path, slow=slow) as served:
            _, view = cluster(configuration("Validating", webhook(served.client("slow"), timeoutSeconds=1)))
            error = await refusal(view, request(config_map()))
            hook = webhook(served.client("slow"), timeoutSeconds=1, failurePolicy="Ignore")
            _, lenient = cluster(configuration("Validating", hook))
            notes = Notes()
            assert config_map() == await sent(lenient, request(config_map()), notes)
        expected = (
            'Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: '
            f'Post "https://localhost:{served.port}/slow?timeout=1s": context deadline exceeded'
        )
        assert (500, expected) == (error.status, error.message)
        assert {"failed-open.validating.webhook.admission.k8s.io/round_0_index_0": "a.example.com"} == notes.annotations

    run(main)


def test_a_certificate_of_another_authority_is_not_trusted(tmp_path):
    """The bundle of the configuration is the only authority."""

    async def main():
        async with serving(tmp_path, authority=STRANGER, allow=answer) as served:
            client = {**served.client("allow"), "caBundle": base64.b64encode(b"").decode()}
            _, view = cluster(configuration("Validating", webhook(client)))
            unknown = await refusal(view, request(config_map()))
        expected = "tls: failed to verify certificate: x509: certificate signed by unknown authority"
        assert unknown.message.endswith(f'/allow?timeout=10s": {expected}')

    run(main)


def test_a_certificate_for_another_name_is_not_trusted(tmp_path):
    """The text names what the certificate is valid for."""

    async def main():
        async with serving(tmp_path, hosts=("elsewhere", "10.1.2.3"), allow=answer) as served:
            _, view = cluster(configuration("Validating", webhook(served.client("allow"))))
            error = await refusal(view, request(config_map()))
        assert error.message.endswith("x509: certificate is valid for elsewhere, 10.1.2.3, not localhost")

    run(main)


def test_an_expired_certificate_is_not_trusted(tmp_path):
    """A certificate that has ended is refused with Go's words."""

    async def main():
        async with serving(tmp_path, lifetime=-timedelta(minutes=1), allow=answer) as served:
            _, view = cluster(configuration("Validating", webhook(served.client("allow"))))
            error = await refusal(view, request(config_map()))
        assert "x509: certificate has expired or is not yet valid" in error.message

    run(main)


@pytest.mark.parametrize(
    ("client", "why"),
    [
        ({"url": "https://127.0.0.1:1/x"}, "dial tcp 127.0.0.1:1: connect: connection refused"),
        ({"url": "https://nosuch.invalid/x"}, "dial tcp: lookup nosuch.invalid: no such host"),
        (
            {"service": {"namespace": "x", "name": "none", "path": "/p"}},
            'Post "https://none.x.svc:443/p?timeout=10s": service "none" not found',
        ),
        ({"url": "https://127.0.0.1:1/x", "caBundle": "bm9uZQ=="}, "unable to load root certificates"),
    ],
)
def test_missing_webhooks_are_distinguished(client, why):
    """A refused connection, an unknown name and a missing service each have their sentence."""

    async def main():
        _, view = cluster(configuration("Validating", webhook(client)))
        error = await refusal(view, request(config_map()))
        assert why in error.message

    run(main)


def test_plain_http_is_no_https(tmp_path):
    """The error names plain HTTP on the port."""

    async def main():
        async def talk(_reader, writer):
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            _, view = cluster(configuration("Validating", webhook({"url": f"https://127.0.0.1:{port}/x"})))
            error = await refusal(view, request(config_map()))
        assert error.message.endswith("http: server gave HTTP response to HTTPS client")

    run(main)


@pytest.mark.parametrize(("effects", "is_refused"), [("None", False), ("NoneOnDryRun", False), ("Some", True)])
def test_a_dry_run_reaches_only_webhooks_without_side_effects(tmp_path, effects, is_refused):
    """A webhook with side effects makes a dry run fail; others receive `dryRun: true`."""

    async def main():
        async with serving(tmp_path, allow=answer) as served:
            hook = webhook(served.client("allow"), sideEffects=effects, failurePolicy="Ignore")
            _, view = cluster(configuration("Validating", hook))
            if is_refused:
                error = await refusal(view, request(config_map(), dry_run=True))
                expected = 'admission webhook "a.example.com" does not support dry run'
                assert (400, "BadRequest", expected) == (error.status, error.reason, error.message)
            else:
                await sent(view, request(config_map(), dry_run=True))
        assert ([] if is_refused else [True]) == [review["request"]["dryRun"] for _, review in served.asked]

    run(main)


@pytest.mark.parametrize(
    ("conditions", "outcome"),
    [
        (["object.metadata.name == 'c'"], "asked"),
        (["object.metadata.name != 'c'"], "passed over"),
        (["request.userInfo.username == 'jane'", "request.operation == 'CREATE'"], "asked"),
        (["object.nope == 1", "false"], "passed over"),
        (["object.nope == 1"], "refused"),
        (["authorizer.group('').resource('pods').namespace('x').check('get').allowed()"], "asked"),
    ],
)
def test_match_conditions_choose_the_webhooks_to_call(tmp_path, conditions, outcome):
    """All must be true; a false one wins over errors, and errors refuse where failures do."""

    async def main():
        listed = [{"name": f"c{index}", "expression": text} for index, text in enumerate(conditions)]
        async with serving(tmp_path, allow=answer) as served:
            _, view = cluster(configuration("Validating", webhook(served.client("allow"), matchConditions=listed)))
            if outcome == "refused":
                error = await refusal(view, request(config_map()))
                assert 403 == error.status
                head = "configmaps \"c\" is forbidden: expression 'object.nope == 1' resulted in error: "
                assert error.message.startswith(head)
                hook = webhook(served.client("allow"), matchConditions=listed, failurePolicy="Ignore")
                _, view = cluster(configuration("Validating", hook))
            await sent(view, request(config_map()))
        assert (1 if outcome == "asked" else 0) == len(served.asked)

    run(main)


@pytest.mark.parametrize(
    ("fields", "is_asked"),
    [
        ({"objectSelector": {"matchLabels": {"app": "web"}}}, True),
        ({"objectSelector": {"matchLabels": {"app": "other"}}}, False),
        ({"namespaceSelector": {"matchLabels": {"team": "a"}}}, True),
        ({"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}}, False),
    ],
)
def test_selectors_look_at_labels_of_object_and_namespace(tmp_path, fields, is_asked):
    """Both selectors must select."""

    async def main():
        async with serving(tmp_path, allow=answer) as served:
            hook = webhook(served.client("allow"), **fields)
            _, view = cluster(namespace("x", team="a"), configuration("Validating", hook))
            await sent(view, request(config_map(labels={"app": "web"})))
        assert is_asked is bool(served.asked)

    run(main)


def test_a_namespace_is_selected_by_what_it_is_going_to_be(tmp_path):
    """For Namespace objects the selector looks at their own labels, for other objects of the cluster at none."""

    async def main():
        async with serving(tmp_path, allow=answer) as served:
            selector = {"matchLabels": {"team": "a"}}
            hooks = [
                webhook(served.client("allow"), name, resource, namespaceSelector=selector)
                for name, resource in (("a.x.y", "namespaces"), ("b.x.y", "nodes"))
            ]
            _, view = cluster(configuration("Validating", *hooks))
            await sent(view, request(namespace("new", team="a")))
            await sent(view, request(namespace("new", team="b")))
            await sent(view, request({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}))
        assert ["Namespace", "Node"] == [review["request"]["kind"]["kind"] for _, review in served.asked]

    run(main)


def test_equivalent_webhooks_get_the_version_they_ask_for(tmp_path):
    """A rule for another version of the same objects matches with `Equivalent`, and the object is converted."""
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h", "namespace": "x"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
            "maxReplicas": 3,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
                }
            ],
        },
    }
    rule = {
        "apiGroups": ["autoscaling"],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["horizontalpodautoscalers"],
    }

    async def main():
        patch = patching({"op": "replace", "path": "/spec/targetCPUUtilizationPercentage", "value": 70})
        async with serving(tmp_path, patch=patch, exact=answer) as served:
            _, view = cluster(
                configuration(
                    "Mutating",
                    webhook(served.client("patch"), rules=[rule]),
                    webhook(served.client("exact"), "b.x.y", rules=[rule], matchPolicy="Exact"),
                )
            )
            found = await sent(view, request(scaler))
        (review,) = [review["request"] for _, review in served.asked]
        assert ("v1", "v2") == (review["kind"]["version"], review["requestKind"]["version"])
        assert 50 == review["object"]["spec"]["targetCPUUtilizationPercentage"]
        assert "autoscaling/v2" == found["apiVersion"]
        assert 70 == found["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"]

    run(main)


@pytest.mark.parametrize("kind", ["Validating", "Mutating"])
@pytest.mark.parametrize(
    "exempt",
    [
        f"{prefix}{what}"
        for prefix in ("Validating", "Mutating")
        for what in ("WebhookConfiguration", "AdmissionPolicy", "AdmissionPolicyBinding")
    ],
)
def test_configurations_of_admission_are_never_shown(tmp_path, kind, exempt):
    """Webhooks never receive admission configurations, so that a broken one can always be repaired."""

    async def main():
        rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
        version = "v1beta1" if exempt.startswith("MutatingAdmission") else "v1"
        body = {"apiVersion": f"admissionregistration.k8s.io/{version}", "kind": exempt, "metadata": {"name": "other"}}
        async with serving(tmp_path, deny=lambda review: answer(review, allowed=False)) as served:
            _, view = cluster(configuration(kind, webhook(served.client("deny"), rules=[rule])))
            assert body == await sent(view, request(body))
        assert [] == served.asked

    run(main)


def test_validating_webhooks_are_called_in_parallel(tmp_path):
    """Ten webhooks answer once all of them were called."""

    async def main():
        called = asyncio.Barrier(10)

        async def slow(review):
            await called.wait()
            return web.json_response(answer(review))

        async with serving(tmp_path, slow=slow) as served:
            hooks = [webhook(served.client("slow"), f"h{index}.x.y") for index in range(10)]
            _, view = cluster(configuration("Validating", *hooks))
            await sent(view, request(config_map()))
        assert 10 == len(served.asked)

    run(main)


def test_connections_are_kept_open(tmp_path):
    """Twenty calls of one webhook use one connection."""

    async def main():
        async with serving(tmp_path, allow=answer) as served:
            _, view = cluster(configuration("Validating", webhook(served.client("allow"))))
            chain = admission(view)
            for _ in range(20):
                await chain.validate(request(config_map()), Notes())
            await chain.close()
        assert (20, 1) == (len(served.asked), len(served.connections))

    run(main)


def test_changes_of_configurations_count_at_once(tmp_path):
    """Webhooks of a new configuration are called, and those of a deleted one are not."""

    async def main():
        async with serving(tmp_path, deny=lambda review: answer(review, allowed=False)) as served:
            store, view = cluster()
            await sent(view, request(config_map()))
            in_store(store, configuration("Validating", webhook(served.client("deny"))))
            chain = admission(view)
            with pytest.raises(StatusError):
                await chain.validate(request(config_map()), Notes())
            for stored in store.all("validatingwebhookconfigurations.admissionregistration.k8s.io"):
                store.remove(stored.key)
            await chain.validate(request(config_map()), Notes())
            await chain.close()
        assert 1 == len(served.asked)

    run(main)


def test_webhooks_of_the_first_beta_are_understood(tmp_path):
    """A webhook that takes v1beta1 only gets it, and its uid is not looked at."""

    async def main():
        def old(review):
            return {**answer(review), "response": {"allowed": False, "status": {"message": "old"}}}

        async with serving(tmp_path, old=old) as served:
            hook = webhook(served.client("old"), admissionReviewVersions=["v2", "v1beta1"])
            _, view = cluster(configuration("Validating", hook))
            error = await refusal(view, request(config_map()))
        assert "admission.k8s.io/v1beta1" == served.asked[0][1]["apiVersion"]
        assert 'admission webhook "a.example.com" denied the request: old' == error.message

    run(main)
