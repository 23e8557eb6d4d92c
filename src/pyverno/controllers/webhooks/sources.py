"""The sources of webhook configurations, and one webhook on its way into a configuration: values only."""

from __future__ import annotations

import base64

from pyverno.controllers.state.policymemo import PolicyKey, PolicyMemo, key_of
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.policy.cel.policies import CelPolicy
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.value import dataclass, field, replace
from pyverno.webhook.configuration import Configuration
from pyverno.webhook.routes import WebhookType

__all__ = ["FAILURES", "Endpoint", "Hook", "PolicyKey", "Settings", "Sources", "key_of"]

FAILURES = ("Ignore", "Fail")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of the webhook server, a service or with `server` (`host:port`) a URL, and its authority."""

    service: str = "kyverno-svc"
    namespace: str = "kyverno"
    port: int = 443
    server: str = ""
    ca_bundle: bytes = b""

    def client_config(self, path: str) -> JSONObject:
        """Return the `clientConfig` of a webhook."""
        config: JSONObject = {"caBundle": base64.b64encode(self.ca_bundle).decode()}
        if self.server:
            return {"url": f"https://{self.server}{path}", **config}
        service = {"name": self.service, "namespace": self.namespace, "path": path, "port": self.port}
        return {"service": service, **config}

    def is_called_by(self, hook: JSONObject) -> bool:
        """Return whether a webhook calls this server, whatever it trusts."""
        config = hook.get("clientConfig") or {}
        if self.server:
            return str(config.get("url", "")).startswith(f"https://{self.server}/")
        service = config.get("service") or {}
        return (service.get("name"), service.get("namespace")) == (self.service, self.namespace)

    def trusted_by(self, configuration: JSONObject) -> JSONObject:
        """Return a configuration whose webhooks that call this server trust its authority."""
        bundle = base64.b64encode(self.ca_bundle).decode()
        return {
            **configuration,
            "webhooks": [
                {**hook, "clientConfig": {**hook["clientConfig"], "caBundle": bundle}}
                if self.is_called_by(hook)
                else hook
                for hook in configuration.get("webhooks") or ()
            ],
        }


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of webhooks from flags; `timeout` in seconds."""

    timeout: int = 10
    forces_ignore: bool = False
    excludes_bootstrap: bool = False
    reports_admission: bool = True
    updates: bool = True


@dataclass(frozen=True, slots=True)
class Hook:
    """One webhook of a configuration to write; `policies` are those that it serves."""

    name: str
    webhook_type: WebhookType
    path: str
    rules: tuple[JSONObject, ...]
    failure_policy: str
    policies: tuple[PolicyKey, ...] = ()
    side_effects: str = "NoneOnDryRun"
    timeout: int | None = None
    match_policy: str = ""
    namespace_selector: JSONObject | None = None
    object_selector: JSONObject | None = None
    conditions: tuple[JSONObject, ...] = ()
    reinvokes: bool = False


@dataclass(frozen=True, slots=True)
class Sources:
    """Everything that the configurations follow from.

    `unconditional` are CEL policies whose match conditions are left to the engine, because the API server does not take
    them. `memo` holds what was worked out for the same policies before.
    """

    legacy: tuple[ClusterPolicy, ...] = ()
    cel: tuple[CelPolicy, ...] = ()
    kinds: KindTable = field(default_factory=KindTable)
    configuration: Configuration = field(default_factory=Configuration)
    endpoint: Endpoint = field(default_factory=Endpoint)
    settings: Settings = field(default_factory=Settings)
    unconditional: frozenset[PolicyKey] = frozenset()
    memo: PolicyMemo = field(default_factory=PolicyMemo)

    def only(self, key: PolicyKey) -> Sources:
        """Return the same for one policy."""
        return replace(
            self,
            legacy=tuple(policy for policy in self.legacy if key_of(policy) == key),
            cel=tuple(policy for policy in self.cel if key_of(policy) == key),
        )

    def without(self, keys: frozenset[PolicyKey]) -> Sources:
        """Return the same for all policies but these."""
        return replace(
            self,
            legacy=tuple(policy for policy in self.legacy if key_of(policy) not in keys),
            cel=tuple(policy for policy in self.cel if key_of(policy) not in keys),
        )
