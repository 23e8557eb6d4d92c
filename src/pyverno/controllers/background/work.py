"""The interface of a handler of UpdateRequests: it does the work of one request, or names what it waits for.

A handler may run again after it succeeded (a replica that ended before the request was deleted), so it works by the
state of the cluster, never by what it did before.
"""

from __future__ import annotations

from typing import Final, Protocol

from pyverno.errors import PolicyError
from pyverno.kube.admissionreview import check_user
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import Document
from pyverno.policy.schema import Cursor, Problems
from pyverno.policy.updaterequest import UPDATE_REQUEST, UpdateRequest
from pyverno.value import dataclass

__all__ = ["Awaited", "Done", "Handler", "Waiting", "read_request"]


@dataclass(frozen=True, slots=True)
class Done:
    """The request is completed, and deleted; `message` is for the log."""

    message: str = ""


@dataclass(frozen=True, slots=True)
class Awaited:
    """Objects whose change wakes a request: one by name, or all of a resource in a namespace (or everywhere)."""

    resource: GVR
    namespace: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The request cannot be done before something changes: `message` is the reason, `on` what is watched for a change.

    It is looked at again after `seconds` in any case: a change may have been missed, or not be watchable.
    """

    message: str
    on: tuple[Awaited, ...] = ()
    seconds: float = 600.0


class Handler(Protocol):
    """Does the work of one type of request."""

    async def handle(self, request: UpdateRequest) -> Done | Waiting:
        """Bring the cluster to the state that the request describes.

        Raises PyvernoError (HostError, StatusError and others) for a failure; the request is then retried with growing
        delays.
        """
        ...


_FILE: Final = "updaterequest"


def read_request(body: JSONObject) -> UpdateRequest:
    """Decode an UpdateRequest; raises PolicyError with the first problem of an invalid one, UsageError for its user."""
    problems = Problems(Document(body, _FILE))
    found = UPDATE_REQUEST(body, Cursor(problems))
    if problems.errors or not isinstance(found, UpdateRequest):
        raise problems.errors[0] if problems.errors else PolicyError("the request is invalid")
    check_user(found.spec.context.user)
    return found
