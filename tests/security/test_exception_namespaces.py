"""I6, CVE-2024-48921: in a cluster an exception counts only where an administrator lets exceptions live."""

from __future__ import annotations

import pytest

from pyverno.controllers.state.policystore import PolicyStore
from pyverno.engine.engine import Engine
from pyverno.engine.phases import VALIDATING
from pyverno.engine.request import Request
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import load_documents
from pyverno.webhook.policyreviews import ExceptionSettings
from tests.security.asking import POD
from tests.security.test_exceptions import DENIED, EXACT

RULES = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
IN_CEL: dict[str, JSONObject] = {
    "ValidatingPolicy": {"validations": [{"expression": "false"}]},
    "NamespacedValidatingPolicy": {"validations": [{"expression": "false"}]},
    "ImageValidatingPolicy": {
        "attestors": [{"name": "a", "cosign": {"key": {"data": "x"}}}],
        "validations": [{"expression": "false"}],
    },
}


def _documents(kind: str) -> list[JSONObject]:
    """Return a policy of a kind, and the exception that the tenant of namespace `team` made for it."""
    if kind == "ClusterPolicy":
        return [document.value for text in (DENIED, EXACT) for document in load_documents(text.encode())]
    named = {"name": "guard", **({"namespace": "team"} if kind.startswith("Namespaced") else {})}
    spec = {"matchConstraints": {"resourceRules": RULES}, **IN_CEL[kind]}
    reference = {"policyRefs": [{"name": "guard", "kind": kind}]}
    return [
        {"apiVersion": "policies.kyverno.io/v1", "kind": kind, "metadata": named, "spec": spec},
        {
            "apiVersion": "policies.kyverno.io/v1",
            "kind": "PolicyException",
            "metadata": {"name": "own", "namespace": "team"},
            "spec": reference,
        },
    ]


def _is_allowed(settings: ExceptionSettings | None, kind: str) -> bool:
    """Judge a pod by a policy and the exception of the tenant."""
    store = PolicyStore(settings)
    for document in _documents(kind):
        store.put(document)
    request = Request.from_manifest(POD, gvr=GVR("", "v1", "pods"))
    return Engine(store.policies.all).review(request, VALIDATING).decision.allowed


@pytest.mark.parametrize("kind", ["ClusterPolicy", *IN_CEL])
@pytest.mark.parametrize(
    "settings",
    [
        None,
        ExceptionSettings(),
        ExceptionSettings(enabled=True),
        ExceptionSettings(enabled=True, namespace="exceptions"),
        ExceptionSettings(enabled=True, namespace="te*"),
        ExceptionSettings(enabled=False, namespace="team"),
    ],
    ids=["default", "off", "nowhere", "elsewhere", "pattern", "off-but-named"],
)
def test_an_exception_of_a_tenant_has_no_effect(settings: ExceptionSettings | None, kind: str) -> None:
    """Exceptions are off by default, and on they count in one namespace.

    Register: CVE-2024-48921.
    """
    assert not _is_allowed(settings, kind)


@pytest.mark.parametrize("kind", ["ClusterPolicy", *IN_CEL])
@pytest.mark.parametrize("namespace", ["team", "*"])
def test_an_exception_in_the_namespace_of_exceptions_counts(namespace: str, kind: str) -> None:
    """The harmless twin."""
    assert _is_allowed(ExceptionSettings(enabled=True, namespace=namespace), kind)
