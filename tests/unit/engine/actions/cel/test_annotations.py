"""Audit annotations of policies that change or make objects become properties of their results."""

from __future__ import annotations

import pytest

from tests.support.celpolicies import CONFIG_MAP, ask, kyverno

PATCH = "[JSONPatch{op: 'add', path: '/data/by', value: 'policy'}]"
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one", "namespace": "team"}}
SECRETS = {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["secrets"]}]}


def mutating(expression="string(object.data.by)", patch=PATCH, **spec):
    return kyverno(
        "MutatingPolicy",
        mutations=[{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
        auditAnnotations=[{"key": "note", "valueExpression": expression}],
        **spec,
    )


def generating(expression):
    apply = "generator.Apply('team', [{'apiVersion': dyn('v1'), 'kind': dyn('Secret'), 'metadata': {'name': 'made'}}])"
    return kyverno(
        "GeneratingPolicy",
        generate=[{"expression": apply}],
        auditAnnotations=[{"key": "note", "valueExpression": expression}],
    )


@pytest.mark.parametrize(
    ("policy", "properties"),
    [
        (mutating(), {"note": "policy"}),
        (mutating("oldObject == {} ? 'new' : 'old'"), {"note": "new"}),
        (mutating("''"), {}),
        (mutating("variables.who", variables=[{"name": "who", "expression": "'me'"}]), {"note": "me"}),
        (generating("string(object.metadata.name)"), {"note": "settings"}),
    ],
)
def test_annotations_see_what_the_policy_made_of_the_object(policy, properties):
    """They are evaluated last; an empty text is none."""
    (result,) = ask(policy).results
    assert ("pass", properties) == (result.status.value, dict(result.properties))


def test_every_target_has_its_own():
    """Also one that stays as it is."""
    other = {**SECRET, "metadata": {"name": "two", "namespace": "team", "labels": {"seen": "yes"}}}
    patch = "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'seen': 'yes'}}]"
    policy = mutating(
        "string(object.metadata.name + object.metadata.labels.seen)", patch, targetMatchConstraints=SECRETS
    )
    results = ask(policy, objects=(CONFIG_MAP, SECRET, other)).results
    assert [({"note": "oneyes"}, 1), ({"note": "twoyes"}, 0)] == [
        (dict(result.properties), len(result.effects)) for result in results
    ]


@pytest.mark.parametrize("make", [mutating, generating])
def test_an_annotation_that_fails_is_an_error_of_the_policy(make):
    """Nothing is changed or made then."""
    review = ask(make("string(object.none)"))
    (result,) = review.results
    assert ("error", {}, ()) == (result.status.value, dict(result.properties), review.effects)
    assert result.message.startswith('failed to evaluate policy: failed to evaluate auditAnnotation "note": ')
    assert "no such key" in result.message
    assert CONFIG_MAP == review.resource
