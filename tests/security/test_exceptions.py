"""I6: exceptions narrow only; one exception must match all of its own scope, in any order."""

from __future__ import annotations

from itertools import permutations

import pytest

from pyverno.compiler import compile_documents
from pyverno.engine.engine import Engine
from pyverno.engine.phases import ADMISSION
from pyverno.engine.request import Request
from pyverno.engine.result import Status
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import Document
from pyverno.offline.host import OfflineHost
from tests.security.asking import CONFIG_MAP, POD, ask, compiled, only, policy

DENIED = policy("validate:\n  failureAction: Enforce\n  message: denied\n  deny: {}", on="Pod")
BASELINE = policy(
    "validate:\n  failureAction: Enforce\n  podSecurity:\n    level: baseline\n    version: latest", on="Pod"
)


def exception(name: str, match: str, extra: str = "", policy_name: str = "guard") -> str:
    """Return a PolicyException for the rule `check` (`match` in flow style)."""
    return (
        f"apiVersion: kyverno.io/v2\nkind: PolicyException\nmetadata:\n  name: {name}\n  namespace: team\nspec:\n"
        f"  exceptions:\n  - policyName: {policy_name}\n    ruleNames: [check]\n  match: {match}\n{extra}"
    )


def allowed(*documents: str, resource: JSONObject = POD) -> bool:
    """Review a pod and return whether it is allowed."""
    return ask("---\n".join(documents), resource).decision.allowed


BY_NAME = exception(
    "by-name", "{all: [{resources: {kinds: [Pod], names: [web]}}, {resources: {kinds: [Pod], namespaces: [x]}}]}"
)
BY_PLACE = exception(
    "by-place", "{all: [{resources: {kinds: [Pod], names: [nobody]}}, {resources: {kinds: [Pod], namespaces: [team]}}]}"
)
EXACT = exception("exact", "{any: [{resources: {kinds: [Pod], names: [web], namespaces: [team]}}]}")
OTHER = exception("other", "{any: [{resources: {kinds: [Pod], names: [web]}}]}", policy_name="g*")


def test_exceptions_are_never_merged() -> None:
    """GHSA-gg4x and d17df64e: the verdict is that of the single exceptions, whatever their order."""
    singles = [allowed(DENIED, each) for each in (BY_NAME, BY_PLACE, OTHER)]
    assert [False, False, False] == singles
    assert {False} == {allowed(DENIED, *order) for order in permutations((BY_NAME, BY_PLACE, OTHER))}
    assert {True} == {allowed(DENIED, *order) for order in permutations((BY_NAME, EXACT, BY_PLACE))}


def test_pod_security_exceptions_are_never_merged() -> None:
    """GHSA-gg4x: two exceptions that forgive one control each do not forgive both at once."""
    spec = {
        "hostNetwork": True,
        "containers": [{"name": "a", "image": "nginx:1", "securityContext": {"privileged": True}}],
    }
    match = "{any: [{resources: {kinds: [Pod]}}]}"
    network = exception("network", match, "  podSecurity:\n  - controlName: Host Namespaces\n")
    privileged = exception(
        "privileged", match, "  podSecurity:\n  - controlName: Privileged Containers\n    images: ['nginx*']\n"
    )
    both = exception(
        "both",
        match,
        "  podSecurity:\n  - controlName: Host Namespaces\n  - controlName: Privileged Containers\n    images: ['*']\n",
    )
    pod = {**POD, "spec": spec}
    assert [False, False] == [
        allowed(BASELINE, network, privileged, resource=pod),
        allowed(BASELINE, network, resource=pod),
    ]
    assert allowed(BASELINE, both, resource=pod)


USED = "exceptions.allowedValues.exists(x, x == '1') && exceptions.allowedValues.exists(x, x == '2')"
ANY_CONFIG_MAP = {"resourceRules": [
    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
]}  # fmt: skip
_MADE = "[{'apiVersion': dyn('v1'), 'kind': dyn('ConfigMap'), 'metadata': dyn({'name': 'made'})}]"
CEL_ACTIONS: dict[str, JSONObject] = {
    "ValidatingPolicy": {"validations": [{"expression": USED}]},
    "MutatingPolicy": {
        "mutations": [
            {
                "patchType": "JSONPatch",
                "jsonPatch": {"expression": f"{USED} ? [] : [JSONPatch{{op: 'add', path: '/data/z', value: 'z'}}]"},
            }
        ]
    },
    "GeneratingPolicy": {"generate": [{"expression": f"{USED} || generator.Apply('team', {_MADE})"}]},
}


@pytest.mark.parametrize("kind", CEL_ACTIONS)
def test_exceptions_for_policies_in_cel_are_never_merged(kind: str) -> None:
    """Values that two exceptions allow are not allowed together, and a full exemption counts beside partial ones.

    Register: GHSA-gg4x, d17df64e.
    """

    def exempting(name: str, **spec: object) -> JSONObject:
        return {
            "apiVersion": "policies.kyverno.io/v1",
            "kind": "PolicyException",
            "metadata": {"name": name, "namespace": "team"},
            "spec": {"policyRefs": [{"name": "guard", "kind": kind}], **spec},
        }

    def is_free(*exceptions: JSONObject) -> bool:
        spec = {"matchConstraints": ANY_CONFIG_MAP, **CEL_ACTIONS[kind]}
        named = {"apiVersion": "policies.kyverno.io/v1", "kind": kind, "metadata": {"name": "guard"}, "spec": spec}
        made = compile_documents([Document(each, "policy.yaml") for each in (named, *exceptions)])
        assert () == made.errors, [str(error) for error in made.errors]
        request = Request.from_manifest(CONFIG_MAP, gvr=GVR("", "v1", "configmaps"))
        review = Engine(made.policy_set(), OfflineHost()).review(request, ADMISSION)
        return review.decision.allowed and review.resource == CONFIG_MAP and not review.effects

    one, two = exempting("one", allowedValues=["1"]), exempting("two", allowedValues=["2"])
    both, full = exempting("both", allowedValues=["1", "2"]), exempting("full")
    assert [False, False, False, False] == [is_free(), is_free(one), is_free(two), is_free(one, two)]
    assert {False} == {is_free(*order) for order in permutations((one, two))}
    assert {True} == {is_free(*order) for order in permutations((one, both, two))}
    assert {True} == {is_free(*order) for order in permutations((one, full, two))}


def test_an_exception_for_one_image_is_not_for_its_neighbour() -> None:
    """A pod with an exempt image and another one is still denied; CVE-2026-100704 for podSecurity."""
    match = "{any: [{resources: {kinds: [Pod]}}]}"
    for_nginx = exception(
        "nginx", match, "  podSecurity:\n  - controlName: Privileged Containers\n    images: ['nginx*']\n"
    )
    exempt = {"name": "a", "image": "nginx:1", "securityContext": {"privileged": True}}
    neighbour = {"name": "b", "image": "redis:1", "securityContext": {"privileged": True}}
    assert allowed(BASELINE, for_nginx, resource={**POD, "spec": {"containers": [exempt]}})
    assert not allowed(BASELINE, for_nginx, resource={**POD, "spec": {"containers": [exempt, neighbour]}})


def test_an_exception_with_an_empty_match_exempts_nothing() -> None:
    """B21.1: an empty match never matches."""
    compilation = compiled(exception("empty", "{any: []}"))
    if not compilation.errors:
        assert not allowed(DENIED, exception("empty", "{any: []}"))
    assert Status.FAIL == only(ask(DENIED, POD))[0]


@pytest.mark.parametrize(
    "condition",
    [
        "{key: '{{ request.object.metadata.annotations.owner }}', operator: AnyIn, value: [trusted]}",
        "{key: '{{ request.object.metadata.annotations.owner }}', operator: AllIn, value: [trusted]}",
        "{key: '{{ request.object.metadata.annotations.owner }}', operator: In, value: [trusted]}",
        "{key: '{{ request.object.metadata.annotations.* }}', operator: AnyIn, value: [trusted]}",
        "{key: '{{ request.object.metadata.annotations.* }}', operator: AllIn, value: [trusted]}",
        "{key: trusted, operator: AnyIn, value: '{{ request.object.metadata.annotations.owner }}'}",
        "{key: trusted, operator: Equals, value: '{{ request.object.metadata.annotations.owner }}'}",
        "{key: '{{ request.object.metadata.annotations.owner }}', operator: AllNotIn, value: [foreign, stranger]}",
        "{key: '{{ request.object.metadata.annotations.* }}', operator: AnyNotIn, value: [foreign, stranger]}",
    ],
)
@pytest.mark.parametrize("owner", ["*", "?*", "??*????", "*e*"])
def test_a_wildcard_of_the_object_exempts_nothing(condition: str, owner: str) -> None:
    """I10: who may write a value exempts by what it is, never by a pattern that what is allowed matches."""
    match = "{any: [{resources: {kinds: [Pod]}}]}"
    text = exception("by-owner", match, f"  conditions:\n    all:\n    - {condition}\n")

    def pod(owner: str) -> JSONObject:
        return {**POD, "metadata": {**POD["metadata"], "annotations": {"owner": owner}}}

    assert not allowed(DENIED, text, resource=pod(owner))
    assert allowed(DENIED, text, resource=pod("trusted"))
