"""ServiceAccount: every pod runs as an existing account and has its token mounted at the usual path."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kubesandbox.admission.plugins.pods import each_container, is_pod_write, pod_spec, with_spec
from kubesandbox.admission.policies.requests import refused
from kubesandbox.attributes import Attributes
from kubesandbox.storage.store import Key
from kubesandbox.view import ClusterView
from pyverno.engine.request import Operation
from pyverno.kube.json import JSON, JSONObject

__all__ = ["ServiceAccounts"]

_DEFAULT = "default"
_VOLUME = "kube-api-access-"
_MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_MIRROR = "kubernetes.io/config.mirror"
_EXPIRY = 3607
_WAIT_SECONDS, _POLL_SECONDS = 1.5, 0.02
_SOURCES: list[JSONObject] = [
    {"serviceAccountToken": {"expirationSeconds": _EXPIRY, "path": "token"}},
    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    {
        "downwardAPI": {
            "items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]
        }
    },
]


class ServiceAccounts:
    """The plugin; `make_suffix` returns the five characters at the end of a volume's name."""

    def __init__(self, cluster: ClusterView, make_suffix: Callable[[], str], *, waits_for_default: bool = True) -> None:
        """Take the cluster; `waits_for_default` is for clusters whose controllers create default accounts."""
        self._cluster = cluster
        self._make_suffix = make_suffix
        self._wait_seconds = _WAIT_SECONDS if waits_for_default else 0.0

    async def admit(self, attributes: Attributes) -> Attributes:
        """Return the request with the pod's account filled in; raises 403 for a missing account."""
        if not is_pod_write(attributes, Operation.CREATE):
            return attributes
        spec = pod_spec(attributes)
        if _is_mirror(attributes):
            if spec.get("serviceAccountName"):
                raise refused(attributes, "a mirror pod may not reference service accounts")
            return attributes
        name = str(spec.get("serviceAccountName") or _DEFAULT)
        account = await self._account(attributes, name)
        changed: JSONObject = {**spec, "serviceAccountName": name, "serviceAccount": name}
        if _mounts_token(account, spec):
            changed = self._with_token(changed)
        if not changed.get("imagePullSecrets") and account.get("imagePullSecrets"):
            changed["imagePullSecrets"] = [{"name": each.get("name", "")} for each in account["imagePullSecrets"]]
        return with_spec(attributes, changed)

    async def check(self, attributes: Attributes) -> None:
        """Raise 403 when webhooks have left a pod with an account that does not exist."""
        if not is_pod_write(attributes, Operation.CREATE) or _is_mirror(attributes):
            return
        name = str(pod_spec(attributes).get("serviceAccountName") or "")
        if not name:
            raise refused(attributes, f"no service account specified for pod {attributes.namespace}/{attributes.name}")
        await self._account(attributes, name)

    async def _account(self, attributes: Attributes, name: str) -> JSONObject:
        """Return the account, after a wait for the default account of a new namespace."""
        namespace = attributes.namespace
        deadline = asyncio.get_running_loop().time() + (self._wait_seconds if name == _DEFAULT else 0)
        while True:
            found = self._cluster.get(Key("serviceaccounts", namespace, name))
            if found is not None:
                return found.body
            if asyncio.get_running_loop().time() >= deadline:
                break
            await asyncio.sleep(_POLL_SECONDS)
        why = f'serviceaccount "{name}" not found'
        raise refused(attributes, f"error looking up service account {namespace}/{name}: {why}")

    def _with_token(self, spec: JSONObject) -> JSONObject:
        volumes: list[JSON] = list(spec.get("volumes") or ())
        names = [str(each.get("name") or "") for each in volumes if isinstance(each, dict)]
        present = next((name for name in names if name.startswith(_VOLUME)), "")
        volume = present or f"{_VOLUME}{self._make_suffix()}"
        mount = {"name": volume, "readOnly": True, "mountPath": _MOUNT}
        needed = False

        def with_mount(container: JSONObject) -> JSONObject:
            nonlocal needed
            mounts: list[JSON] = list(container.get("volumeMounts") or ())
            if any(isinstance(each, dict) and each.get("mountPath") == _MOUNT for each in mounts):
                return container
            needed = True
            return {**container, "volumeMounts": [*mounts, mount]}

        changed = each_container(spec, with_mount)
        if needed and not present:
            projected = {"defaultMode": 0o644, "sources": _SOURCES}
            changed["volumes"] = [*volumes, {"name": volume, "projected": projected}]
        return changed


def _is_mirror(attributes: Attributes) -> bool:
    annotations = ((attributes.object or {}).get("metadata") or {}).get("annotations") or {}
    return _MIRROR in annotations


def _mounts_token(account: JSONObject, spec: JSONObject) -> bool:
    for said in (spec.get("automountServiceAccountToken"), account.get("automountServiceAccountToken")):
        if said is not None:
            return said is True
    return True
