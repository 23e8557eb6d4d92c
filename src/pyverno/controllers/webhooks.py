"""Keeps the webhook configurations of the cluster equal to what policies and settings ask for; the leader's work.

An object is written only when it differs, compared without what the API server fills in, and taken away only when all
of us go. A configuration is never emptied because something could not be read. This module must never compute a rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pyverno.cluster.client import Client
from pyverno.controllers.webhooksources import Endpoint
from pyverno.errors import HostError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.status import StatusError

__all__ = ["REFUSALS", "WebhookController", "document_configurations"]

REFUSALS: Final = (400, 413, 422)
"""What an API server says to what it will not take, however often it is sent."""

_GROUP: Final = "admissionregistration.k8s.io"
_RESOURCES: Final = {
    "ValidatingWebhookConfiguration": GVR(_GROUP, "v1", "validatingwebhookconfigurations"),
    "MutatingWebhookConfiguration": GVR(_GROUP, "v1", "mutatingwebhookconfigurations"),
}
_MANAGED: Final = "webhook.kyverno.io/managed-by"
_FILLED_IN: Final[Mapping[str, JSON]] = {
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "timeoutSeconds": 10,
    "reinvocationPolicy": "Never",
}
"""What the API server writes where a webhook says nothing."""

_LEGACY_VERSIONS: Final = ("v1", "v2beta1")
_CEL_VERSIONS: Final = ("v1", "v1alpha1", "v1beta1")
_CEL_POLICIES: Final = (
    "deletingpolicies",
    "generatingpolicies",
    "imagevalidatingpolicies",
    "mutatingpolicies",
    "validatingpolicies",
)


class WebhookController:
    """Writes webhook configurations; one of them may run at a time."""

    def __init__(self, client: Client) -> None:
        """Take the client."""
        self._client = client

    async def apply(self, wanted: JSONObject) -> bool:
        """Make one configuration what it should be; tell whether anything was written."""
        gvr = _RESOURCES[wanted["kind"]]
        found = await self.find(wanted)
        if found is None:
            await self._client.create(gvr, wanted)
            return True
        if _essence(found) == _essence(wanted):
            return False
        metadata = {**found["metadata"], **wanted["metadata"]}
        if "annotations" not in wanted["metadata"]:
            metadata.pop("annotations", None)
        await self._client.update(gvr, {**wanted, "metadata": metadata})
        return True

    async def find(self, wanted: JSONObject) -> JSONObject | None:
        """Return a configuration as it is in the cluster, None when there is none."""
        try:
            return await self._client.get(_RESOURCES[wanted["kind"]], wanted["metadata"]["name"])
        except StatusError as error:
            if error.status != 404:
                raise
            return None

    async def trial(self, wanted: JSONObject, hooks: Sequence[JSONObject]) -> str:
        """Return what the API server would say against a configuration with these webhooks only; nothing is written."""
        metadata = {"name": f"{wanted['metadata']['name']}-trial"}
        body = {**wanted, "metadata": metadata, "webhooks": list(hooks)}
        try:
            await self._client.create(_RESOURCES[wanted["kind"]], body, query={"dryRun": "All"})
        except StatusError as error:
            if error.status not in REFUSALS:
                raise
            return error.message
        return ""

    async def remove_all(self) -> None:
        """Take away every configuration of ours, so that a cluster without us admits requests again."""
        for gvr in _RESOURCES.values():
            listed = await self._client.list(gvr, query={"labelSelector": _MANAGED})
            for item in listed["items"]:
                try:
                    await self._client.delete(gvr, item["metadata"]["name"])
                except StatusError as error:
                    if error.status != 404:
                        raise HostError(error.message) from None


def _essence(configuration: JSONObject) -> object:
    metadata = configuration["metadata"]
    hooks = [_essential(hook) for hook in configuration.get("webhooks") or ()]
    return hooks, metadata.get("labels") or {}, metadata.get("annotations") or {}


def _essential(hook: JSONObject) -> JSONObject:
    rules = [{"scope": "*", **rule} for rule in hook.get("rules") or ()]
    config = dict(hook.get("clientConfig") or {})
    if "service" in config:
        config["service"] = {"port": 443, **config["service"]}
    filled = {**_FILLED_IN, **hook, "rules": rules, "clientConfig": config}
    return {key: value for key, value in filled.items() if value not in (None, [])}


def document_configurations(endpoint: Endpoint, timeout: int) -> tuple[JSONObject, ...]:
    """Return the configurations for policies, exceptions and global context entries themselves.

    They never change with the policies; a policy that can not be checked is not stored (failurePolicy Fail).
    """
    service = f"{endpoint.service}.{endpoint.namespace}.svc"
    policies = [
        _rule("kyverno.io", _LEGACY_VERSIONS, ("clusterpolicies", "policies")),
        _rule("policies.kyverno.io", _CEL_VERSIONS, _CEL_POLICIES),
        _rule("policies.kyverno.io", ("v1", "v1beta1"), tuple(f"namespaced{name}" for name in _CEL_POLICIES)),
    ]
    exceptions = [_rule("kyverno.io", ("v2", "v2beta1"), ("policyexceptions",))]
    cel_exceptions = [_rule("policies.kyverno.io", _CEL_VERSIONS, ("policyexceptions",))]
    entries = [_rule("kyverno.io", ("v2", "v2beta1", "v2alpha1"), ("globalcontextentries",))]
    rows = (
        ("policy", "validate-policy.kyverno.svc", "/policyvalidate", policies),
        ("exception", service, "/exceptionvalidate", exceptions),
        ("cel-exception", service, "/celexception/validate", cel_exceptions),
        ("global-context", service, "/globalcontextvalidate", entries),
    )
    return tuple(
        {
            "apiVersion": f"{_GROUP}/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": f"kyverno-{word}-validating-webhook-cfg", "labels": {_MANAGED: "kyverno"}},
            "webhooks": [
                {
                    "name": name,
                    "clientConfig": endpoint.client_config(path),
                    "rules": rules,
                    "failurePolicy": "Fail",
                    "matchPolicy": "Equivalent",
                    "sideEffects": "None",
                    "timeoutSeconds": timeout,
                    "admissionReviewVersions": ["v1"],
                }
            ],
        }
        for word, name, path, rules in rows
    )


def _rule(group: str, versions: tuple[str, ...], resources: tuple[str, ...]) -> JSONObject:
    return {
        "apiGroups": [group],
        "apiVersions": list(versions),
        "operations": ["CREATE", "UPDATE"],
        "resources": list(resources),
        "scope": "*",
    }
