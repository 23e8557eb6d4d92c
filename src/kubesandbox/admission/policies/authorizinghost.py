"""The world of expressions inside the server: the authorizer answers, nothing else does.

This module must never read the store or the network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from kubesandbox.authorization.access import AccessAttributes, Authorizer
from pyverno.engine.request import User

if TYPE_CHECKING:
    from pyverno.lang.cel.host import AuthorizationCheck, CelHost, Decision

__all__ = ["authorizing_host", "decide_access"]


def decide_access(check: AuthorizationCheck, user: User, authorizer: Authorizer) -> Decision:
    """Answer a question of an expression on behalf of a user, or of the service account that it names."""
    from pyverno.lang.cel.host import Decision

    if check.service_account is not None:
        namespace, name = check.service_account
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
        user = User(f"system:serviceaccount:{namespace}:{name}", groups)
    asked = check.attributes
    access = authorizer.authorize(
        AccessAttributes(
            user,
            check.verb,
            group=asked.get("group", ""),
            version="*",
            resource=asked.get("resource", ""),
            subresource=asked.get("subresource", ""),
            namespace=asked.get("namespace", ""),
            name=asked.get("name", ""),
            path=asked.get("path", ""),
        )
    )
    return Decision(allowed=access.allowed, reason=access.reason)


def authorizing_host(authorizer: Authorizer, user: User) -> CelHost:
    """Return a world that answers questions of authorization about a user, and no other question."""
    return cast("CelHost", _AuthorizingHost(authorizer, user))


class _AuthorizingHost:
    """Passes everything but questions of authorization on to the world that answers nothing."""

    def __init__(self, authorizer: Authorizer, user: User) -> None:
        self._authorizer = authorizer
        self._user = user

    def authorize(self, check: AuthorizationCheck) -> Decision:
        return decide_access(check, self._user, self._authorizer)

    def __getattr__(self, name: str) -> Any:
        from pyverno.lang.cel.host import NO_CEL_HOST

        return getattr(NO_CEL_HOST, name)
