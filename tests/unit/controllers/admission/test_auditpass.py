"""Audit policies that read the cluster are evaluated after the answer, and their results are observed later."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from pyverno.compiler.compile import compile_documents
from pyverno.controllers.admission.auditpass import AuditPass, AuditSettings
from pyverno.engine.engine import Review
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.kube.admissionreview import AdmissionRequest, AdmissionResponse
from pyverno.kube.json import JSONObject, encode
from pyverno.kube.yaml.documents import load_documents
from pyverno.offline.host import OfflineHost
from pyverno.telemetry.observer import AdmissionOutcome
from pyverno.webhook.policies import Policies
from pyverno.webhook.routes import read_route

OBJECT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "namespace": "team"}}
QUESTION = AdmissionRequest(
    "admission.k8s.io/v1", "1", {"uid": "1", "operation": "CREATE", "kind": {"kind": "ConfigMap"}}
)
LOOKED_UP = [{"name": "far", "configMap": {"name": "settings", "namespace": "team"}}]


def policy(name: str, action: str, **spec: Any) -> JSONObject:
    """Return a policy whose rule needs a ConfigMap."""
    deny = {"conditions": {"any": [{"key": "{{ far.data.a }}", "operator": "Equals", "value": "b"}]}}
    rule = {
        "name": "ask",
        "match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]},
        "context": LOOKED_UP,
        "validate": {"failureAction": action, "message": "no", "deny": deny},
    }
    metadata = {"name": name}
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": metadata,
        "spec": {"rules": [rule], **spec},
    }


def compiled(*policies: JSONObject) -> PolicySet:
    return compile_documents([each for body in policies for each in load_documents(encode(body))]).policy_set()


def names(policies: PolicySet) -> list[str]:
    return [each.info.name for each in policies.policies]


@pytest.mark.parametrize(
    ("path", "deciding", "telling"),
    [
        ("/validate/fail", ["deny", "some", "warn"], ["tell"]),
        ("/mutate/fail", ["deny", "some", "tell", "warn"], []),
        ("/validate/ignore", [], ["lax"]),
    ],
)
def test_only_policies_that_cannot_change_an_answer_are_deferred(
    path: str, deciding: list[str], telling: list[str]
) -> None:
    """Policies that deny in some namespace, or that warn, are evaluated before the answer; none is left out."""
    overrides = [{"action": "Enforce", "namespaces": ["team"]}]
    some = policy("some", "Audit")
    some["spec"]["rules"][0]["validate"]["failureActionOverrides"] = overrides
    found = Policies(
        compiled(
            policy("deny", "Enforce"),
            policy("tell", "Audit"),
            policy("warn", "Audit", emitWarning=True),
            policy("lax", "Audit", failurePolicy="Ignore"),
            some,
        )
    )
    route = read_route(path)
    assert route is not None
    assert (deciding, telling) == (names(found.deciding(route)), names(found.auditing(route)))


@pytest.mark.parametrize(
    ("username", "path", "expected"),
    [
        ("alice", "/mpol/always/usual", ["always", "usual"]),
        ("worker", "/mpol/always/usual", ["always"]),
        ("worker", "/validate/fail", ["deny"]),
    ],
)
def test_the_background_account_is_mutated_only_where_a_policy_allows_it(
    username: str, path: str, expected: list[str]
) -> None:
    """By default its own changes are not mutated, but validating policies still evaluate them."""

    def mutating(name: str, **evaluation: object) -> JSONObject:
        rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
        patch = "[JSONPatch{op: 'add', path: '/data', value: {'a': 'b'}}]"
        return {
            "apiVersion": "policies.kyverno.io/v1",
            "kind": "MutatingPolicy",
            "metadata": {"name": name},
            "spec": {
                "matchConstraints": {"resourceRules": rules},
                "evaluation": evaluation,
                "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
            },
        }

    found = Policies(
        compiled(mutating("usual"), mutating("always", skipBackgroundRequests=False), policy("deny", "Enforce")),
        background_account="worker",
    )
    route = read_route(path)
    assert route is not None
    assert expected == names(found.for_user(route, username))


class Results:
    """Records the results of finished audits and the number of dropped ones."""

    def __init__(self) -> None:
        self.results: list[str] = []
        self.lost = 0

    def audited(
        self, admission_request: AdmissionRequest, path: str, outcome: AdmissionOutcome, seconds: float
    ) -> None:
        assert outcome.review is not None
        self.results += [f"{path} {result.rule.policy.name} {result.status}" for result in outcome.review.results]

    def lose(self) -> None:
        self.lost += 1


class Waiting(OfflineHost):
    """A Host whose answers wait until the gate opens."""

    def __init__(self, gate: threading.Event) -> None:
        super().__init__()
        self._gate = gate

    def config_map(self, namespace: str, name: str) -> JSONObject:
        assert self._gate.wait(300)
        return {"data": {"a": "b"}}


def put_off(allowed: bool = True) -> AdmissionOutcome:
    review = Review(Request.from_manifest(OBJECT), OBJECT, ())
    return AdmissionOutcome(AdmissionResponse(allowed=allowed), review, compiled(policy("tell", "Audit")))


def test_deferred_policies_are_evaluated_and_reported() -> None:
    """Requests that were refused, or have no deferred policy, need no audit."""
    told, gate = Results(), threading.Event()

    async def run() -> None:
        audit = AuditPass(AuditSettings(), host=lambda: Waiting(gate), observer=told, lost=told.lose)
        running = asyncio.create_task(audit.run())
        audit.answered(QUESTION, "/validate/fail", put_off(), 0.1)
        audit.answered(QUESTION, "/validate/fail", put_off(allowed=False), 0.1)
        audit.answered(QUESTION, "/validate/fail", AdmissionOutcome(AdmissionResponse()), 0.1)
        assert not audit.is_idle
        gate.set()
        await audit.flush(20)
        assert audit.is_idle
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(run())
    assert (["/validate/fail tell fail"], 0) == (told.results, told.lost)


def test_an_audit_that_finds_no_room_is_counted() -> None:
    """A full queue drops the audit instead of delaying the request."""
    told, gate = Results(), threading.Event()

    async def run() -> None:
        audit = AuditPass(AuditSettings(1, 1), host=lambda: Waiting(gate), observer=told, lost=told.lose)
        for _ in range(3):
            audit.answered(QUESTION, "/validate/fail", put_off(), 0.1)
        running = asyncio.create_task(audit.run())
        gate.set()
        await audit.flush(20)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(run())
    assert (1, 2) == (len(told.results), told.lost)
