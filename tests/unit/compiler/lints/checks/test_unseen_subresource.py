"""Lint PV107: subresources that write what a policy in CEL judges."""

from __future__ import annotations

import pytest

from tests.support import linting

POLICY = """\
apiVersion: {api}
kind: {kind}
metadata: {{name: p}}
spec:
  matchConstraints:
    resourceRules:
    - apiGroups: ["{group}"]
      apiVersions: [v1]
      operations: [{operation}]
      resources: [{resources}]
  validations:
  - expression: {expression}
"""
_KINDS = {
    "ValidatingPolicy": "policies.kyverno.io/v1",
    "NamespacedValidatingPolicy": "policies.kyverno.io/v1",
    "ValidatingAdmissionPolicy": "admissionregistration.k8s.io/v1",
}
_EPHEMERAL = "object.spec.?ephemeralContainers.orValue([]).size() == 0"
_RESOURCES = "object.spec.containers.all(c, has(c.resources))"
_REPLICAS = "object.spec.?replicas.orValue(1) < 5"


def found(
    expression: str, resources: str, *, kind: str = "ValidatingPolicy", group: str = "", operation: str = "UPDATE"
) -> list[str]:
    """Return the messages of the lint for a policy, up to the comma."""
    text = POLICY.format(
        api=_KINDS[kind], kind=kind, group=group, operation=operation, resources=resources, expression=expression
    )
    return [each.partition(" ")[2].partition(",")[0] for each in linting.found(text, "PV107")]


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize(
    ("expression", "resources", "group", "missing"),
    [
        (_EPHEMERAL, "pods", "", "`pods/ephemeralcontainers`"),
        (_EPHEMERAL, "pods, pods/status", "", "`pods/ephemeralcontainers`"),
        (_RESOURCES, "pods, pods/ephemeralcontainers", "", "`pods/resize`"),
        (_REPLICAS, "deployments", "apps", "`deployments/scale`"),
        (_REPLICAS, "daemonsets, statefulsets", "apps", "`statefulsets/scale`"),
    ],
)
def test_a_field_that_a_subresource_writes_is_reported(
    expression: str, resources: str, group: str, missing: str, kind: str
) -> None:
    """In every validating kind, at the resource of the rule."""
    assert [missing] == found(expression, resources, kind=kind, group=group)


@pytest.mark.parametrize(
    ("expression", "resources", "operation"),
    [
        (_EPHEMERAL, "pods, pods/ephemeralcontainers", "UPDATE"),
        (_EPHEMERAL, "pods, pods/*", "UPDATE"),
        (_EPHEMERAL, '"*/*", pods', "UPDATE"),
        (_EPHEMERAL, "pods", "CREATE"),
        ("object.spec.containers.size() < 3", "pods", "UPDATE"),
        (_REPLICAS, "deployments, deployments/scale", "UPDATE"),
        (f"has(object.spec.template) && {_REPLICAS}", "deployments", "UPDATE"),
        (_REPLICAS, "horizontalpodautoscalers", "UPDATE"),
    ],
)
def test_what_no_subresource_writes_is_not_reported(expression: str, resources: str, operation: str) -> None:
    """Nor what is matched already, or what cannot be judged there."""
    assert [] == found(expression, resources, operation=operation)
