"""Fields of patterns and patches that the matched kinds do not have."""

from __future__ import annotations

import pytest

from pyverno.policy.kinds import KNOWN_KINDS
from tests.support.linting import fixed, found, policy, rule

CRD = {
    "kind": "CustomResourceDefinition",
    "spec": {
        "group": "x.io",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "schema": {"openAPIV3Schema": {"properties": {"spec": {"properties": {"size": {"type": "integer"}}}}}},
            }
        ],
    },
}


def pattern(text: str, *kinds: str) -> str:
    """Return a policy with a pattern in flow style."""
    match = f"{{any: [{{resources: {{kinds: [{', '.join(kinds or ('Pod',))}]}}}}]}}"
    return policy(rule(f"validate: {{message: m, pattern: {text}}}", match=match))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{spec: {=(hostPid): false}}", "Pod has no field `hostPid` here: did you mean `hostPID`?"),
        (
            "{spec: {containers: [{resources: {limit: {cpu: '?*'}}}]}}",
            "Pod has no field `limit` here: did you mean `limits`?",
        ),
        ("{spec: {^(container): [{name: '?*'}]}}", "Pod has no field `container` here: did you mean `containers`?"),
        ("{sepc: {}}", "Pod has no field `sepc` here: did you mean `spec`?"),
    ],
)
def test_a_field_that_no_pod_has_is_found(text: str, message: str) -> None:
    """Also below anchors and in lists."""
    assert [message] == [each.partition(" ")[2] for each in found(pattern(text), "PV104")]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("{spec: {containers: [{image: x}]}}", ("Pod",)),
        ("{spec: {template: {spec: {hostPID: false}}}}", ("Pod", "Deployment")),
        ("{metadata: {labels: {anything: '?*'}, annotations: {a/b: x}}}", ("Pod",)),
        ("{spec: {nodeSelector: {anything: x}}}", ("Pod",)),
        ("{spec: {anything: x}}", ("Certificate",)),
        ("{spec: {anything: x}}", ("Pod", "Certificate")),
        ("{spec: {anything: x}}", ("'*Set'",)),
        ("{data: {anything: x}}", ("ConfigMap", "Secret")),
        ("{spec: {'=(serviceAccount)': x, '{{ request.object.kind }}': x}}", ("Pod",)),
    ],
)
def test_fields_that_some_kind_has_are_not_reported(text: str, kinds: tuple[str, ...]) -> None:
    """Maps have any keys, and the fields of custom kinds are unknown."""
    assert [] == found(pattern(text, *kinds), "PV104")


def test_the_definition_of_a_custom_kind_gives_its_fields() -> None:
    """With a schema, its fields are known as those of built-in kinds are."""
    text = pattern("{metadata: {name: x}, spec: {sice: 1}}", "Widget")
    [message] = found(text, "PV104", kinds=KNOWN_KINDS.with_crds([CRD]), crds=[CRD])
    assert "Widget has no field `sice` here: did you mean `size`?" in message


def test_patches_of_the_matched_object_are_checked() -> None:
    """A patch of targets is one of other kinds."""
    patch = "patchStrategicMerge: {spec: {container: []}}"
    own = policy(rule(f"mutate: {{{patch}}}"))
    targets = policy(rule(f"mutate: {{targets: [{{apiVersion: v1, kind: ConfigMap, name: c}}], {patch}}}"))
    assert (1, 0) == (len(found(own, "PV104")), len(found(targets, "PV104")))


def test_only_the_case_of_a_field_is_corrected() -> None:
    """The anchor and the rest of the line stay."""
    text = pattern('{spec: {=(hostPid): false, "hostnetwork": false, container: []}}')
    assert text.replace("hostPid", "hostPID").replace("hostnetwork", "hostNetwork") == fixed(text, "PV104")
