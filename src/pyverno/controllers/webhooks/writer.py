"""Keeps the webhook configurations of the cluster equal to those of policies and settings; the leader's work.

An object is written only when it differs, compared without what the API server fills in, and deleted only when the
installation is removed. A configuration is never emptied because something could not be read.

Configurations belong to the ClusterRoleBinding of the admission controller: when an installation is deleted without
its controllers and hooks having a chance to clean up, the garbage collector of the cluster deletes them.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from pyverno.cluster.client import Client
from pyverno.cluster.informer import Informer
from pyverno.controllers.webhooks.sources import Endpoint
from pyverno.errors import HostError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.status import StatusError

__all__ = ["REFUSALS", "ConfigurationWriter"]

REFUSALS: Final = (400, 413, 422)
"""Status codes of refusals that a repeated request cannot change."""

_GROUP: Final = "admissionregistration.k8s.io"
_RESOURCES: Final = {
    "ValidatingWebhookConfiguration": GVR(_GROUP, "v1", "validatingwebhookconfigurations"),
    "MutatingWebhookConfiguration": GVR(_GROUP, "v1", "mutatingwebhookconfigurations"),
}
_MANAGED: Final = "webhook.kyverno.io/managed-by"
_BINDINGS: Final = GVR("rbac.authorization.k8s.io", "v1", "clusterrolebindings")
_BINDING: Final = "kyverno:admission-controller"
_FILLED_IN: Final[Mapping[str, JSON]] = {
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "timeoutSeconds": 10,
    "reinvocationPolicy": "Never",
}
"""Defaults that the API server writes into a webhook."""


class ConfigurationWriter:
    """Writes webhook configurations; one of them may run at a time."""

    def __init__(self, client: Client) -> None:
        """Take the client."""
        self._client = client
        self._owners: list[JSONObject] = []

    async def find_owner(self) -> None:
        """Look up the binding that configurations belong to; without one, or the right to read it, they have no owner.

        Raises StatusError for any other failure, so that an owner is never dropped because it could not be read.
        """
        try:
            found = await self._client.get(_BINDINGS, _BINDING)
        except StatusError as error:
            if error.status not in (403, 404):
                raise
            self._owners = []
            return
        kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding"}
        self._owners = [{**kind, "name": _BINDING, "uid": found["metadata"]["uid"]}]

    async def apply(self, wanted: JSONObject, *, is_fixed: bool = False) -> bool:
        """Bring one configuration to the wanted state; return whether anything was written.

        One that `is_fixed` is left as it is when it is there, but for the authority that it trusts.
        """
        gvr = _RESOURCES[wanted["kind"]]
        if self._owners:
            wanted = {**wanted, "metadata": {**wanted["metadata"], "ownerReferences": self._owners}}
        found = await self.find(wanted)
        if found is None:
            await self._client.create(gvr, wanted)
            return True
        if is_fixed:
            trusting = [_trusting(hook, wanted) for hook in found.get("webhooks") or ()]
            owned = {"ownerReferences": self._owners} if self._owners else {}
            wanted = {**found, "metadata": {**found["metadata"], **owned}, "webhooks": trusting}
        if _essence(found) == _essence(wanted):
            return False
        metadata = {**found["metadata"], **wanted["metadata"]}
        for optional in ("annotations", "ownerReferences"):
            if optional not in wanted["metadata"]:
                metadata.pop(optional, None)
        await self._client.update(gvr, {**wanted, "metadata": metadata})
        return True

    async def find(self, wanted: JSONObject) -> JSONObject | None:
        """Return the configuration from the cluster, None for a missing one."""
        try:
            return await self._client.get(_RESOURCES[wanted["kind"]], wanted["metadata"]["name"])
        except StatusError as error:
            if error.status != 404:
                raise
            return None

    async def trust(self, endpoint: Endpoint) -> None:
        """Have the webhooks that call a server trust its authority; nothing else of them changes.

        Raises StatusError for the first configuration that cannot be written, after the others.
        """
        problems: list[StatusError] = []
        for kind, gvr in _RESOURCES.items():
            for found in await self._list(gvr):
                trusting = endpoint.trusted_by(found)
                if trusting == found:
                    continue
                try:  # items of a list have no kind
                    await self._client.update(gvr, {"apiVersion": f"{_GROUP}/v1", "kind": kind, **trusting})
                except StatusError as error:
                    problems.append(error.copied())
        if problems:
            raise problems[0].copied()

    async def bundles(self, endpoint: Endpoint) -> list[bytes]:
        """Return what the webhooks that call a server trust (PEM), each once; b"" for what is no base64.

        Raises StatusError and HostError.
        """
        found = {
            str(hook["clientConfig"].get("caBundle") or "")
            for gvr in _RESOURCES.values()
            for configuration in await self._list(gvr)
            for hook in configuration.get("webhooks") or ()
            if endpoint.is_called_by(hook)
        }
        return [_decode(each) for each in sorted(found)]

    async def _list(self, gvr: GVR) -> list[JSONObject]:
        listed = await self._client.list(gvr, query={"labelSelector": _MANAGED})
        items: list[JSONObject] = listed["items"]
        return items

    async def trial(self, wanted: JSONObject, hooks: Sequence[JSONObject]) -> str:
        """Return the API server's objection to a configuration with these webhooks only, found by a dry run."""
        metadata = {"name": f"{wanted['metadata']['name']}-trial"}
        body = {**wanted, "metadata": metadata, "webhooks": list(hooks)}
        try:
            await self._client.create(_RESOURCES[wanted["kind"]], body, query={"dryRun": "All"})
        except StatusError as error:
            if error.status not in REFUSALS:
                raise
            return error.message
        return ""

    def informers(self) -> Iterator[Callable[[], Informer]]:
        """Yield what makes the watches of our configurations."""
        for gvr in _RESOURCES.values():
            yield partial(Informer, self._client, gvr, selector=_MANAGED)

    async def remove_all(self) -> None:
        """Take away every configuration of ours, so that a cluster without us admits requests again."""
        for gvr in _RESOURCES.values():
            for item in await self._list(gvr):
                try:
                    await self._client.delete(gvr, item["metadata"]["name"])
                except StatusError as error:
                    if error.status != 404:
                        raise HostError(error.message) from None


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return b""


def _trusting(hook: JSONObject, wanted: JSONObject) -> JSONObject:
    """Return a webhook that trusts the same authority as those of another configuration."""
    bundle = wanted["webhooks"][0]["clientConfig"]["caBundle"]
    return {**hook, "clientConfig": {**hook["clientConfig"], "caBundle": bundle}}


def _essence(configuration: JSONObject) -> object:
    metadata = configuration["metadata"]
    hooks = [_essential(hook) for hook in configuration.get("webhooks") or ()]
    owners = [(owner.get("name"), owner.get("uid")) for owner in metadata.get("ownerReferences") or ()]
    return hooks, metadata.get("labels") or {}, metadata.get("annotations") or {}, owners


def _essential(hook: JSONObject) -> JSONObject:
    rules = [{"scope": "*", **rule} for rule in hook.get("rules") or ()]
    config = dict(hook.get("clientConfig") or {})
    if "service" in config:
        config["service"] = {"port": 443, **config["service"]}
    filled = {**_FILLED_IN, **hook, "rules": rules, "clientConfig": config}
    return {key: value for key, value in filled.items() if value not in (None, [])}
