"""The host of expressions inside the server: it answers the authorizer and refuses everything else.

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
    """Check an access for an expression, for a user or the service account that it names."""
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
    """Return a host that checks accesses of a user, and refuses everything else."""
    return cast("CelHost", _AuthorizingHost(authorizer, user))


class _AuthorizingHost:
    """Checks accesses itself, and passes everything else to `NoHost`, which refuses it."""

    def __init__(self, authorizer: Authorizer, user: User) -> None:
        self._authorizer = authorizer
        self._user = user

    def authorize(self, check: AuthorizationCheck) -> Decision:
        return decide_access(check, self._user, self._authorizer)

    def __getattr__(self, name: str) -> Any:
        from pyverno.lang.cel.host import NO_CEL_HOST

        return getattr(NO_CEL_HOST, name)
