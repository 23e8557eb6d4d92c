"""I5, issue D: `allowExistingViolations` excuses what an object was before, never who asks or how."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from pyverno.engine.request import Operation, User
from pyverno.engine.result import Status
from pyverno.kube.json import JSONObject
from tests.security.asking import CONFIG_MAP, POD, ask, only, policy
from tests.support.webhookserver import make_certificate

_NEW: JSONObject = {**CONFIG_MAP, "data": {"a": "2"}}
_ALICE = User("system:serviceaccount:team:alice", ("devs",), cluster_roles=("edit",))
_CHECK = "validate:\n  failureAction: Enforce\n  message: refused\n"
_DENY = _CHECK + "  deny:\n    conditions:\n      all:\n"
_ASKED = {
    "user": "{{ request.userInfo.username }}",
    "groups": "{{ request.userInfo.groups[0] }}",
    "default": "{{ request.userInfo.username || '' }}",
    "quoted": '{{ request."userInfo".username }}',
    "pipe": "{{ request | @.userInfo.username }}",
    "whole": "{{ request | to_string(@) }}",
    "values": "{{ request.* | to_string(@) }}",
    "service-account": "{{ serviceAccountName }}",
    "its-namespace": "{{ to_upper(serviceAccountNamespace) }}",
    "roles": "{{ request.clusterRoles[0] }}",
    "nested": "{{ request.object.data.\"{{ request.userInfo.username }}\" || 'none' }}",
    "options": "{{ request.options.fieldManager || 'none' }}",
    "dry-run": "{{ to_string(request.dryRun) }}",
}
_FORMS = {
    "deny": _DENY + "      - {key: 'ASKED', operator: NotEquals, value: admin}",
    "value": _DENY + "      - {key: admin, operator: NotEquals, value: 'ASKED'}",
    "pattern": _CHECK + "  pattern:\n    data:\n      who: 'ASKED'",
    "anyPattern": _CHECK + "  anyPattern:\n  - data:\n      who: 'ASKED'",
    "foreach": _CHECK + "  foreach:\n  - list: request.object.data.keys(@)\n"
    "    deny:\n      conditions:\n        all:\n        - {key: 'ASKED', operator: NotEquals, value: admin}",
    "context": "context:\n- name: who\n  variable:\n    value: 'ASKED'\n"
    + _DENY
    + "      - {key: '{{ who }}', operator: NotEquals, value: admin}",
}


def _update(rule: str, *, old: JSONObject = CONFIG_MAP, new: JSONObject = _NEW, on: str = "ConfigMap") -> Status:
    review = ask(policy(rule, on=on, spec="background: false"), new, operation=Operation.UPDATE, old=old, user=_ALICE)
    (result,) = review.results
    return result.status


@pytest.mark.parametrize("form", _FORMS.values(), ids=_FORMS)
@pytest.mark.parametrize("asked", _ASKED.values(), ids=_ASKED)
def test_who_asks_is_no_violation_that_existed(form: str, asked: str) -> None:
    """A rule that fails for this user fails for the old object, too: everyone could change what only some may."""
    assert _update(form.replace("ASKED", asked.replace("'", "''"))) in (Status.FAIL, Status.ERROR)


def test_who_asks_is_no_violation_of_a_pod_template() -> None:
    """The copies that autogen makes of a rule for Pods ask for the user as well."""
    template: JSONObject = {"metadata": {}, "spec": POD["spec"]}
    metadata: JSONObject = {"name": "web", "namespace": "team"}
    old: JSONObject = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {"template": template},
    }
    new: JSONObject = {**old, "spec": {"template": template, "replicas": 2}}
    assert Status.FAIL is _update(_FORMS["deny"].replace("ASKED", _ASKED["user"]), old=old, new=new, on="Pod")


def test_an_object_without_a_signature_excuses_no_change_of_it() -> None:
    """As in Kyverno, rules of signed manifests are not evaluated again on the old object."""
    certificate = x509.load_pem_x509_certificate(make_certificate().certificate)
    pem = certificate.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    rule = (
        "validate:\n  failureAction: Enforce\n  manifests:\n    attestors:\n    - entries:\n      - keys:\n"
        "          publicKeys: |\n" + "".join(f"            {line}\n" for line in pem.splitlines())
    )
    assert Status.FAIL is _update(rule)


@pytest.mark.parametrize(
    "rule",
    [
        "preconditions:\n  all:\n  - {key: '{{ request.userInfo.username }}', operator: NotEquals, value: admin}\n"
        + _FORMS["pattern"].replace("ASKED", "x"),
        _FORMS["pattern"].replace("ASKED", "x").replace("refused", "'{{ request.userInfo.username }}: refused'"),
        _FORMS["deny"].replace("ASKED", "{{ request.object.spec.serviceAccountName || `1` }}"),
        _FORMS["deny"].replace("ASKED", "{{ request.object.data.roles || `1` }}"),
        _FORMS["foreach"].replace("ASKED", "{{ element }}"),
        _FORMS["deny"].replace("ASKED", "{{ request.name }}"),
    ],
    ids=["precondition", "message", "field", "roles", "element", "name"],
)
def test_what_the_object_was_before_is_excused(rule: str) -> None:
    """The twin: these rules fail because of the object, whoever asks."""
    assert Status.SKIP is _update(rule)


def _deployment(replicas: int | None, **labels: str) -> JSONObject:
    spec: JSONObject = {} if replicas is None else {"replicas": replicas}
    metadata: JSONObject = {"name": "web", "namespace": "team", "labels": labels}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


_REPLICAS = {
    "pattern": _CHECK + "  pattern:\n    spec:\n      replicas: '<=3'",
    "deny": _DENY + "      - {key: '{{ request.object.spec.replicas }}', operator: GreaterThan, value: 3}",
}


@pytest.mark.parametrize("form", _REPLICAS.values(), ids=_REPLICAS)
def test_what_came_by_a_request_that_no_rule_saw_is_no_excuse(form: str) -> None:
    """`kubectl scale` asks for the subresource alone: what it wrote excuses no further change of the replicas."""
    many = _deployment(50)
    assert Status.FAIL is _update(form, old=many, new=_deployment(60), on="Deployment")


@pytest.mark.parametrize("form", _REPLICAS.values(), ids=_REPLICAS)
def test_an_update_of_other_fields_is_excused(form: str) -> None:
    """The replicas stay what they were, and everything else may change, as in Kyverno."""
    many = _deployment(50)
    assert Status.SKIP is _update(form, old=many, new=_deployment(50, team="a"), on="Deployment")


def test_a_rule_that_judges_the_subresource_excuses_as_before() -> None:
    """Nothing comes past it, so the violation is older than the policy."""
    rule = _REPLICAS["pattern"]
    many = _deployment(50)
    assert Status.SKIP is _update(rule, old=many, new=_deployment(60), on="Deployment, Deployment/scale")


_MISSED = (
    "Deployment, HorizontalPodAutoscaler",
    "Deployment, ScaledObject",
    "Deployment, Scale",
    "Deployment, StatefulSet/scale",
    "Deployment, StatefulSet, Deployment/scale",
    "Deployment, apps/v1/Deployment/scale",
)
"""Kinds that sound like the subresource, or are not its request for every kind that the rule matches."""


@pytest.mark.parametrize("kinds", _MISSED)
def test_a_kind_that_sounds_like_scale_is_not_scale(kinds: str) -> None:
    """Only a rule that matches the `scale` of every kind whose objects it matches saw what they wrote."""
    assert Status.FAIL is _update(_REPLICAS["pattern"], old=_deployment(50), new=_deployment(60), on=kinds)


_BOTH = "- resources: {kinds: [Deployment, Deployment/scale]}"
_NARROWER = {
    "excluded": f"{_BOTH}\n    exclude:\n      any:\n      - resources: {{kinds: [Deployment/scale], names: [w*]}}",
    "named": "- resources: {kinds: [Deployment]}\n      - resources: {kinds: [Deployment/scale], names: [other]}",
    "labelled": "- resources: {kinds: [Deployment, Deployment/scale], selector: {matchLabels: {a: b}}}",
    "operations": (
        "- resources: {kinds: [Deployment]}\n      - resources: {kinds: [Deployment/scale], operations: [CREATE]}"
    ),
    "wide": "- resources: {kinds: [Deployment]}\n      - resources: {kinds: ['*/scale']}",
}


@pytest.mark.parametrize("scope", _NARROWER)
def test_a_rule_that_sees_some_requests_to_scale_excuses_no_more(scope: str) -> None:
    """Names, labels, operations and exclusions that part an object from its `scale` leave requests unseen."""
    text = policy(_REPLICAS["pattern"], spec="background: false")
    text = text.replace("- resources:\n          kinds: [ConfigMap]", _NARROWER[scope])
    old, new = _deployment(50, a="b"), _deployment(60, a="b")
    found = only(ask(text, new, operation=Operation.UPDATE, old=old, user=_ALICE))[0]
    assert (Status.SKIP if scope == "wide" else Status.FAIL) is found
