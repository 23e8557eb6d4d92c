"""I5: a field that an object leaves out never hides the object from a policy."""

from __future__ import annotations

import pytest

from pyverno.engine.engine import Engine, Review
from pyverno.engine.phases import VALIDATING
from pyverno.engine.request import Request
from pyverno.kube.resource import Resource
from tests.security.asking import compiled, policy

DENY = "validate:\n  failureAction: Enforce\n  message: not here\n  deny: {}"
OPTIONS = {"exec": "PodExecOptions", "attach": "PodAttachOptions", "portforward": "PodPortForwardOptions"}


def connected(text: str, subresource: str, namespace: str) -> Review:
    """Review a CONNECT whose object has no metadata, as the API server sends it."""
    compilation = compiled(text)
    assert () == compilation.errors, [str(error) for error in compilation.errors]
    request = Request.from_admission_review(
        {
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "subResource": subresource,
            "operation": "CONNECT",
            "namespace": namespace,
            "name": "web",
            "object": {"apiVersion": "v1", "kind": OPTIONS[subresource], "command": ["sh"]},
        }
    )
    return Engine(compilation.policy_set()).review(request, VALIDATING)


@pytest.mark.parametrize("subresource", OPTIONS)
def test_a_policy_of_a_namespace_judges_connections_in_it(subresource: str) -> None:
    """The request's namespace counts where the object has none; the twin in another namespace passes."""
    text = policy(DENY, kind="Policy", on=f"Pod/{subresource}", spec="background: false")
    assert not connected(text, subresource, "team").decision.allowed
    assert connected(text, subresource, "other").decision.allowed


@pytest.mark.parametrize("subresource", OPTIONS)
def test_namespaces_of_a_match_look_at_the_request(subresource: str) -> None:
    """The same holds for `match` and `exclude` of a cluster policy that name namespaces."""
    kinds = f"kinds: [Pod/{subresource}]"
    text = policy(DENY, on=f"Pod/{subresource}", spec="background: false")
    matched = text.replace(kinds, f"{kinds}\n          namespaces: [team]")
    assert [False, True] == [connected(matched, subresource, each).decision.allowed for each in ("team", "other")]


@pytest.mark.parametrize("subresource", OPTIONS)
def test_names_of_a_match_look_at_the_request(subresource: str) -> None:
    """So does a name: a rule that forbids `exec` into some pods must not silently match none."""
    kinds = f"kinds: [Pod/{subresource}]"
    text = policy(DENY, on=f"Pod/{subresource}", spec="background: false")
    for pattern, is_allowed in (("web", False), ("w?b*", False), ("other", True)):
        matched = text.replace(kinds, f"{kinds}\n          names: ['{pattern}']")
        assert is_allowed is connected(matched, subresource, "team").decision.allowed
    excluded = text.replace(
        "    validate:",
        f"    exclude:\n      any:\n      - resources:\n          {kinds}\n          names: [web]\n    validate:",
    )
    assert connected(excluded, subresource, "team").decision.allowed


def test_a_policy_of_a_namespace_does_not_judge_the_namespace_itself() -> None:
    """The API server names a Namespace as its own namespace; it is an object of the cluster all the same."""
    compilation = compiled(policy(DENY, kind="Policy", on="Pod"))
    rule = compilation.policies[0].rules[0]
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
    request = Request.from_admission_review(
        {
            "kind": {"group": "", "version": "v1", "kind": "Namespace"},
            "operation": "CREATE",
            "namespace": "team",
            "name": "team",
            "object": home,
        }
    )
    assert "the policy is confined to namespace team" == rule.matcher.mismatch(request, Resource(home))


_JUDGES_RESOURCES = {
    "pattern": "validate:\n  failureAction: Enforce\n  message: m\n  pattern:\n    spec:\n      containers:\n"
    "      - resources:\n          limits:\n            cpu: '<=1'",
    "deny": "validate:\n  failureAction: Enforce\n  message: m\n  deny:\n    conditions:\n      any:\n"
    "      - {key: '{{ request.object.spec.containers[].resources.limits.cpu }}', operator: AnyIn, value: ['8']}",
    "foreach": "validate:\n  failureAction: Enforce\n  message: m\n  foreach:\n"
    "  - list: request.object.spec.containers\n    pattern:\n      resources:\n        limits:\n          cpu: '<=1'",
    "cel": "validate:\n  failureAction: Enforce\n  cel:\n    expressions:\n"
    "    - expression: object.spec.containers.all(c, c.resources.limits.cpu != '8')",
    "context": "context:\n- name: cpu\n  variable:\n"
    "    jmesPath: request.object.spec.containers[].resources.limits.cpu\nvalidate:\n"
    "  failureAction: Enforce\n  message: m\n  deny:\n    conditions:\n      any:\n"
    "      - {key: '{{ cpu }}', operator: AnyIn, value: ['8']}",
}
"""Rules that refuse 8 CPUs, in every form of a validating rule."""


def _pod(cpu: str) -> dict[str, object]:
    container = {"name": "a", "image": "a:1", "resources": {"limits": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "team"},
        "spec": {"containers": [container]},
    }


def _resized(text: str, cpu: str, subresource: str = "resize") -> Review:
    compilation = compiled(text)
    assert () == compilation.errors, [str(error) for error in compilation.errors]
    request = Request.from_admission_review(
        {
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "subResource": subresource,
            "operation": "UPDATE",
            "namespace": "team",
            "name": "p",
            "object": _pod(cpu),
            "oldObject": _pod("1"),
        }
    )
    return Engine(compilation.policy_set()).review(request, VALIDATING)


@pytest.mark.parametrize("form", _JUDGES_RESOURCES.values(), ids=_JUDGES_RESOURCES)
def test_a_resize_is_judged_by_rules_about_resources(form: str) -> None:
    """`pods/resize` is the only request that changes the resources of a running Pod; a small one is allowed."""
    text = policy(form, on="Pod")
    assert [False, True] == [_resized(text, cpu).decision.allowed for cpu in ("8", "1")]


def test_an_excluded_pod_may_be_resized() -> None:
    """What takes Pods away from a rule takes their resizes away, too."""
    rule = "exclude:\n  any:\n  - resources:\n      kinds: [Pod]\n      names: [p]\n" + _JUDGES_RESOURCES["pattern"]
    assert _resized(policy(rule, on="Pod"), "8").decision.allowed


def test_other_rules_and_subresources_see_no_more_than_before() -> None:
    """A rule that reads no resources has judged the Pod already, and `status` changes none."""
    label = "validate:\n  failureAction: Enforce\n  message: m\n  pattern:\n    metadata:\n      name: '?*'"
    assert () == _resized(policy(label, on="Pod"), "8").results
    assert () == _resized(policy(_JUDGES_RESOURCES["pattern"], on="Pod"), "8", "status").results
