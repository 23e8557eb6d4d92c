"""Policies that act with the permissions of their requesters: no rule writes for a user what that user may not write.

Without the annotation a rule does what the background controller may do. Work that no request caused (objects that
exist already, synchronization) has no requester, and the controller's permissions alone decide.
"""

from __future__ import annotations

from typing import Final

from pyverno.compiler.compile import Compiled
from pyverno.engine.request import User
from pyverno.errors import HostError
from pyverno.policy.updaterequest import AdmissionContext

__all__ = ["PERMISSIONS", "requester_of"]

PERMISSIONS: Final = "pyverno.io/permissions"
"""On a policy: `requester` restricts its writes to what the user of the request may write too."""

_REQUESTER: Final = "requester"


def requester_of(compiled: Compiled, context: AdmissionContext | None) -> User | None:
    """Return the user whose permissions limit the work of a policy for a request, None where none do.

    Raises HostError for an annotation with another value: the work must not be done with more permissions than meant.
    """
    value = ((compiled.document.value.get("metadata") or {}).get("annotations") or {}).get(PERMISSIONS)
    if value is None:
        return None
    if value != _REQUESTER:
        raise HostError(f"annotation `{PERMISSIONS}` of the policy has value `{value}`, only `{_REQUESTER}` is known")
    if context is None or context.request is None:
        return None
    return User.from_json(context.user)
