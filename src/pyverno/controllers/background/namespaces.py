"""The namespaces that selectors of rules look at: as the watch knows them, or read from the API server.

Without the labels of its namespace, a request would look like one that no `namespaceSelector` selects.
"""

from __future__ import annotations

from typing import Final, Protocol

from pyverno.cluster.client import Client
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError

__all__ = ["KnownNamespaces", "find_namespace"]

_NAMESPACES: Final = GVR("", "v1", "namespaces")
_NOT_FOUND: Final = 404


class KnownNamespaces(Protocol):
    """What a watch knows (`controllers.state.clusterstate.ClusterState`)."""

    def namespace(self, name: str) -> JSONObject | None:
        """Return a namespace, None when it is unknown; raises HostError while namespaces are not known."""
        ...


async def find_namespace(name: str, known: KnownNamespaces, client: Client) -> JSONObject | None:
    """Return a namespace, None where there is none; raises HostError or StatusError when it cannot be read.

    The watch may be behind: a namespace that it does not know is read.
    """
    found = known.namespace(name)
    if found is not None:
        return found
    try:
        return await client.get(_NAMESPACES, name)
    except StatusError as error:
        if error.status != _NOT_FOUND:
            raise
        return None
