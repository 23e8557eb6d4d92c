"""I9: what follows from a review is bounded as well: patches, the texts of results and denials, warnings, events.

What a rule repeats or quotes is shared in memory; written out for each container or for each rule, it is not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from pyverno.controllers.runtime.events import Events, EventSettings
from pyverno.engine.engine import Engine, Review
from pyverno.engine.phases import ADMISSION
from pyverno.engine.request import Request
from pyverno.engine.result import MAX_MESSAGE, Status
from pyverno.kube.admissionreview import MAX_MESSAGE_BYTES, AdmissionRequest, AdmissionResponse
from pyverno.kube.json import JSONObject
from pyverno.lang.runtime import MAX_TEXT_BYTES, Budget
from pyverno.offline.host import OfflineHost
from pyverno.offline.objects import ObjectStore
from pyverno.policy.kinds import KNOWN_KINDS
from pyverno.telemetry.observer import AdmissionOutcome
from pyverno.webhook.configuration import Configuration
from tests.security.asking import POD, compiled, policy

TEXT = "request.object.metadata.annotations.team"
ENVIRONMENT = """
mutate:
  patchStrategicMerge:
    spec:
      containers:
      - (name): "*"
        env:
        - {name: TEAM, value: "{{ request.object.metadata.annotations.team }}"}
"""
FOR_EACH = """
mutate:
  foreach:
  - list: request.object.spec.containers
    patchesJson6902: |-
      - {op: add, path: "/metadata/labels/l{{ elementIndex }}", value: "{{ request.object.metadata.annotations.team }}"}
"""
COPIES = """
mutate:
  foreach:
  - list: request.object.spec.containers
    patchesJson6902: |-
      - {op: copy, from: /metadata/annotations, path: "/spec/l{{ elementIndex }}"}
"""
IN_CEL = """
apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: guard}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  mutations:
"""
CONFIGURATION = (
    IN_CEL
    + """
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: >-
        Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{
        name: c.name, workingDir: object.metadata.annotations.team})}}
"""
)
OPERATIONS = (
    IN_CEL
    + """
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        object.spec.containers.map(c, JSONPatch{
        op: 'copy', from: '/metadata/annotations', path: '/metadata/labels/' + c.name})
"""
)
EXISTING = """
mutate:
  targets:
  - {apiVersion: v1, kind: ConfigMap, name: settings, namespace: team}
  foreach:
  - list: request.object.spec.containers
    patchesJson6902: |-
      - {op: add, path: "/data/l{{ elementIndex }}", value: "{{ request.object.metadata.annotations.team }}"}
"""
REPEATED: Mapping[str, str] = {
    "merge": policy(ENVIRONMENT, on="Pod"),
    "patch for each": policy(FOR_EACH, on="Pod"),
    "copies": policy(COPIES, on="Pod"),
    "several rules": "\n---\n".join(
        policy(ENVIRONMENT, on="Pod").replace("guard", f"g{at}").replace("TEAM", f"T{at}") for at in range(4)
    ),
    "configuration in CEL": CONFIGURATION,
    "patch in CEL": OPERATIONS,
}
MESSAGE = "{{ request.object.metadata.annotations.team }}"
SPOKEN: Mapping[str, str] = {
    "deny": f'validate: {{message: "{MESSAGE}", deny: {{}}}}',
    "part": f'validate: {{message: "of {MESSAGE}", deny: {{}}}}',
    "pattern": f'validate: {{message: "{MESSAGE}", pattern: {{spec: {{x: "?*"}}}}}}',
    "any pattern": f'validate: {{message: "{MESSAGE}", anyPattern: [{{spec: {{x: "?*"}}}}, {{spec: {{y: "?*"}}}}]}}',
    "for each": (
        f'validate: {{message: "{MESSAGE}", foreach: [{{list: "request.object.spec.containers", deny: {{}}}}]}}'
    ),
    "condition": (
        "validate: {message: m, deny: {conditions: {any: [{key: 1, operator: Equals, value: 1, "
        f'message: "{MESSAGE}"}}]}}}}}}'
    ),
    "path": 'validate: {message: m, pattern: {spec: {extra: {"*": {a: b}}}}}',
    "expression": (
        "validate: {cel: {expressions: [{expression: 'false', "
        "messageExpression: 'string(object.metadata.annotations.team)'}]}}"
    ),
}


def pod(team: str, containers: int) -> JSONObject:
    metadata = {**POD["metadata"], "annotations": {"team": team}, "labels": {"a": "b"}}
    spec = {"containers": [{"name": f"c{at}"} for at in range(containers)], "extra": {f"k{team}": {"a": "c"}}}
    return {**POD, "metadata": metadata, "spec": spec}


def review(text: str, body: JSONObject, **how: Any) -> Review:
    compilation = compiled(text)
    assert () == compilation.errors, [str(error) for error in compilation.errors]
    settings = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": "team"},
        "data": {},
    }
    host = OfflineHost(objects=ObjectStore([settings], KNOWN_KINDS))
    return Engine(compilation.policy_set(), host).review(Request.from_manifest(body), **how)


def response(found: Review) -> bytes:
    decision = found.decision
    answer = AdmissionResponse(decision.allowed, decision.message, decision.warnings, decision.patch)
    return answer.to_bytes(AdmissionRequest("admission.k8s.io/v1", "1", {}))


@pytest.mark.parametrize("rules", REPEATED)
def test_a_patch_that_repeats_a_text_for_each_container_ends_as_an_error(rules: str) -> None:
    """A text of 20 kB in 2,000 containers would be a response of 53 MB, for a request of 80 kB."""
    found = review(REPEATED[rules], pod("x" * 20_000, 2_000))
    assert Status.ERROR in {result.status for result in found.results}
    assert len(response(found)) < 2 * MAX_TEXT_BYTES


@pytest.mark.parametrize("rules", REPEATED)
def test_a_patch_that_repeats_an_ordinary_text_is_made(rules: str) -> None:
    """The twin: a name in a hundred containers."""
    found = review(REPEATED[rules], pod("x" * 40, 100))
    assert {Status.PASS} == {result.status for result in found.results}
    assert found.decision.patch


def test_existing_objects_grow_no_further_than_the_object_of_the_request() -> None:
    """The change of a target is written to the API server as a whole."""
    large, small = (review(policy(EXISTING, on="Pod"), pod("x" * size, 1_000)) for size in (20_000, 40))
    assert ([Status.ERROR], [Status.PASS]) == tuple([each.status for each in found.results] for found in (large, small))
    assert (0, 1) == (len(large.effects), len(small.effects))


def test_a_large_target_is_changed_by_a_small_patch() -> None:
    """The twin: a target counts for what it gains, and not for all that the request's object has not."""
    rule = (
        "mutate:\n  targets: [{apiVersion: v1, kind: ConfigMap, name: large, namespace: team}]\n"
        "  patchStrategicMerge: {data: {changed: 'yes'}}"
    )
    metadata = {"name": "large", "namespace": "team"}
    large = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": "x" * 3_000_000}}
    host = OfflineHost(objects=ObjectStore([large], KNOWN_KINDS))
    policies = compiled(policy(rule, on="Pod")).policy_set()
    found = Engine(policies, host).review(Request.from_manifest(pod("a", 1)))
    assert ([Status.PASS], 1) == ([each.status for each in found.results], len(found.effects))


@pytest.mark.parametrize("rule", SPOKEN)
def test_the_texts_of_results_and_denials_are_bounded(rule: str) -> None:
    """Thirty rules that quote a text of 200 kB: no result holds it, and the denial is not thirty times as long."""
    action = SPOKEN[rule].replace("validate: {", "validate: {failureAction: Enforce, ")
    several = "\n---\n".join(policy(action, on="Pod").replace("guard", f"g{at}") for at in range(30))
    found = review(several, pod("\n" * 200_000, 1))
    assert {Status.FAIL} == {result.status for result in found.results}
    assert max(len(result.message) for result in found.results) <= MAX_MESSAGE
    assert len(found.decision.message) <= 16 * MAX_MESSAGE
    assert len(response(found)) <= 3 * MAX_MESSAGE_BYTES


def test_warnings_are_bounded() -> None:
    """Each rule that warns adds at most the longest text of a result."""
    text = policy(SPOKEN["deny"], on="Pod", spec="emitWarning: true")
    (warning,) = review(text, pod("x" * 1_000_000, 1)).decision.warnings
    assert len(warning) <= MAX_MESSAGE + 100
    (warning,) = review(text, pod("x" * 1_000, 1)).decision.warnings
    assert f"policy guard.check: {'x' * 1_000}" == warning


def test_events_that_wait_are_as_short_as_those_that_are_written() -> None:
    """A thousand events may wait for a slow API server; each has the first kilobyte of its text."""
    events = Events(None, EventSettings(), configuration=Configuration, uid_of=lambda _: "")  # type: ignore[arg-type]
    body = pod("x" * 15_000, 1)
    found = review(policy(SPOKEN["deny"], on="Pod"), body)
    request = AdmissionRequest("admission.k8s.io/v1", "1", {"object": body, "kind": {"version": "v1", "kind": "Pod"}})
    events.answered(request, "/validate/fail", AdmissionOutcome(AdmissionResponse(), found), 0.1)
    waiting = [events._waiting.get_nowait() for _ in range(events._waiting.qsize())]
    assert waiting
    assert max(len(event.note) for event in waiting) <= 1025
    assert all(event.to_json(1, "a")["note"].endswith("xxx...") for event in waiting)


def test_the_copies_of_a_patch_in_cel_are_charged() -> None:
    """Copies of a large part, counted value by value, look at the deadline like any other work."""
    budget = Budget()
    body = pod("x", 3_000)
    review(OPERATIONS.replace("/metadata/annotations", "/spec"), body, phases=ADMISSION, budget=budget)
    assert Budget().steps - budget.steps > 100_000
    assert len(json.dumps(body)) < 100_000
