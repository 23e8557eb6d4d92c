"""The Deployment of this process: whether a rollout is under way, and whether it is being removed. Read-only."""

from __future__ import annotations

import logging
from typing import Final

from pyverno.cluster.client import Client
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError

__all__ = ["OwnDeployment"]

_DEPLOYMENTS: Final = GVR("apps", "v1", "deployments")
_HIDDEN: Final = (403, 404)

log = logging.getLogger("pyverno.admission")


class OwnDeployment:
    """Reads one Deployment; without a name (outside of a cluster) every answer is False."""

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        """Take its namespace and name; the name is "" when this process is no replica of a Deployment."""
        self._client = client
        self._namespace = namespace
        self._name = name
        self._is_hidden = False

    async def is_rolling(self) -> bool:
        """Return whether old and new replicas run side by side; False without permission to read the Deployment.

        Raises StatusError and HostError when the API server does not answer.
        """
        if not self._name:
            return False
        try:
            found = await self._get()
        except StatusError as error:
            if error.status not in _HIDDEN:
                raise
            if not self._is_hidden:
                log.warning("our Deployment cannot be read", extra={"fields": {"error": error.message}})
            self._is_hidden = True
            return False
        running: int = (found.get("status") or {}).get("replicas") or 0
        return running > _desired_replicas(found)

    async def is_going(self) -> bool:
        """Return whether no replica will follow: the Deployment is gone, being deleted, or scaled to 0.

        Raises StatusError and HostError when the API server does not answer.
        """
        if not self._name:
            return False
        try:
            found = await self._get()
        except StatusError as error:
            if error.status != 404:
                raise
            return True
        return bool(found["metadata"].get("deletionTimestamp")) or _desired_replicas(found) == 0

    async def _get(self) -> JSONObject:
        return await self._client.get(_DEPLOYMENTS, self._name, self._namespace)


def _desired_replicas(deployment: JSONObject) -> int:
    replicas = (deployment.get("spec") or {}).get("replicas")
    return 1 if replicas is None else int(replicas)
