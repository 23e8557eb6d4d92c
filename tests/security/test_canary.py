"""I4: data that a rule read, from a Secret or a ConfigMap for example, appears in no text of an error, at any door."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from pyverno.controllers.runtime.events import events_of
from pyverno.engine.engine import Review
from pyverno.engine.result import ResourceRef, Status
from pyverno.kube.admissionreview import AdmissionResponse, read_admission_review
from pyverno.kube.gvk import GVK, GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import Document
from pyverno.offline.host import OfflineHost
from pyverno.offline.objects import ObjectStore
from pyverno.report.ephemeral import Reported, admission_report
from pyverno.report.exceptions import exception_for
from pyverno.report.finding import finding
from pyverno.report.formats.github import github
from pyverno.report.formats.mergedreports import merged_reports
from pyverno.report.formats.sarif import sarif
from pyverno.report.policyreport import ReportEntry, result_object
from pyverno.telemetry.logs import AnswerLog
from pyverno.telemetry.metrics import Metrics
from pyverno.telemetry.observer import AdmissionOutcome
from tests.security.asking import CONFIG_MAP, ask, policy

CANARY = "c4n4ry"
VAULT: JSONObject = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "vault", "namespace": "team"},
    "data": {"secret": CANARY, "list": json.dumps([CANARY]), "odd": f"../{CANARY}?x=%2e"},
}
CONTEXT = "context:\n- name: vault\n  configMap: {name: vault, namespace: team}\n"
SECRET, ODD = "{{ vault.data.secret }}", "{{ vault.data.odd }}"

RULES = {
    "json patch test": f"mutate:\n  patchesJson6902: |-\n    - op: test\n      path: /data/a\n      value: '{SECRET}'",
    "json patch from": f"mutate:\n  patchesJson6902: |-\n    - op: move\n      from: /x/{SECRET}\n      path: /data/b",
    "merge directive": f"mutate:\n  patchStrategicMerge:\n    data:\n      $patch: '{SECRET}'",
    "merge of another type": f"mutate:\n  patchStrategicMerge:\n    metadata: '{SECRET}'",
    "clone": "generate:\n  apiVersion: v1\n  kind: ConfigMap\n  name: a\n  namespace: team\n"
    f"  clone: {{name: '{SECRET}', namespace: team}}",
    "clone list": "generate:\n  namespace: other\n"
    f"  cloneList: {{namespace: team, kinds: [v1/Secret], selector: {{matchLabels: {{a: '/{SECRET}/ x'}}}}}}",
    "generate data": f"generate:\n  apiVersion: v1\n  kind: ConfigMap\n  name: a\n  namespace: b\n  data: '{SECRET}'",
    "apiCall path": f"context:\n- name: x\n  apiCall: {{urlPath: '/api/v1/{ODD}'}}\n",
    "apiCall of the cluster": f"context:\n- name: x\n  apiCall: {{urlPath: '/api/v1/namespaces/{SECRET}'}}\n",
    "service url": f"context:\n- name: x\n  apiCall: {{service: {{url: 'https://x.example.com/?t={SECRET}'}}}}\n",
    "service body": f"context:\n- name: x\n  apiCall:\n    method: POST\n    data: [{{key: a, value: '{SECRET}'}}]\n"
    "    service: {url: 'https://x.example.com/'}\n",
    "configMap name": f"context:\n- name: x\n  configMap: {{name: '{SECRET}', namespace: team}}\n",
    "configMap namespace": f"context:\n- name: x\n  configMap: {{name: a, namespace: '{SECRET}'}}\n",
    "global reference": f"context:\n- name: x\n  globalReference: {{name: '{SECRET}'}}\n",
    "image": f"context:\n- name: x\n  imageRegistry: {{reference: '{SECRET}:UPPER CASE'}}\n",
    "pattern operator": f"validate:\n  pattern:\n    data:\n      a: '>{SECRET}'",
    "pattern range": f"validate:\n  pattern:\n    data:\n      a: '{SECRET}-9 & {SECRET}!-'",
    "pattern type": f"validate:\n  pattern:\n    data: '{SECRET}'",
    "any pattern": f"validate:\n  anyPattern:\n  - data:\n      a: '{SECRET}'\n  - data: '{SECRET}'",
    "anchors": f"validate:\n  pattern:\n    data:\n      (a): '{SECRET}'\n      b: '{SECRET}'",
    "global anchor": f"validate:\n  pattern:\n    data:\n      <(a): '{SECRET}'\n      b: '{SECRET}'",
    "order": f"validate:\n  deny:\n    conditions:\n      all:\n"
    f"      - {{key: '{SECRET}', operator: GreaterThan, value: 1h}}",
    "duration": f"validate:\n  deny:\n    conditions:\n      all:\n"
    f"      - {{key: '{SECRET}', operator: DurationLessThan, value: '{SECRET}'}}",
    "reference": f"validate:\n  pattern:\n    data:\n      a: $(./../{SECRET})",
    "missing variable": f"validate:\n  message: 'no {{{{ vault.data.none }}}}'\n  deny:\n    conditions:\n      all:\n"
    f"      - {{key: '{{{{ vault.data.list.x }}}}', operator: Equals, value: '{SECRET}'}}",
    "map key": "mutate:\n  patchStrategicMerge:\n    data:\n      '{{ vault.data }}': x",
    "foreach": "validate:\n  foreach:\n  - list: vault.data.list.parse_json(@)[0].x.y\n    deny: {}",
    "foreach preconditions": "validate:\n  foreach:\n  - list: vault.data.list.parse_json(@)\n"
    "    preconditions:\n      all:\n      - {key: '{{ element.a.b }}', operator: Equals, value: x}\n    deny: {}",
    "element scope": "validate:\n  foreach:\n  - list: vault.data.list.parse_json(@)\n    elementScope: true\n"
    "    pattern: {a: b}",
    "precondition": "preconditions:\n  all:\n"
    f"  - {{key: '{{{{ vault.data.secret.x.y }}}}', operator: Equals, value: '{SECRET}'}}\n"
    "validate:\n  deny: {}",
    "targets": f"mutate:\n  targets:\n  - {{apiVersion: v1, kind: '{SECRET}', namespace: team, name: a}}\n"
    "  patchStrategicMerge: {data: {a: b}}",
    "target selector": "mutate:\n  targets:\n  - apiVersion: v1\n    kind: ConfigMap\n    namespace: team\n"
    f"    selector: {{matchLabels: {{a: '/{SECRET}/ x'}}}}\n  patchStrategicMerge: {{data: {{a: b}}}}",
}


def reviewed(rule: str) -> Review:
    """Review an object by a rule whose context holds the canary."""
    if rule.startswith("context:"):
        rule = (
            CONTEXT
            + rule.removeprefix("context:\n")
            + (
                "validate:\n  deny:\n    conditions:\n      all:\n"
                + "      - {key: '{{ to_string(x) }}', operator: Equals, value: y}"
            )
        )
    else:
        rule = CONTEXT + rule
    return ask(policy(rule), {**CONFIG_MAP, "list": [1]}, host=OfflineHost(objects=ObjectStore([VAULT, CONFIG_MAP])))


def reported(review: Review, about: ResourceRef) -> Iterator[object]:
    """Yield the report of a review in every format."""
    entries = [ReportEntry(result, about, 1) for result in review.results]
    yield [result_object(entry) for entry in entries]
    yield [*merged_reports(entries)]
    yield [exception_for(entry) for entry in entries]
    subject = Reported(about, "u", GVK("", "v1", "ConfigMap"), GVR("", "v1", "configmaps"), "r")
    yield admission_report(subject, review.results, 1)
    findings = [finding(result, about, Document(CONFIG_MAP, "")) for result in review.results]
    yield [each.to_json() for each in findings]
    yield [*github(findings)]
    yield [*sarif(findings)]


@pytest.mark.parametrize("name", RULES)
def test_an_error_shows_nothing_that_a_rule_read(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """In messages, denials, warnings, reports of every format, events, logs and metrics."""
    review = reviewed(RULES[name])
    texts = [result.message for result in review.results]
    assert [] == [text for text in texts if CANARY in text]
    assert CANARY not in repr([dict(result.properties) for result in review.results])
    decision = review.decision
    assert CANARY not in repr((decision.message, decision.warnings))
    about = ResourceRef.of(CONFIG_MAP)
    assert CANARY not in repr([*reported(review, about)])
    assert CANARY not in repr([*events_of(review.results, about, is_allowed=decision.allowed)])
    question = read_admission_review(
        json.dumps(
            {
                "apiVersion": "admission.k8s.io/v1",
                "kind": "AdmissionReview",
                "request": {
                    "uid": "1",
                    "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
                    "resource": {"group": "", "version": "v1", "resource": "configmaps"},
                    "operation": "CREATE",
                    "name": "settings",
                    "namespace": "team",
                    "object": CONFIG_MAP,
                },
            }
        ).encode(),
        "application/json",
    )
    outcome = AdmissionOutcome(AdmissionResponse(decision.allowed), review)
    metrics = Metrics()
    with caplog.at_level(logging.DEBUG, logger="pyverno"):
        AnswerLog().answered(question, "/validate/fail", outcome, 0.1)
        metrics.answered(question, "/validate/fail", outcome, 0.1)
    assert CANARY not in repr([vars(record) for record in caplog.records])
    assert CANARY not in repr(metrics.exposition())


def test_most_of_these_rules_err() -> None:
    """A rule that passes would prove nothing."""
    erred = [name for name in RULES if any(result.status is Status.ERROR for result in reviewed(RULES[name]).results)]
    assert len(erred) >= 14
