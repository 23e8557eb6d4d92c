"""Policies and objects for the tests of the reports controller."""

from __future__ import annotations

from pyverno.compiler.compile import Compilation, compile_documents
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import Document

__all__ = ["compiled", "exception", "pod", "policy", "validating"]


def compiled(*bodies: JSONObject) -> Compilation:
    """Compile documents that are valid."""
    found = compile_documents([Document(body, "") for body in bodies])
    assert not found.errors, found.errors
    return found


def policy(
    name: str, kind: str = "Pod", *, image: str = "!*:latest", labels: JSONObject | None = None, **spec: object
) -> JSONObject:
    """Return a ClusterPolicy with a rule on images, for Pods with autogen."""
    path = {"containers": [{"image": image}]}
    rule = {
        "name": "tag",
        "match": {"any": [{"resources": {"kinds": [kind], **spec.pop("resources", {})}}]},  # type: ignore[dict-item]
        "validate": {"failureAction": "Audit", "message": "no latest", "pattern": {"spec": path}},
    }
    metadata = {"name": name, "labels": labels or {}}
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": metadata,
        "spec": {"background": True, "rules": [rule], **spec},
    }


def validating(name: str, *resources: str, operations: tuple[str, ...] = ("CREATE",)) -> JSONObject:
    """Return a ValidatingPolicy for resources of the core group."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": list(operations), "resources": list(resources)}
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "has(object.metadata.labels)", "message": "labels"}],
        },
    }


def exception(policy_name: str, *, background: bool = True) -> JSONObject:
    """Return an exception for Pods."""
    return {
        "apiVersion": "kyverno.io/v2",
        "kind": "PolicyException",
        "metadata": {"name": "some", "namespace": "team"},
        "spec": {
            "background": background,
            "exceptions": [{"policyName": policy_name, "ruleNames": ["*"]}],
            "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
        },
    }


def pod(name: str = "web", image: str = "nginx:1", namespace: str = "team") -> JSONObject:
    """Return a Pod."""
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-of-{name}"}
    spec = {"containers": [{"name": "c", "image": image}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
