"""Reviews of the playground for a chosen Kubernetes version."""

from __future__ import annotations

import pytest

from pyverno.ui.playground.review import review_texts

POLICY = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: policy
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      failureAction: Enforce
      message: "{{ request.object.spec.[restartPolicy || 'none', resources.limits.cpu || 'none'] | join(' ', @) }}"
      deny: {}
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers: [{name: c, image: x}]
  resources: {limits: {cpu: "1"}}
"""


@pytest.mark.parametrize(
    ("version", "message", "problems"),
    [
        ("", "none 1", []),
        ("1.37", "Always 1", []),
        ("1.27", "Always none", [("resources", 6, "warning", 'Kubernetes 1.27: unknown field "spec.resources"')]),
    ],
)
def test_objects_are_reviewed_as_the_chosen_version_sends_them(
    version: str, message: str, problems: list[tuple[str, int, str, str]]
) -> None:
    """With its defaults and without fields that came later; without a version they are reviewed as written."""
    found = review_texts({"policies": POLICY, "resources": POD, "kubernetesVersion": version})
    assert [message] == [each["message"] for each in found["reviews"][0]["results"]]
    own = [each for each in found["problems"] if each["message"].startswith("Kubernetes")]
    assert problems == [(each["input"], each["line"], each["severity"], each["message"]) for each in own]


CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: a, namespace: b}
spec: {}
"""
BINDING = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: b}
spec: {policyName: p, validationActions: [Deny]}
"""


@pytest.mark.parametrize(("version", "count"), [("", 1), ("1.37", 1), ("1.29", 0)])
def test_what_the_chosen_version_does_not_serve_is_a_problem(version: str, count: int) -> None:
    """An object and a policy of such a kind, in kubectl's words and at their lines; the object is not reviewed."""
    policies = f"{POLICY.replace('[Pod]', '[ResourceClaim]')}---\n{BINDING}"
    found = review_texts({"policies": policies, "resources": CLAIM, "kubernetesVersion": version})
    own = {each["input"]: each for each in found["problems"] if each["message"].startswith("no matches for kind")}
    assert count == len(found["reviews"])
    assert (set() if count else {"policies", "resources"}) == set(own)
    if own:
        text = 'no matches for kind "ResourceClaim" in version "resource.k8s.io/v1" (Kubernetes 1.29)'
        assert (1, "error", text) == tuple(own["resources"][key] for key in ("line", "severity", "message"))
        assert (13, "warning") == (own["policies"]["line"], own["policies"]["severity"])


CEL = """\
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: p}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [resource.k8s.io], apiVersions: [v1], operations: [CREATE], resources: [deviceclasses]}
  validations: [{expression: "true"}]
"""


@pytest.mark.parametrize(
    ("policy", "line", "kind"),
    [
        (POLICY.replace("[Pod]", "[Pod, Pod/exec, Cluster, DeviceClass]"), 7, "DeviceClass"),
        (POLICY.replace("[Pod]", "[resource.k8s.io/v1/ResourceClaim]"), 7, "resource.k8s.io/v1/ResourceClaim"),
        (POLICY.replace("[Pod]", "[ResourceClaim]"), 0, ""),
        (CEL, 7, "deviceclasses"),
    ],
    ids=["kind", "version of a kind", "another version of the kind", "resource"],
)
def test_rules_for_kinds_that_came_later_never_match(policy: str, line: int, kind: str) -> None:
    """A warning at the kind; subresources, custom kinds, and kinds of a version that was served then are none."""
    texts = {"policies": policy, "resources": POD}
    old, new = (review_texts({**texts, "kubernetesVersion": each})["problems"] for each in ("1.29", "1.37"))
    own = [(each["line"], each["message"]) for each in old if "does not serve" in each["message"]]
    assert [(line, f"Kubernetes 1.29 does not serve `{kind}`: it never matches")] * bool(line) == own
    assert [] == [each for each in new if "does not serve" in each["message"]]


def test_values_of_wrong_types_are_errors() -> None:
    """The API server refuses them before any policy sees them."""
    found = review_texts(
        {"policies": POLICY, "resources": POD.replace("containers: [", "containers: 1 #"), "kubernetesVersion": "1.33"}
    )
    assert [] == found["reviews"]
    assert ["error"] == [each["severity"] for each in found["problems"] if each["input"] == "resources"]


DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              colour: {type: string, default: blue, enum: [blue, red]}
"""
WIDGET = """\
apiVersion: example.org/v1
kind: Widget
metadata: {name: a}
spec:
  size: 1
"""
COLOURS = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: colour
    match: {any: [{resources: {kinds: [Widget]}}]}
    validate:
      failureAction: Enforce
      message: "{{ request.object.spec.[colour || 'none', to_string(size || 'no size')] | join(', ', @) }}"
      deny: {}
"""


@pytest.mark.parametrize(
    ("version", "widget", "message", "problems"),
    [
        ("", WIDGET, "none, 1", []),
        ("1.35", WIDGET, "blue, no size", ['5 Kubernetes 1.35: unknown field "spec.size"']),
        (
            "1.35",
            WIDGET.replace("size: 1", "colour: green"),
            "green, no size",
            ['5 Kubernetes 1.35: spec.colour: Unsupported value: "green": supported values: "blue", "red"'],
        ),
    ],
)
def test_custom_objects_have_the_defaults_and_fields_of_their_definitions(
    version: str, widget: str, message: str, problems: list[str]
) -> None:
    """The visitor's definitions count as those of a cluster do."""
    found = review_texts({"policies": COLOURS, "resources": widget, "crds": DEFINITION, "kubernetesVersion": version})
    assert [message] == [each["message"] for each in found["reviews"][0]["results"]]
    own = [each for each in found["problems"] if each["input"] == "resources"]
    assert problems == [f"{each['line']} {each['message']}" for each in own]


def test_a_definition_that_an_api_server_refuses_is_a_warning_and_adds_no_defaults() -> None:
    """At its specification; objects of its kind are reviewed as written."""
    broken = DEFINITION.replace("type: string, default: blue", "type: strange, default: blue")
    found = review_texts({"policies": COLOURS, "resources": WIDGET, "crds": broken, "kubernetesVersion": "1.35"})
    assert ["none, 1"] == [each["message"] for each in found["reviews"][0]["results"]]
    warned = [each for each in found["problems"] if each["input"] == "crds" and each["severity"] == "warning"]
    assert warned
    assert {5} == {each["line"] for each in warned}
