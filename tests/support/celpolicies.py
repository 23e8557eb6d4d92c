"""CEL policies as plain values, and one call that compiles them and evaluates them with the engine."""

from __future__ import annotations

from typing import Any

from pyverno.compiler.compile import Compilation, compile_documents
from pyverno.engine.engine import Engine, Review
from pyverno.engine.host import Host
from pyverno.engine.phases import ADMISSION, DELETING
from pyverno.engine.request import Request
from pyverno.kube.json import JSON, JSONObject, encode
from pyverno.kube.yaml.documents import load_documents
from pyverno.offline.host import OfflineHost
from pyverno.offline.objects import ObjectStore

CONFIG_MAP: JSONObject = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "settings", "namespace": "team"},
    "data": {"key": "value"},
}
CONSTRAINTS: JSONObject = {
    "resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}]
}

ERROR = "object.missing == 1"
"""An expression that fails."""


def kyverno(kind: str = "ValidatingPolicy", *, name: str = "check", **spec: Any) -> JSONObject:
    """Return a policy of policies.kyverno.io for everything; a namespaced one is in `team`."""
    metadata = {"name": name, **({"namespace": "team"} if kind.startswith("Namespaced") else {})}
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": kind,
        "metadata": metadata,
        "spec": {"matchConstraints": CONSTRAINTS, **spec},
    }


def exception(name: str = "let", *, kind: str = "ValidatingPolicy", policy: str = "check", **spec: Any) -> JSONObject:
    """Return an exception from one policy."""
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "PolicyException",
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"policyRefs": [{"name": policy, "kind": kind}], **spec},
    }


def native(kind: str = "Validating", **spec: Any) -> JSONObject:
    """Return a Kubernetes admission policy."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}AdmissionPolicy",
        "metadata": {"name": "check"},
        "spec": {"matchConstraints": CONSTRAINTS, **spec},
    }


def binding(name: str = "bound", *, kind: str = "Validating", **spec: Any) -> JSONObject:
    """Return a binding of the policy `check`."""
    actions = {"validationActions": ["Deny"]} if kind == "Validating" else {}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}AdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": "check", **actions, **spec},
    }


def conditions(*expressions: str) -> list[JSONObject]:
    """Name expressions in order: c0, c1, …"""
    return [{"name": f"c{index}", "expression": text} for index, text in enumerate(expressions)]


def named(**expressions: str) -> list[JSONObject]:
    """Return variables from their names and expressions."""
    return [{"name": name, "expression": text} for name, text in expressions.items()]


def validations(*expressions: str, **fields: str) -> list[JSONObject]:
    """Return validations that share their other fields."""
    return [{"expression": text, **fields} for text in expressions]


def compiled(*documents: JSONObject) -> Compilation:
    """Compile policies; callers check the errors."""
    text = "\n---\n".join(map(encode, documents))
    return compile_documents(load_documents(text, file="policy.yaml"))


def ask(
    *documents: JSONObject,
    resource: JSON = None,
    host: Host | None = None,
    objects: tuple[JSONObject, ...] | None = None,
    deleting: bool = False,
    **how: Any,
) -> Review:
    """Review an object with policies, which must compile."""
    compilation = compiled(*documents)
    assert [] == [str(error) for error in compilation.errors]
    if host is None:
        host = OfflineHost(objects=None if objects is None else ObjectStore(objects))
    resource = CONFIG_MAP if resource is None else resource
    phases = DELETING if deleting else ADMISSION
    request = Request.from_live(resource) if deleting else Request.from_manifest(resource, **how)
    return Engine(compilation.policy_set(), host).review(request, phases)


def said(review: Review) -> list[tuple[str, str]]:
    """Return status and message of every result."""
    return [(result.status.value, result.message) for result in review.results]
