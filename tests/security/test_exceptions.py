"""I6: exceptions narrow only; one exception must match all of its own scope, in any order."""

from __future__ import annotations

from itertools import permutations

import pytest

from pyverno.engine.result import Status
from pyverno.kube.json import JSONObject
from tests.security.asking import POD, ask, compiled, only, policy

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


def test_an_exception_for_one_image_is_not_for_its_neighbour() -> None:
    """CVE-2026-100704: a pod with an exempt image and another one is still denied."""
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
