"""Users of the pages, and which of them have access."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from aiohttp import web

from pyverno.errors import PyvernoError
from pyverno.value import dataclass

__all__ = ["AccessDeniedError", "Admission", "Identifier", "Identity"]


class AccessDeniedError(PyvernoError):
    """A user without access, or a failed login. The message never holds a token."""

    code = "access-denied"


@dataclass(frozen=True, slots=True)
class Identity:
    """A logged-in user: a user name or e-mail address, and groups."""

    user: str
    groups: tuple[str, ...] = ()


class Identifier(Protocol):
    """Determines the user of a request; raises AccessDeniedError for a forged identity."""

    def identify(self, request: web.Request) -> Identity | None:
        """Return the user of a request; None without a login."""

    def is_known(self, request: web.Request) -> bool:
        """Return whether the login of an open connection still holds, without prolonging it."""


@dataclass(frozen=True, slots=True)
class Admission:
    """The users with access: every logged-in user, or certain users and groups."""

    users: Sequence[str] = ()
    groups: Sequence[str] = ()

    def allows(self, identity: Identity) -> bool:
        """Return whether a user has access.

        >>> Admission(groups=("admins",)).allows(Identity("ann", ("devs",)))
        False
        """
        if not self.users and not self.groups:
            return True
        return identity.user in self.users or not set(self.groups).isdisjoint(identity.groups)
