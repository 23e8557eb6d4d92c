"""The door that controllers use: reads of the store and writes through the whole API server.

`resource` is a storage key (`pods`, `deployments.apps`). This module holds the interface only.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from kubesandbox.storage.store import Change
from pyverno.kube.json import JSONObject

__all__ = ["Client"]


class Client(Protocol):
    """One user's way into the server; what it returns may not be changed, and errors are `StatusError`."""

    def get(self, resource: str, name: str, namespace: str = "") -> JSONObject | None:
        """Return an object in the preferred version, None when there is none."""

    def list(self, resource: str, namespace: str = "") -> list[JSONObject]:
        """Return the objects of a namespace, of all by default."""

    async def create(self, resource: str, body: JSONObject, *, subresource: str = "", name: str = "") -> JSONObject:
        """Create an object in the namespace that it names; `name` is whose subresource is meant."""

    async def update(self, resource: str, body: JSONObject, *, subresource: str = "") -> JSONObject:
        """Replace an object."""

    async def patch(
        self, resource: str, name: str, namespace: str, patch: JSONObject, *, subresource: str = ""
    ) -> JSONObject:
        """Apply a merge patch."""

    async def delete(
        self,
        resource: str,
        name: str,
        namespace: str = "",
        *,
        propagation: str = "",
        uid: str = "",
        grace: int | None = None,
    ) -> None:
        """Delete an object; `uid` makes sure that it is the one that is meant."""

    def changes(self, *resources: str) -> AsyncIterator[Change]:
        """Yield everything present as ADDED, then what happens."""
