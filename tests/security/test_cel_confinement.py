"""I1 for expressions in CEL: the host calls that libraries make for a namespaced policy, at every position in it.

Every cell of the matrix is one library at one position; no call beyond the namespace reaches the host
(CVE-2026-4789, CVE-2026-54523, CVE-2026-100703). The twins call within it and get an answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from pyverno.compiler import compile_documents
from pyverno.engine.engine import Engine, Review
from pyverno.engine.phases import ADMISSION, DELETING, GENERATING
from pyverno.engine.request import Request
from pyverno.engine.result import Status
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS, KindTable
from pyverno.kube.yaml.documents import Document
from pyverno.lang.cel.host import Decision
from tests.security.asking import CONFIG_MAP, POD, Spy

RULES = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]

BEYOND = {
    "global context": "globalContext.Get('shared', '') != null",
    "cluster-wide object": "resource.Get('v1', 'nodes', 'one').metadata.name != ''",
    "cluster-wide list": "resource.List('v1', 'namespaces').items.size() > 0",
    "writing": "resource.Post('v1', 'configmaps', {'a': 'b'}).a == 'b'",
    "path in a name": "resource.Get('v1', 'configmaps', '../../other/secrets/x').metadata.name != ''",
    "http": "http.Get('http://example.com/').statusCode == 200",
}
OTHER_NAMESPACES = (
    "resource.Get('v1', 'configmaps', 'other', 'settings').metadata.name != ''",
    "resource.List('v1', 'configmaps', 'other').items.size() > 0",
    "resource.Post('v1', 'configmaps', 'other', {'a': 'b'}).a == 'b'",
)
WITHIN = {
    "object": ("resource.Get('v1', 'configmaps', 'settings').metadata.name == 'settings'", "configmaps/settings"),
    "list": ("resource.List('v1', 'configmaps').kind == 'X'", "configmaps"),
}


Place = Callable[[str], JSONObject]


def _named(expression: str) -> list[JSON]:
    return [{"name": "a", "expression": expression}]


def _patch(value: str) -> JSONObject:
    expression = f"[JSONPatch{{op: 'add', path: '/data/b', value: {value}}}]"
    return {"mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}]}


def _configuration(value: str) -> JSONObject:
    patch = f"Object{{metadata: Object.metadata{{labels: {{'a': {value}}}}}}}"
    return {"mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": patch}}]}


def _attestor(**cosign: JSON) -> JSONObject:
    expression = "images.containers.map(i, verifyImageSignatures(i, [attestors.a])).all(x, x > 0)"
    return {"attestors": [{"name": "a", "cosign": cosign}], "validations": [{"expression": expression}]}


_CONDITIONS: dict[str, Place] = {"matchConditions": lambda text: {"matchConditions": _named(text)}}
_TEXTS: dict[str, Place] = {
    "messageExpression": lambda text: {
        "validations": [{"expression": "false", "messageExpression": f"string({text})"}]
    },
    "auditAnnotations": lambda text: {"auditAnnotations": [{"key": "a", "valueExpression": f"string({text})"}]},
}
_VALIDATIONS: dict[str, Place] = {
    **_CONDITIONS,
    "variables": lambda text: {"variables": _named(text), "validations": [{"expression": "variables.a"}]},
    "validations": lambda text: {"validations": [{"expression": text}]},
    **_TEXTS,
}
_TARGETS: JSONObject = {"targetMatchConstraints": {"resourceRules": cast(JSON, RULES)}}
_EXISTING: JSONObject = {**_TARGETS, "evaluation": {"mutateExisting": {"enabled": True}}}
PLACES: dict[str, dict[str, Place]] = {
    "NamespacedValidatingPolicy": _VALIDATIONS,
    "NamespacedMutatingPolicy": {
        **_CONDITIONS,
        "variables": lambda text: {"variables": _named(text), **_patch("string(variables.a)")},
        "mutations": lambda text: _configuration(f"string({text})"),
        "patches": lambda text: _patch(f"string({text})"),
        "targets": lambda text: {**_EXISTING, "targetMatchConditions": _named(text)},
        "variables of targets": lambda text: {
            **_EXISTING, "variables": _named(text), **_patch("string(variables.a)")
        },
    },
    "NamespacedGeneratingPolicy": {
        **_CONDITIONS,
        "variables": lambda text: {"variables": _named(text), "generate": [{"expression": "variables.a"}]},
        "generate": lambda text: {"generate": [{"expression": text}]},
    },
    "NamespacedDeletingPolicy": {
        "variables": lambda text: {
            "variables": _named(text), "conditions": [{"name": "a", "expression": "variables.a"}]
        },
        "conditions": lambda text: {"conditions": _named(text)},
    },
    "NamespacedImageValidatingPolicy": {
        **_VALIDATIONS,
        "images": lambda text: {"images": [{"name": "x", "expression": f"[string({text})]"}]},
        "matchImageReferences": lambda text: {"matchImageReferences": [{"expression": text}]},
        "certificates": lambda text: {
            **_attestor(), "attestors": [{"name": "a", "notary": {"certs": {"expression": f"string({text})"}}}]
        },
    },
}  # fmt: skip
_BASES: dict[str, JSONObject] = {
    "NamespacedValidatingPolicy": {"validations": [{"expression": "true"}]},
    "NamespacedMutatingPolicy": _patch("'2'"),
    "NamespacedGeneratingPolicy": {"generate": [{"expression": "true"}]},
    "NamespacedDeletingPolicy": {"schedule": "* * * * *", "conditions": _named("true")},
    "NamespacedImageValidatingPolicy": {**_attestor(key={"data": "x"}), "validations": [{"expression": "true"}]},
}
_RESOURCE = {"NamespacedImageValidatingPolicy": ("pods", {**POD, "spec": {
    "containers": [{"name": "app", "image": f"nginx@sha256:{'0' * 64}"}]
}})}  # fmt: skip
POSITIONS = tuple((kind, place) for kind, places in PLACES.items() for place in places)


def _policy(kind: str, place: str, expression: str) -> JSONObject:
    """Put an expression of type bool at a place of a policy of the namespace `team`."""
    resource, _ = _RESOURCE.get(kind, ("configmaps", None))
    constraints: JSONObject = {"matchConstraints": {"resourceRules": [{**RULES[0], "resources": [resource]}]}}
    metadata: JSONObject = {"name": "guard", "namespace": "team"}
    spec: JSONObject = {**constraints, **_BASES[kind], **PLACES[kind][place](expression)}
    return {"apiVersion": "policies.kyverno.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


class AnsweringHost(Spy):
    """Answers and records every call, and knows the kinds of a cluster."""

    kinds: KindTable = BUILTIN_KINDS

    def http_exchange(self, call: Any) -> tuple[int, bytes]:
        self.asked.append(f"{call.method} {call.url}")
        return 200, b"{}"

    def list_objects(
        self, api_version: str, kind: str, namespace: str, selector: JSONObject | None
    ) -> tuple[JSONObject, ...]:
        """List the target that every policy may have: it is of the namespace."""
        assert ("ConfigMap", "team") == (kind, namespace)
        return (CONFIG_MAP,)

    def authorize(self, check: Any) -> Decision:
        self.asked.append("authorize")
        return Decision(allowed=True)


def _asked(policy: JSONObject, answer: JSON = None) -> tuple[Review | None, list[str]]:
    """Review a ConfigMap of the namespace; None where the policy does not compile."""
    compilation = compile_documents([Document(policy, "policy.yaml")])
    if compilation.errors:
        return None, []
    host = AnsweringHost(answer)
    resource, subject = _RESOURCE.get(str(policy["kind"]), ("configmaps", CONFIG_MAP))
    request = Request.from_manifest(subject, gvr=GVR("", "v1", resource))
    return Engine(compilation.policy_set(), host).review(request, ADMISSION + DELETING), host.asked


@pytest.mark.parametrize("what", BEYOND)
@pytest.mark.parametrize(("kind", "position"), POSITIONS)
def test_a_library_reads_nothing_beyond_the_namespace(kind: str, position: str, what: str) -> None:
    """The policy does not compile, or its rule errs; either way no call reaches the host.

    A message that cannot be made is that of a validation that fails; an annotation that cannot be made is an error.

    Register: CVE-2026-4789, CVE-2026-54523, CVE-2026-100703; Kubewarden CVE-2025-24784, CVE-2026-29773.
    """
    policy = _policy(kind, position, BEYOND[what])
    review, asked = _asked(policy, {"metadata": {"name": "x"}, "items": [], "a": "b"})
    assert [] == asked
    if review is not None:
        expected = Status.FAIL if position == "messageExpression" else Status.ERROR
        assert expected in [result.status for result in review.results]


@pytest.mark.parametrize("expression", OTHER_NAMESPACES)
@pytest.mark.parametrize(("kind", "position"), POSITIONS)
def test_other_namespaces_can_not_be_named(kind: str, position: str, expression: str) -> None:
    """The functions that take a namespace do not exist for a policy of a namespace."""
    review, asked = _asked(_policy(kind, position, expression))
    assert (None, []) == (review, asked)


@pytest.mark.parametrize("what", WITHIN)
@pytest.mark.parametrize(("kind", "position"), POSITIONS)
def test_a_library_answers_for_the_own_namespace(kind: str, position: str, what: str) -> None:
    """The harmless twins reach the API server by the path of the namespace."""
    expression, path = WITHIN[what]
    review, asked = _asked(_policy(kind, position, expression), {"metadata": {"name": "settings"}, "kind": "X"})
    assert review is not None
    assert {f"GET /api/v1/namespaces/team/{path}"} == set(asked)
    if position in ("validations", "mutations", "patches", "generate", "conditions", "targets"):
        statuses = {result.status for result in review.results}  # of images, another one demands signatures
        assert (True, False) == (Status.PASS in statuses, Status.ERROR in statuses)


@pytest.mark.parametrize("target", ["other", ""])
def test_nothing_is_generated_beyond_the_namespace(target: str) -> None:
    """CVE-2026-54523: another namespace, or none, is an error; the own one is fine.

    Register: Capsule CVE-2026-22872, CVE-2026-65835.
    """

    def policy(namespace: str) -> JSONObject:
        made = '[{"apiVersion": dyn("v1"), "kind": dyn("ConfigMap"), "metadata": dyn({"name": "made"})}]'
        spec = {
            "matchConstraints": {"resourceRules": RULES},
            "variables": [{"name": "made", "expression": made}],
            "generate": [{"expression": f"generator.Apply('{namespace}', variables.made)"}],
        }
        metadata = {"name": "guard", "namespace": "team"}
        kind = "NamespacedGeneratingPolicy"
        return {"apiVersion": "policies.kyverno.io/v1", "kind": kind, "metadata": metadata, "spec": spec}

    review, asked = _asked(policy(target))
    assert review is not None
    assert ((), [], [Status.ERROR]) == (review.effects, asked, [each.status for each in review.results])
    twin, _ = _asked(policy("team"))
    assert twin is not None
    assert ["team"] == [effect.resource["metadata"]["namespace"] for effect in twin.effects]  # type: ignore[union-attr]


@pytest.mark.parametrize(("target", "owners"), [("team", 0), ("other", 1)])
@pytest.mark.parametrize("source", ["Get('v1', 'configmaps', 'other', 'a')", "List('v1', 'configmaps', 'other')"])
def test_copies_in_another_namespace_have_no_owner(source: str, target: str, owners: int) -> None:
    """abc05c69: the owner of a copy is not in its namespace, so that it would be collected as garbage."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "1"}
    metadata = {"name": "a", "namespace": "other", "uid": "2", "resourceVersion": "5", "ownerReferences": [owner]}
    found: JSONObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}}
    answer = found if source.startswith("Get") else {"apiVersion": "v1", "kind": "ConfigMapList", "items": [found]}
    spec = {
        "matchConstraints": {"resourceRules": RULES},
        "variables": [{"name": "found", "expression": f"resource.{source}"}],
        "generate": [{"expression": f"generator.Apply('{target}', [variables.found])"}],
    }
    kind = {"apiVersion": "policies.kyverno.io/v1", "kind": "GeneratingPolicy", "metadata": {"name": "guard"}}
    review, _ = _asked({**kind, "spec": spec}, answer)
    assert review is not None
    (effect,) = review.effects
    made = effect.resource["metadata"]  # type: ignore[union-attr]
    assert (target, owners) == (made["namespace"], len(made.get("ownerReferences") or ()))
    assert {"uid", "resourceVersion"}.isdisjoint(made)


@pytest.mark.parametrize(
    "question",
    ["group('').resource('pods').namespace('other')", "group('').resource('nodes')", "path('/healthz')"],
)
def test_the_authorizer_is_refused_for_other_namespaces(question: str) -> None:
    """Kubewarden CVE-2026-42541: a tenant's policy must not learn the permissions in other namespaces."""
    expression = f"authorizer.{question}.check('get').allowed()"
    rule = {
        "name": "check",
        "match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]},
        "validate": {"cel": {"expressions": [{"expression": expression}]}},
    }
    metadata = {"name": "guard", "namespace": "team"}
    policy = {"apiVersion": "kyverno.io/v1", "kind": "Policy", "metadata": metadata, "spec": {"rules": [rule]}}
    review, asked = _asked(policy)
    assert review is not None
    assert ([Status.FAIL], []) == ([result.status for result in review.results], asked)
    rule["validate"] = {"cel": {"expressions": [{"expression": expression.replace(question, _OWN)}]}}
    twin, asked = _asked(policy)
    assert twin is not None
    assert ([Status.PASS], ["authorize"]) == ([result.status for result in twin.results], asked)


_OWN = "group('').resource('pods').namespace('team')"


_ACTIONS: dict[str, JSONObject] = {
    "ValidatingPolicy": {"validations": [{"expression": "false"}]},
    "MutatingPolicy": {
        "mutations": [
            {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'test', path: '/x', value: 1}]"}}
        ]
    },
    "GeneratingPolicy": {"generate": [{"expression": "true"}]},
    "DeletingPolicy": {"schedule": "* * * * *", "conditions": [{"name": "a", "expression": "true"}]},
    "ImageValidatingPolicy": {
        "attestors": [{"name": "a", "cosign": {"key": {"data": "x"}}}],
        "validations": [{"expression": "false"}],
    },
}


@pytest.mark.parametrize("kind", _ACTIONS)
@pytest.mark.parametrize(
    "expression",
    [
        "globalContext.Get('shared', '') != null",
        "http.Get('http://example.com/').statusCode == 200",
        "resource.Get('v1', 'configmaps', 'other', 'settings').metadata.name != ''",
        "resource.Get('v1', 'nodes', '', 'one').metadata.name != ''",
        "resource.List('v1', 'secrets', 'other').items.size() > 0",
        "resource.List('v1', 'secrets', '').items.size() > 0",
        "resource.Post('v1', 'configmaps', 'other', {'a': 'b'}).a == 'b'",
        "resource.Post('v1', 'configmaps', 'team', {'a': 'b'}).a == 'b'",
    ],
)
def test_an_exception_reads_its_own_namespace_only(kind: str, expression: str) -> None:
    """I1: who may write an exception in a namespace does not read or write elsewhere with the policy's permissions."""

    def asked(condition: str) -> tuple[Review, list[str]]:
        constraints = {"matchConstraints": {"resourceRules": RULES}}
        named = {"apiVersion": "policies.kyverno.io/v1", "kind": kind, "metadata": {"name": "guard"}}
        exception = {
            "apiVersion": "policies.kyverno.io/v1",
            "kind": "PolicyException",
            "metadata": {"name": "own", "namespace": "team"},
            "spec": {
                "policyRefs": [{"name": "guard", "kind": kind}],
                "matchConditions": [{"name": "a", "expression": condition}],
            },
        }
        policy = {**named, "spec": {**constraints, **_ACTIONS[kind]}}
        compilation = compile_documents([Document(policy, "policy.yaml"), Document(exception, "exception.yaml")])
        assert () == compilation.errors
        host = AnsweringHost({"metadata": {"name": "settings"}, "items": [], "a": "b"})
        request = Request.from_manifest(CONFIG_MAP, gvr=GVR("", "v1", "configmaps"))
        phases = {"GeneratingPolicy": GENERATING, "DeletingPolicy": DELETING}.get(kind, ADMISSION)
        return Engine(compilation.policy_set(), host).review(request, phases), host.asked

    review, calls = asked(expression)
    assert [] == calls
    assert {Status.ERROR} <= {result.status for result in review.results}
    review, calls = asked("resource.Get('v1', 'configmaps', 'team', 'settings').metadata.name == 'settings'")
    assert {"GET /api/v1/namespaces/team/configmaps/settings"} == set(calls)
    assert {("team/own",)} == {result.exceptions for result in review.results}
