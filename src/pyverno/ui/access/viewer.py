"""The viewer of a request: whose rights in the cluster decide what a handler may read on the viewer's behalf.

Set around each request, as the scope of the store is. Without one, everything that this server may read is shown: there
is no login, or its operators chose `--rights all`.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final, Protocol

from pyverno.errors import HostError
from pyverno.ui.access.access import Access
from pyverno.ui.access.identity import AccessDeniedError, Identity
from pyverno.ui.store.scope import Scope
from pyverno.value import dataclass

__all__ = ["VIEWER", "Rights", "Viewer", "check", "may", "sees_everything"]


class Rights(Protocol):
    """Decides what users may see; both methods raise HostError where there is no decision."""

    async def scope(self, identity: Identity) -> Scope:
        """Return the namespaces whose reports a user may list."""

    async def may(self, identity: Identity, access: Access) -> bool:
        """Return whether a user may do something in the cluster."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """A user, and what decides."""

    identity: Identity
    rights: Rights

    async def may(self, access: Access) -> bool:
        """Return whether the API server lets the user do something; raises HostError where it does not decide."""
        return await self.rights.may(self.identity, access)


VIEWER: Final[ContextVar[Viewer | None]] = ContextVar("viewer", default=None)


async def may(access: Access, viewer: Viewer | None = None) -> bool:
    """Return whether the viewer of this request, or a given one, may read something; Secrets are for nobody."""
    if access.is_to_secrets:  # guard: the pages show no Secret
        return False
    viewer = viewer or VIEWER.get()
    return viewer is None or await viewer.may(access)  # guard: what is shown is asked for the viewer


async def check(access: Access, viewer: Viewer | None = None) -> None:
    """Raise AccessDeniedError if the viewer may not read something."""
    if not await may(access, viewer):
        if access.is_to_secrets:
            raise AccessDeniedError("a Secret is not shown, nor explained, on these pages")
        raise AccessDeniedError(f"you may not {access}: ask the administrators of the cluster for this right")


async def sees_everything() -> bool:
    """Return whether the viewer may see all results now; a connection may be open for longer than the rights hold."""
    viewer = VIEWER.get()
    if viewer is None:
        return True
    try:
        return await viewer.rights.scope(viewer.identity) is None  # guard: an open stream asks for the rights again
    except HostError:
        return False
