"""Autogen is expanded once for each policy, by the compiler; everything later reads what is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyverno.compiler.autogen import cel, patterns
from pyverno.compiler.compile import compile_document
from pyverno.controllers.admission.policystatus import status_of
from pyverno.controllers.admissionpolicies.eligibility import obstacle
from pyverno.controllers.webhooks.configurations import configurations
from pyverno.controllers.webhooks.sources import Sources
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS
from pyverno.kube.yaml.documents import Document
from pyverno.policy.cel.policies import CelPolicy, ValidatingPolicy
from pyverno.policy.clusterpolicy import ClusterPolicy

NOW = "2026-01-01T00:00:00Z"
PODS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}


def counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[object]:
    """Note every call of a function from now on."""
    calls: list[object] = []
    real: Callable[..., object] = getattr(module, name)

    def noted(*arguments: object) -> object:
        calls.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(module, name, noted)
    return calls


def document(kind: str, spec: JSONObject) -> Document:
    """Return a policy document."""
    group = "kyverno.io/v1" if kind == "ClusterPolicy" else "policies.kyverno.io/v1"
    return Document({"apiVersion": group, "kind": kind, "metadata": {"name": "p"}, "spec": spec})


def test_rules_are_copied_once_for_rules_status_webhooks_and_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    """One rule is copied once, however many parts read the copies."""
    calls = counted(monkeypatch, patterns, "_copies")
    match = {"any": [{"resources": {"kinds": ["Pod"]}}]}
    rule = {"name": "check", "match": match, "validate": {"message": "no", "pattern": {"spec": {"hostname": "?*"}}}}
    compiled = compile_document(document("ClusterPolicy", {"rules": [rule]}))
    policy = compiled.written
    assert isinstance(policy, ClusterPolicy)
    assert compiled.policy is not None
    assert ["check", "autogen-check", "autogen-cronjob-check"] == [each.info.name for each in compiled.policy.rules]
    status = status_of(compiled, is_configured=True, now=NOW)
    assert ["autogen-check", "autogen-cronjob-check"] == [each["name"] for each in status["autogen"]["rules"]]
    [validating, _] = configurations(Sources(legacy=(policy,), kinds=BUILTIN_KINDS))
    assert {"cronjobs"} <= {each for rule in validating["webhooks"][0]["rules"] for each in rule["resources"]}
    assert 1 == len(calls)


def test_policies_in_cel_are_copied_once_for_rules_status_and_webhooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """One policy has two copies, each made once."""
    calls = counted(monkeypatch, cel, "_copy")
    spec = {
        "matchConstraints": {"resourceRules": [PODS]},
        "matchConditions": [{"name": "named", "expression": "object.metadata.name != 'a'"}],
        "validations": [{"expression": "has(object.spec.hostname)"}],
    }
    compiled = compile_document(document("ValidatingPolicy", spec))
    policy = compiled.written
    assert isinstance(policy, CelPolicy)
    assert isinstance(policy, ValidatingPolicy)
    assert compiled.policy is not None
    assert 3 == len(compiled.policy.rules)
    assert {"defaults", "cronjobs"} == set(status_of(compiled, is_configured=True, now=NOW)["autogen"]["configs"])
    [validating, _] = configurations(Sources(cel=(policy,), kinds=BUILTIN_KINDS))
    assert 4 == len(validating["webhooks"][0]["rules"])
    assert "" != obstacle(policy)
    assert 2 == len(calls)
