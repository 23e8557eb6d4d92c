"""The Deployment that this process is a replica of: whether it is being replaced, and whether it goes for good.

This module must never change it.
"""

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
    """Asks about one Deployment; without a name there is none, which is so outside of the cluster."""

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        """Take where it is; "" as the name when this process is no replica of a Deployment."""
        self._client = client
        self._namespace = namespace
        self._name = name
        self._is_hidden = False

    async def is_rolling(self) -> bool:
        """Tell whether old and new replicas run side by side; one that cannot be seen is not rolling.

        Raises StatusError and HostError when the API server cannot say.
        """
        if not self._name:
            return False
        try:
            found = await self._get()
        except StatusError as error:
            if error.status not in _HIDDEN:
                raise
            if not self._is_hidden:
                log.warning("our Deployment cannot be seen", extra={"fields": {"error": error.message}})
            self._is_hidden = True
            return False
        running: int = (found.get("status") or {}).get("replicas") or 0
        return running > _wanted(found)

    async def is_going(self) -> bool:
        """Tell whether no replica will come after us: the Deployment is gone, is being deleted or scaled to 0.

        Raises StatusError and HostError when the API server cannot say.
        """
        if not self._name:
            return False
        try:
            found = await self._get()
        except StatusError as error:
            if error.status != 404:
                raise
            return True
        return bool(found["metadata"].get("deletionTimestamp")) or _wanted(found) == 0

    async def _get(self) -> JSONObject:
        return await self._client.get(_DEPLOYMENTS, self._name, self._namespace)


def _wanted(deployment: JSONObject) -> int:
    replicas = (deployment.get("spec") or {}).get("replicas")
    return 1 if replicas is None else int(replicas)
