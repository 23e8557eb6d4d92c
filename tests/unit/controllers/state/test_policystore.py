"""The policy store: it compiles policies, ignores irrelevant updates, and notifies listeners."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from pyverno.controllers.admission.policystatus import status_of
from pyverno.controllers.runtime.statuspatch import status_patch
from pyverno.controllers.state.policystore import PolicyStore
from pyverno.engine.engine import Engine
from pyverno.engine.phases import VALIDATING
from pyverno.engine.request import Request
from pyverno.engine.result import Status
from pyverno.kube.json import JSONObject
from pyverno.kube.patch.mergepatch import apply_merge_patch
from pyverno.webhook.policyreviews import ExceptionSettings
from pyverno.webhook.routes import read_route
from tests.support.operations import growth

POD: JSONObject = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "team"}, "spec": {}}
NOW = "2026-11-22T00:00:00Z"


def policy(**validate: Any) -> JSONObject:
    """Return a policy that denies Pods without labels."""
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "check", "generation": 1},
        "spec": {
            "rules": [
                {
                    "name": "rule",
                    "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
                    "validate": validate or {"pattern": {"metadata": {"labels": {"a": "?*"}}}},
                }
            ]
        },
    }


def exception(group: str = "kyverno.io/v2", namespace: str = "team") -> JSONObject:
    """Return an exception from that policy."""
    return {
        "apiVersion": group,
        "kind": "PolicyException",
        "metadata": {"name": "allow", "namespace": namespace},
        "spec": {
            "exceptions": [{"policyName": "check", "ruleNames": ["rule"]}],
            "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
        },
    }


def outcome(store: PolicyStore) -> list[Status]:
    """Return the results of the policies for the Pod."""
    review = Engine(store.policies.all).review(Request.from_manifest(POD), VALIDATING)
    return [result.status for result in review.results]


def test_a_policy_is_in_force_from_the_moment_it_is_put() -> None:
    """Its removal takes effect as well; listeners get each change once, with the policy."""
    store, told = PolicyStore(), []
    store.listen(lambda identity: told.append((identity[2], len(store.policies.all))))
    assert [] == outcome(store)
    store.put(policy())
    assert [Status.FAIL] == outcome(store)
    store.remove(policy())
    store.remove(policy())
    assert [("check", 1), ("check", 0)] == told


def test_another_policy_costs_the_same_however_many_there_are() -> None:
    """The set is put together when it is next used, not once for each policy of a list."""

    def named(number: int) -> JSONObject:
        return {**policy(), "metadata": {"name": f"check-{number:03}", "generation": 1}}

    def loaded(count: int) -> Callable[[], object]:
        store = PolicyStore()
        for number in range(count):
            store.put(named(number))
        return lambda: store.put(named(count))

    assert growth(loaded, 20) < 1.01


def test_a_change_of_the_status_changes_nothing() -> None:
    """The set stays the same object, so values derived from it stay valid."""
    store = PolicyStore()
    store.put(policy())
    before = store.policies
    store.put({**policy(), "status": {"conditions": []}})
    assert before is store.policies
    store.put(policy(deny={}))
    assert before is not store.policies


def test_a_policy_that_is_not_valid_stays_and_is_not_configured() -> None:
    """Its rules yield errors, and its status is not configured."""
    store = PolicyStore()
    compiled = store.put(policy(pattern={"metadata": {"name": "{{ nonsense }}"}}))
    assert compiled.errors
    assert 1 == len(store.policies.all)
    assert () == store.legacy()
    assert [Status.ERROR] == outcome(store)


def test_exceptions_count_where_they_may_live_only() -> None:
    """By default none apply; the setting allows one namespace or all."""
    for settings, expected in (
        (ExceptionSettings(), Status.FAIL),
        (ExceptionSettings(enabled=True), Status.FAIL),
        (ExceptionSettings(enabled=True, namespace="other"), Status.FAIL),
        (ExceptionSettings(enabled=True, namespace="team"), Status.SKIP),
        (ExceptionSettings(enabled=True, namespace="*"), Status.SKIP),
    ):
        store = PolicyStore(settings)
        store.put(policy())
        store.put(exception())
        assert [expected] == outcome(store), settings


def test_routes_ask_the_store_as_it_is_now() -> None:
    """A running request keeps its snapshot of the store."""
    store = PolicyStore()
    route = read_route("/validate/fail")
    assert route is not None
    before = store.policies
    store.put(policy())
    assert (0, 1) == (len(before.on(route)), len(store.policies.on(route)))


def test_the_status_shows_whether_the_webhook_is_configured() -> None:
    """The status holds the rule counts and the autogen rules as well."""
    compiled = PolicyStore().put(policy())
    status = status_of(compiled, is_configured=True, now=NOW)
    assert {"validate": 1, "generate": 0, "mutate": 0, "verifyimages": 0} == status["rulecount"]
    assert ["autogen-rule", "autogen-cronjob-rule"] == [rule["name"] for rule in status["autogen"]["rules"]]
    assert ("True", "Ready") == (status["conditions"][0]["status"], status["conditions"][0]["message"])
    assert "Not Ready" == status_of(compiled, is_configured=False, now=NOW)["conditions"][0]["message"]
    assert {"generated": False, "message": ""} == status["validatingadmissionpolicy"]


def test_a_status_is_written_only_when_it_differs() -> None:
    """The transition time stays while conditions are unchanged."""
    compiled = PolicyStore().put(policy())
    first = status_of(compiled, is_configured=True, now=NOW)
    assert {"status": first} == status_patch({}, first)
    again = status_of(compiled, is_configured=True, now="2027-01-01T00:00:00Z")
    assert None is status_patch(first, again)
    worse = status_of(compiled, is_configured=False, now="2027-01-01T00:00:00Z")
    patch = status_patch(first, worse)
    assert patch is not None
    assert {"conditions"} == set(patch["status"])
    assert "2027-01-01T00:00:00Z" == patch["status"]["conditions"][0]["lastTransitionTime"]


def cel_status(kind: str = "ValidatingPolicy", missing: tuple[str, ...] = (), **evaluation: Any) -> JSONObject:
    """Return the status of a CEL policy for Pods."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    action: JSONObject = {"validations": [{"expression": "has(object.spec.hostname)"}]}
    if kind == "MutatingPolicy":
        change = {"expression": "Object{spec: Object.spec{hostNetwork: false}}"}
        action = {"mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": change}]}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "evaluation": evaluation, **action}
    body = {"apiVersion": "policies.kyverno.io/v1", "kind": kind, "metadata": {"name": "cel"}, "spec": spec}
    compiled = PolicyStore().put(body)
    assert () == compiled.errors
    return status_of(compiled, is_configured=True, now=NOW, missing=missing)


def test_the_status_of_cel_policies_has_conditions_and_copies() -> None:
    """Conditions cover the webhook and the permissions of reports; copies are the autogen specs for pod controllers."""
    status = cel_status()
    conditions = status["conditionStatus"]["conditions"]
    assert [
        ("WebhookConfigured", "True", "Succeeded", "Webhook configured."),
        ("RBACPermissionsGranted", "True", "Succeeded", "Policy is ready for reporting."),
    ] == [(each["type"], each["status"], each["reason"], each["message"]) for each in conditions]
    assert status["conditionStatus"]["ready"]
    configs = status["autogen"]["configs"]
    assert ["has(object.spec.template.spec.hostname)"] == [
        each["expression"] for each in configs["defaults"]["spec"]["validations"]
    ]
    cron_job = {"group": "batch", "version": "v1", "resource": "cronjobs", "kind": "CronJob"}
    assert [cron_job] == configs["cronjobs"]["targets"]


def test_missing_permissions_make_a_scanned_policy_not_ready() -> None:
    """Without background scans the condition is false but the policy stays ready."""
    lacking = cel_status(missing=("get /v1, Resource=pods: ", "list /v1, Resource=pods: "))["conditionStatus"]
    assert (
        "Policy is not ready for reporting, missing permissions: get /v1, Resource=pods: ; list /v1, Resource=pods: ."
    ) == lacking["conditions"][1]["message"]
    assert ("False", False) == (lacking["conditions"][1]["status"], lacking["ready"])
    unscanned = cel_status(missing=("get /v1, Resource=pods: ",), background={"enabled": False})["conditionStatus"]
    assert ("False", True) == (unscanned["conditions"][1]["status"], unscanned["ready"])


def test_a_policy_without_admission_has_no_condition_on_webhooks() -> None:
    """No webhook evaluates it."""
    for kind in ("ValidatingPolicy", "MutatingPolicy"):
        more = {"mutateExisting": {"enabled": True}} if kind == "MutatingPolicy" else {}
        conditions = cel_status(kind, admission={"enabled": False}, **more)["conditionStatus"]["conditions"]
        assert ["RBACPermissionsGranted"] == [each["type"] for each in conditions]


def test_deleted_copies_are_removed_from_the_status() -> None:
    """A merge patch has to remove them explicitly."""
    first = cel_status()
    second = {**first, "autogen": {"configs": {"defaults": first["autogen"]["configs"]["defaults"]}}}
    patch = status_patch(first, second)
    assert patch is not None
    assert {"autogen": {"configs": {"cronjobs": None}}} == patch["status"]
    assert second == apply_merge_patch({"status": first}, patch)["status"]


def test_a_policy_is_known_until_and_after_it_was_deleted() -> None:
    """Paths may name it for a moment after the deletion; a policy that was never stored may still arrive."""
    store = PolicyStore()
    assert not store.knows("ClusterPolicy", "", "check")
    store.put(policy())
    assert store.knows("ClusterPolicy", "", "check")
    assert not store.knows("Policy", "", "check")
    store.remove(policy())
    assert store.knows("ClusterPolicy", "", "check")
    route = read_route("/validate/fail/finegrained/check")
    assert route is not None
    assert () == store.policies.missing(route)
    assert (("Policy", "team", "check"),) == store.policies.missing(
        read_route("/validate/fail/finegrained/team/check") or route
    )


def test_a_policy_with_a_copy_in_the_api_server_is_known() -> None:
    """The webhook neither evaluates it nor counts it as missing."""
    copied: JSONObject = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": "copied"},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
                ]
            },
            "validations": [{"expression": "true"}],
        },
        "status": {"generated": True},
    }
    store = PolicyStore()
    store.put(copied)
    route = read_route("/vpol/copied/other")
    assert route is not None
    assert 0 == len(store.policies.on(route))
    assert (("ValidatingPolicy", "", "other"),) == store.policies.missing(route)


def test_with_forced_ignore_every_policy_is_on_the_paths_of_ignore() -> None:
    """Webhook configurations then have only these paths; errors allow requests."""
    asked = read_route("/validate/ignore")
    assert asked is not None
    failing = policy(
        failureAction="Enforce",
        deny={"conditions": {"all": [{"key": "{{ nothing() }}", "operator": "Equals", "value": 1}]}},
    )
    failing["spec"].update(failurePolicy="Fail", webhookConfiguration={"failurePolicy": "Fail"})
    for forces_ignore in (False, True):
        store = PolicyStore(forces_ignore=forces_ignore)
        store.put(failing)
        assert int(forces_ignore) == len(store.policies.on(asked))
        review = Engine(store.policies.all).review(Request.from_manifest(POD), VALIDATING)
        assert ([Status.ERROR], forces_ignore) == ([each.status for each in review.results], review.decision.allowed)


@pytest.mark.parametrize("kind", ["GeneratingPolicy", "ValidatingPolicy"])
def test_with_forced_ignore_every_kind_stays_what_it_is(kind: str) -> None:
    """A kind without a failurePolicy does not receive one."""
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    work = {
        "GeneratingPolicy": {"generate": [{"expression": "generator.Apply('x', [])"}]},
        "ValidatingPolicy": {"validations": [{"expression": "true"}]},
    }
    body: JSONObject = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": kind,
        "metadata": {"name": "a"},
        "spec": {"matchConstraints": {"resourceRules": rules}, **work[kind]},
    }
    store = PolicyStore(forces_ignore=True)
    compiled = store.put(body)
    assert ((), 1) == (compiled.errors, len(store.policies.all.policies[0].rules) and 1)


def test_a_document_is_put_as_it_was_prepared() -> None:
    """What was prepared counts for the same object alone: another version of it is compiled, and so is it later."""
    store = PolicyStore(forces_ignore=True)
    body = policy()
    asyncio.run(store.prepare(body))
    ((prepared_body, prepared),) = store._prepared.values()
    assert prepared_body is body
    assert {} == store.compiled()
    assert store.put(body) is prepared
    assert not store._prepared
    asyncio.run(store.prepare(body))
    assert not store._prepared, "it is known"
    other = policy(pattern={"metadata": {"name": "b"}})
    asyncio.run(store.prepare(other))
    assert store.put(policy(deny={})).document.value["spec"]["rules"][0]["validate"] == {"deny": {}}
    assert not store._prepared
