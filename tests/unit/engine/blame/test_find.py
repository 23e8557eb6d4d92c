"""Blame: the field of the object that made a rule fail."""

from __future__ import annotations

import json

import pytest
import yaml

from pyverno.compiler import compile_documents
from pyverno.engine.engine import Engine
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Operation, Request
from pyverno.engine.result import Status
from pyverno.kube.yaml.documents import load_documents

POD = yaml.safe_load("""
apiVersion: v1
kind: Pod
metadata:
  name: web
  labels: {app.org/team: "", tier: back}
spec:
  hostNetwork: true
  initContainers:
  - {name: setup, image: "r/setup:1"}
  containers:
  - {name: app, image: "r/app:1", securityContext: {privileged: false}}
  - name: side
    image: r/side:latest
    securityContext: {privileged: true}
    ports: [{containerPort: 80}, {hostPort: 9}]
""")

HEAD = """
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p, annotations: {pod-policies.kyverno.io/autogen-controllers: none}}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
"""

CEL = """
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: p}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
"""


def deny(conditions: str, more: str = "") -> str:
    """A rule that denies under conditions."""
    return f"{HEAD}{more}    validate: {{message: forbidden, deny: {{conditions: {conditions}}}}}\n"


def cel(expression: str, variables: str = "[]") -> str:
    """A policy in CEL with one validation."""
    return f"{CEL}  variables: {variables}\n  validations: [{{expression: {json.dumps(expression)}}}]\n"


SIDE = ("spec", "containers", 1)
CASES = {
    "pattern": (f"{HEAD}    validate: {{pattern: {{spec: {{=(hostNetwork): false}}}}}}\n", ("spec", "hostNetwork")),
    "pattern, key with a slash": (
        f"{HEAD}    validate: {{pattern: {{metadata: {{labels: {{app.org/team: '?*'}}}}}}}}\n",
        ("metadata", "labels", "app.org/team"),
    ),
    "anyPattern": (
        f"{HEAD}    validate: {{anyPattern: [{{kind: Service}}, "
        "{spec: {containers: [{image: '!*:latest'}]}}]}\n",
        (*SIDE, "image"),
    ),
    "deny, one field": (
        deny("{any: [{key: '{{ request.object.spec.hostNetwork }}', operator: Equals, value: true}]}"),
        ("spec", "hostNetwork"),
    ),
    "deny, missing field": (
        deny("{any: [{key: \"{{ request.object.spec.hostPID || 'none' }}\", operator: Equals, value: none}]}"),
        ("spec", "hostPID"),
    ),
    "deny, the item of a projection": (
        deny("{any: [{key: '{{ request.object.spec.containers[].image }}', operator: AnyIn, value: ['*:latest']}]}"),
        (*SIDE, "image"),
    ),
    "deny, the condition that holds": (
        deny(
            "{any: [{key: '{{ request.object.metadata.name }}', operator: Equals, value: x},"
            " {key: '{{ request.object.metadata.labels.tier }}', operator: Equals, value: back}]}"
        ),
        ("metadata", "labels", "tier"),
    ),
    "deny, through a variable": (
        deny(
            "{all: [{key: '{{ tier }}', operator: Equals, value: back}]}",
            "    context: [{name: tier, variable: {jmesPath: request.object.metadata.labels.tier}}]\n",
        ),
        ("metadata", "labels", "tier"),
    ),
    "deny, count of a list": (
        deny("{all: [{key: '{{ length(request.object.spec.containers) }}', operator: GreaterThan, value: 1}]}"),
        ("spec", "containers"),
    ),
    "deny, nothing of the object": (
        deny("{all: [{key: '{{ request.operation }}', operator: Equals, value: CREATE}]}"),
        (),
    ),
    "foreach with deny": (
        f"{HEAD}    validate: {{foreach: [{{list: request.object.spec.containers, deny: {{conditions: {{any: "
        "[{key: '{{ element.securityContext.privileged }}', operator: Equals, value: true}]}}}]}\n",
        (*SIDE, "securityContext", "privileged"),
    ),
    "foreach with pattern": (
        f"{HEAD}    validate: {{foreach: [{{list: 'request.object.spec.[initContainers, containers][]', "
        "pattern: {image: '!*:latest'}}]}\n",
        (*SIDE, "image"),
    ),
    "foreach in foreach": (
        f"{HEAD}    validate: {{foreach: [{{list: request.object.spec.containers, "
        "foreach: [{list: 'element.ports || `[]`', "
        'deny: {conditions: {any: [{key: "{{ element1.hostPort || `0` }}", operator: GreaterThan, value: 0}]}}}]}]}\n',
        (*SIDE, "ports", 1, "hostPort"),
    ),
    "podSecurity": (
        f"{HEAD}    validate:\n      podSecurity: {{level: baseline, exclude: [{{controlName: Host Namespaces}}]}}\n",
        (*SIDE, "ports", 1, "hostPort"),
    ),
    "validate.cel": (
        f"{HEAD}    validate: {{cel: {{expressions: [{{expression: '!object.spec.hostNetwork'}}]}}}}\n",
        ("spec", "hostNetwork"),
    ),
    "CEL, element of all": (
        cel("object.spec.containers.all(c, !c.image.endsWith(':latest'))"),
        (*SIDE, "image"),
    ),
    "CEL, the term that is false": (
        cel("has(object.spec.containers) && object.metadata.labels.tier == 'front' && object.kind == 'Pod'"),
        ("metadata", "labels", "tier"),
    ),
    "CEL, missing field": (cel("has(object.spec.serviceAccountName)"), ("spec", "serviceAccountName")),
    "CEL, loop in loop": (
        cel("object.spec.containers.all(c, !has(c.ports) || c.ports.all(p, !has(p.hostPort)))"),
        (*SIDE, "ports", 1, "hostPort"),
    ),
    "CEL, joined lists in a variable": (
        cel(
            "variables.all.all(c, !has(c.securityContext) || !c.securityContext.privileged)",
            "[{name: all, expression: 'object.spec.initContainers + object.spec.containers'}]",
        ),
        (*SIDE, "securityContext", "privileged"),
    ),
    "CEL, branch": (
        cel("object.kind == 'Pod' ? object.spec.?hostNetwork.orValue(false) == false : true"),
        ("spec", "hostNetwork"),
    ),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_field_that_decided_is_found(name: str) -> None:
    """For every way in which a rule may fail."""
    policy, expected = CASES[name]
    compilation = compile_documents(load_documents(policy))
    assert () == compilation.errors
    engine = Engine(PolicySet(compilation.policies))
    request = Request.from_manifest(POD)
    (result,) = engine.review(request).results
    assert Status.FAIL is result.status, result
    assert expected == engine.blame(request, result)


DELETED = {
    "deny": deny("{any: [{key: '{{ request.oldObject.spec.hostNetwork }}', operator: Equals, value: true}]}"),
    "deny, by the name of the new object": deny(
        "{any: [{key: '{{ request.object.spec.hostNetwork }}', operator: Equals, value: true}]}"
    ),
    "foreach": (
        f"{HEAD}    validate: {{foreach: [{{list: 'request.oldObject.spec.hostNetwork', deny: {{conditions: {{any: "
        "[{key: '{{ element }}', operator: Equals, value: true}]}}}]}\n"
    ),
    "CEL": cel("!oldObject.spec.hostNetwork").replace("[CREATE]", "[DELETE]"),
    "CEL, through a variable": cel(
        "variables.spec.all(s, !s)", "[{name: spec, expression: '[oldObject.spec.hostNetwork]'}]"
    ),
    "CEL, through the request": cel("!request.oldObject.spec.hostNetwork").replace("[CREATE]", "[DELETE]"),
}


@pytest.mark.parametrize("name", sorted(DELETED))
def test_on_delete_the_field_of_the_object_that_goes_is_found(name: str) -> None:
    """A DELETE has no new object, so the path is looked up in the old one."""
    compilation = compile_documents(load_documents(DELETED[name].replace("[CREATE]", "[DELETE]")))
    assert () == compilation.errors
    engine = Engine(PolicySet(compilation.policies))
    request = Request.from_manifest(POD, operation=Operation.DELETE, old=POD)
    (result,) = engine.review(request).results
    assert Status.FAIL is result.status, result
    assert ("spec", "hostNetwork") == engine.blame(request, result)


def images(*, digest: str = "false", required: str = "false") -> str:
    """A rule that demands digests of images, or their verification."""
    demands = f"required: {required}, mutateDigest: false, verifyDigest: {digest}"
    return f"{HEAD}    verifyImages: [{{imageReferences: ['*'], {demands}}}]\n"


def image_policy(glob: str, *, digest: str = "false", required: str = "false", valid: str = "true") -> str:
    """An ImageValidatingPolicy for some images."""
    return f"""{CEL.replace("ValidatingPolicy", "ImageValidatingPolicy")}
  matchImageReferences: [{{glob: "{glob}"}}]
  attestors: [{{name: key, cosign: {{keyless: {{identities: [{{issuer: a, subject: b}}]}}}}}}]
  validationConfigurations: {{mutateDigest: false, verifyDigest: {digest}, required: {required}}}
  validations: [{{expression: "{valid}", message: bad images}}]
"""


FIRST = ("spec", "initContainers", 0, "image")


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        pytest.param(images(digest="true"), FIRST, id="a digest"),
        pytest.param(images(required="true"), FIRST, id="a verification"),
        pytest.param(image_policy("*latest", digest="true"), (*SIDE, "image"), id="a digest, in CEL"),
        pytest.param(image_policy("*latest", required="true"), (*SIDE, "image"), id="a verification, in CEL"),
        pytest.param(image_policy("*latest", valid="false"), (*SIDE, "image"), id="a validation"),
        pytest.param(image_policy("*", valid="false"), ("spec",), id="a validation of all images"),
    ],
)
def test_the_image_that_a_rule_failed_for_is_found(policy: str, expected: tuple[str | int, ...]) -> None:
    """By its name in the message; what the images have in common where none is named."""
    compilation = compile_documents(load_documents(policy))
    assert () == compilation.errors
    engine = Engine(PolicySet(compilation.policies))
    request = Request.from_manifest(POD)
    results = [each for each in engine.review(request).results if each.status is Status.FAIL]
    assert results
    assert [expected] * len(results) == [engine.blame(request, each) for each in results]
