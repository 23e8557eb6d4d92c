"""The webhook configurations that do not follow from policies: for Kyverno's kinds, the heartbeat and times to live.

A policy that cannot be checked is not stored (failurePolicy Fail).
"""

from __future__ import annotations

from typing import Final

from pyverno.controllers.webhooks.sources import Endpoint
from pyverno.kube.json import JSONObject
from pyverno.policy.kinds import POLICY_KINDS, Family
from pyverno.webhook.cleanupreviews import TTL_LABEL, TTL_PATH
from pyverno.webhook.configuration import Configuration
from pyverno.webhook.heartbeat import HEARTBEAT_PATH

__all__ = ["CLEANUP_PATH", "cleanup_configurations", "document_configurations"]

CLEANUP_PATH: Final = "/cleanuppolicyvalidate"
"""Path of the admission controller for cleanup policies; `/validate` is in use."""

_GROUP: Final = "admissionregistration.k8s.io"
_MANAGED: Final = "webhook.kyverno.io/managed-by"


def document_configurations(endpoint: Endpoint, configuration: Configuration, timeout: int) -> tuple[JSONObject, ...]:
    """Return the configurations for policies, exceptions, global context entries and the heartbeat.

    They never change with the policies; `timeout` in seconds is for policies and the heartbeat.
    """
    policies = [*_rules_of(Family.RULES), *_rules_of(Family.CEL)]
    rows = (
        ("exception", "/exceptionvalidate", _rules_of(Family.EXCEPTION)),
        ("cel-exception", "/celexception/validate", _rules_of(Family.CEL_EXCEPTION)),
        ("global-context", "/globalcontextvalidate", _rules_of(Family.CONTEXT)),
    )
    policy_hook = {
        **_hook(endpoint, "/policyvalidate", policies, name="validate-policy.kyverno.svc"),
        "matchPolicy": "Equivalent",
        "timeoutSeconds": timeout,
    }
    # writes the author of a namespaced policy; health checks of an installation expect its name
    changing_hook = {
        **_hook(endpoint, "/policymutate", [*policies, *_rules_of(Family.CLEANUP)], name="mutate-policy.kyverno.svc"),
        "matchPolicy": "Equivalent",
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": timeout,
        "reinvocationPolicy": "IfNeeded",
    }
    return (
        _configuration("Validating", "policy", policy_hook, configuration),
        _configuration("Mutating", "policy", changing_hook, configuration),
        *(
            _configuration("Validating", word, _hook(endpoint, path, rules), configuration)
            for word, path, rules in rows
        ),
        _configuration("Mutating", "verify", _heartbeat(endpoint, timeout), configuration),
    )


def cleanup_configurations(
    endpoint: Endpoint, configuration: Configuration, *, policy_path: str = CLEANUP_PATH
) -> tuple[JSONObject, ...]:
    """Return the configurations for cleanup policies and for the label that gives an object a time to live."""
    policies = _rules_of(Family.CLEANUP)
    labelled = {
        **_hook(endpoint, TTL_PATH, [_rule("*", ("*",), ("*", "*/status"))]),
        "failurePolicy": "Ignore",
        "objectSelector": {"matchExpressions": [{"key": TTL_LABEL, "operator": "Exists"}]},
    }
    return (
        _configuration("Validating", "cleanup", _hook(endpoint, policy_path, policies), configuration),
        _configuration("Validating", "ttl", labelled, configuration),
    )


def _heartbeat(endpoint: Endpoint, timeout: int) -> JSONObject:
    leases = {**_rule("coordination.k8s.io", ("v1",), ("leases",)), "operations": ["UPDATE"]}
    return {
        **_hook(endpoint, HEARTBEAT_PATH, [leases], name="monitor-webhooks.kyverno.svc"),
        "failurePolicy": "Ignore",
        "matchPolicy": "Equivalent",
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": timeout,
        "reinvocationPolicy": "IfNeeded",
        "objectSelector": {"matchLabels": {"app.kubernetes.io/name": "kyverno"}},
    }


def _hook(endpoint: Endpoint, path: str, rules: list[JSONObject], *, name: str = "") -> JSONObject:
    return {
        "name": name or f"{endpoint.service}.{endpoint.namespace}.svc",
        "clientConfig": endpoint.client_config(path),
        "rules": rules,
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }


def _configuration(webhook_type: str, word: str, hook: JSONObject, configuration: Configuration) -> JSONObject:
    metadata: JSONObject = {
        "name": f"kyverno-{word}-{webhook_type.lower()}-webhook-cfg",
        "labels": {**configuration.webhook_labels, _MANAGED: "kyverno"},
    }
    if configuration.webhook_annotations:
        metadata["annotations"] = dict(configuration.webhook_annotations)
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": f"{webhook_type}WebhookConfiguration",
        "metadata": metadata,
        "webhooks": [hook],
    }


def _rules_of(family: Family) -> list[JSONObject]:
    """Return a webhook rule per group and set of served versions."""
    resources: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for row in POLICY_KINDS:
        if row.family is family:
            resources.setdefault((row.group, tuple(sorted(row.versions))), []).append(row.plural)
    return [_rule(group, versions, tuple(sorted(names))) for (group, versions), names in resources.items()]


def _rule(group: str, versions: tuple[str, ...], resources: tuple[str, ...]) -> JSONObject:
    return {
        "apiGroups": [group],
        "apiVersions": list(versions),
        "operations": ["CREATE", "UPDATE"],
        "resources": list(resources),
        "scope": "*",
    }
