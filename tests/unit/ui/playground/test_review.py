"""One review of the playground."""

from __future__ import annotations

import json
import socket

import pytest

from pyverno.engine.host import NO_HOST
from pyverno.errors import UsageError
from pyverno.kube.yaml.documents import load_documents
from pyverno.offline.library import compile_policies
from pyverno.ui.playground.review import review_texts
from pyverno.webhook.policies import Policies
from tests.parity.standingserver import standing_server
from tests.support import documents
from tests.support.webhookserver import MemoryWorld, review_body

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - {name: c, image: 'x:latest'}\n"


def test_results_have_places_in_the_texts() -> None:
    """Each result has the place of its field and of its rule, each in its own text."""
    found = review_texts({"policies": documents.LATEST, "resources": POD})
    (review,) = found["reviews"]
    (failed,) = [each for each in review["results"] if each["status"] == "fail"]
    assert ("resources", 6) == (failed["place"]["input"], failed["place"]["line"])
    assert ("policies", True) == (failed["rulePlace"]["input"], failed["rulePlace"]["line"] > 1)
    assert [] == found["problems"]


def test_problems_are_reported_with_their_place() -> None:
    """The remaining texts are still reviewed."""
    broken = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: x}\nspec: {rulez: 1}\n"
    found = review_texts(
        {
            "policies": f"{documents.LATEST}\n---\n{broken}",
            "resources": f"{POD}---\nnot: a resource\n",
            "values": "a: [",
            "userInfo": "apiVersion: v1\n---\napiVersion: v1\n",
        }
    )
    assert {"policies", "resources", "values", "userInfo"} == {each["input"] for each in found["problems"]}
    assert all(each["line"] > 0 for each in found["problems"])
    assert 1 == len(found["reviews"])


LABELS = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: add-label}
spec:
  rules:
  - name: team
    match: {any: [{resources: {kinds: [Pod]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {team: a}}}}
"""


def test_changes_and_generated_objects_are_shown() -> None:
    """Each change has the text before and after."""
    found = review_texts(
        {"policies": f"{LABELS}---\n{documents.GENERATE}", "resources": f"{POD}---\n{documents.NAMESPACE}"}
    )
    changed = [each for each in found["reviews"] if "before" in each]
    created = [effect for each in found["reviews"] for effect in each["effects"] if effect["type"] == "create"]
    assert changed
    assert changed[0]["before"] != changed[0]["after"]
    assert created
    assert "kind:" in created[0]["text"]


UPDATES = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: keep-image}
spec:
  rules:
  - name: image
    match: {any: [{resources: {kinds: [Pod], operations: [UPDATE]}}]}
    validate:
      failureAction: Enforce
      message: "was {{ request.oldObject.spec.containers[0].image }}"
      deny:
        conditions:
          any:
          - key: "{{ request.object.spec.containers[0].image }}"
            operator: NotEquals
            value: "{{ request.oldObject.spec.containers[0].image }}"
"""


def test_an_old_resource_makes_an_update() -> None:
    """It is found by kind, namespace and name."""
    old = POD.replace("x:latest", "x:1")
    found = review_texts({"policies": UPDATES, "resources": POD, "oldResources": old})
    same = review_texts({"policies": UPDATES, "resources": POD, "oldResources": POD})
    assert ("UPDATE", False) == (found["reviews"][0]["operation"], found["reviews"][0]["allowed"])
    assert "was x:1" in found["reviews"][0]["message"]
    assert same["reviews"][0]["allowed"]


DENIAL = (
    "\n\nresource Pod/default/a was blocked due to the following policies \n\nno-latest:\n"
    "  tag: 'validation error: no latest. rule tag failed at path /spec/containers/0/image/'\n"
)


def test_the_denial_is_that_of_a_cluster() -> None:
    """A denied review has the message that the webhook sends, which kubectl prints; an allowed one has none."""
    denied, allowed = (
        review_texts({"policies": documents.LATEST, "resources": pod})["reviews"][0]
        for pod in (POD, POD.replace("x:latest", "x:1"))
    )
    assert [(False, DENIAL), (True, "")] == [(each["allowed"], each["message"]) for each in (denied, allowed)]

    (policy,) = load_documents(documents.LATEST)
    (pod,) = load_documents(POD)
    server = standing_server()
    server.judge_by(MemoryWorld(Policies(compile_policies([policy.value]))), NO_HOST)
    pod.value["metadata"]["namespace"] = "default"
    code, body = server.post("/validate/fail", json.dumps(review_body(pod.value)).encode())
    response = json.loads(body)["response"]
    assert (200, False, DENIAL) == (code, response["allowed"], response["status"]["message"])


@pytest.mark.parametrize("request_", [{"policies": 1}, {"resources": None}, {"operation": "create"}, {"operation": []}])
def test_a_request_of_another_form_is_an_error(request_: dict[str, object]) -> None:
    """Missing and malformed fields are not guessed."""
    with pytest.raises(UsageError):
        review_texts(request_)


def test_no_policy_reads_files_or_the_network() -> None:
    """A call has no recorded answer here, and is an error of its rule."""
    policy = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: calls}
spec:
  rules:
  - name: call
    match: {any: [{resources: {kinds: [Pod]}}]}
    context: [{name: answer, apiCall: {method: GET, service: {url: "http://127.0.0.1:1/"}}}]
    validate: {message: denied, deny: {conditions: {any: [{key: "{{ answer }}", operator: Equals, value: x}]}}}
"""
    found = review_texts({"policies": policy, "resources": POD})
    assert ["error"] == [each["status"] for each in found["reviews"][0]["results"] if each["rule"] == "call"]


@pytest.mark.parametrize(("version", "count"), [("", 0), ("1.37", 0), ("1.27", 1)])
def test_a_policy_is_checked_for_a_kubernetes_version(version: str, count: int) -> None:
    """A function that came later is a warning at its line; the review is made all the same."""
    policy = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations:
  - expression: isIP('1.2.3.4')
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: b}
spec: {policyName: p, validationActions: [Deny]}
"""
    found = review_texts({"policies": policy, "resources": POD, "kubernetesVersion": version})
    own = [each for each in found["problems"] if each["message"].startswith("Kubernetes 1.")]
    assert (count, 1) == (len(own), len(found["reviews"]))
    assert [("policies", 7, "warning")] * count == [(each["input"], each["line"], each["severity"]) for each in own]


def test_an_unknown_kubernetes_version_is_an_error() -> None:
    """The error lists the known ones."""
    with pytest.raises(UsageError, match=r"`kubernetesVersion` must be one of 1\.27, "):
        review_texts({"policies": "", "resources": "", "kubernetesVersion": "1.5"})


def test_a_policy_of_a_visitor_looks_up_no_host_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """The resolver of the server would answer which names its network knows, and carry data away."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a name is looked up")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    policy = documents.LATEST.replace("*:latest", "x").split("validate:")[0]
    policy += (
        "validate:\n      message: m\n      deny: {conditions: {any: [{operator: Equals, value: true, "
        """key: "{{ is_external_url('http://db.internal.example') }}"}]}}\n"""
    )
    for explains in (False, True):
        found = review_texts({"policies": policy, "resources": POD, "explain": explains})
        assert [] == found["problems"]
        (answer,) = [each for review in found["reviews"] for each in review["results"]]
        assert "error" == answer["status"]
        assert "no host name is looked up" in answer["message"]
