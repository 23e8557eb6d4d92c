"""Access checks: the attributes of an action, the decision, and the text of a refusal."""

from __future__ import annotations

from typing import Protocol

from kubesandbox.parsing.requests import go_quote
from pyverno.engine.request import User
from pyverno.kube.status import StatusError, forbidden
from pyverno.value import dataclass

__all__ = ["MASTERS", "Access", "AccessAttributes", "Authorizer", "EverythingAllowed", "PolicyRule", "forbidden_access"]

MASTERS = "system:masters"
"""The group whose members may do everything, regardless of roles."""


@dataclass(frozen=True, slots=True)
class AccessAttributes:
    """The action of a user: a verb on a resource, or on a `path` that is no resource."""

    user: User
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def combined_resource(self) -> str:
        """The resource as rules name it: `pods/log`."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


@dataclass(frozen=True, slots=True)
class Access:
    """The decision: `reason` names the binding that allows the action, or the error of the search."""

    allowed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """One rule of a role; each part keeps its written order."""

    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()


class Authorizer(Protocol):
    """Judges questions of access."""

    def authorize(self, attributes: AccessAttributes) -> Access:
        """Return whether the user may."""

    def rules_for(self, user: User, namespace: str) -> tuple[tuple[PolicyRule, ...], str]:
        """Return all rules that apply to a user in a namespace, and the errors of the search."""


class EverythingAllowed:
    """The authorizer of a server that allows everything.

    >>> EverythingAllowed().authorize(AccessAttributes(User("x"), "get", path="/metrics")).allowed
    True
    """

    def authorize(self, attributes: AccessAttributes) -> Access:
        """Allow."""
        del attributes
        return Access(True)

    def rules_for(self, user: User, namespace: str) -> tuple[tuple[PolicyRule, ...], str]:
        """Return the rules that allow everything."""
        del user, namespace
        return (
            PolicyRule(verbs=("*",), groups=("*",), resources=("*",)),
            PolicyRule(verbs=("*",), urls=("*",)),
        ), ""


def forbidden_access(attributes: AccessAttributes, reason: str = "") -> StatusError:
    """Return the 403 of a refusal with the API server's text.

    >>> print(forbidden_access(AccessAttributes(User("x"), "list", resource="pods", namespace="default")))
    pods is forbidden: User "x" cannot list resource "pods" in API group "" in the namespace "default"
    """
    why = _refusal(attributes).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    if reason:
        why = f"{why}: {reason}"
    if attributes.path:
        return StatusError(403, "Forbidden", f"forbidden: {why}", shows_details=True)
    return forbidden(attributes.group, attributes.resource, attributes.name, why)


def _refusal(attributes: AccessAttributes) -> str:
    user, verb = go_quote(attributes.user.username), attributes.verb
    if attributes.path:
        return f"User {user} cannot {verb} path {go_quote(attributes.path)}"
    what = f"resource {go_quote(attributes.combined_resource)} in API group {go_quote(attributes.group)}"
    where = f"in the namespace {go_quote(attributes.namespace)}" if attributes.namespace else "at the cluster scope"
    return f"User {user} cannot {verb} {what} {where}"
