"""The interface of a handler of UpdateRequests: it does the work of one request, or names what it waits for.

A handler may run again after it succeeded (a replica that ended before the request was deleted), so it works by the
state of the cluster, never by what it did before.
"""

from __future__ import annotations

from typing import Final, Protocol

import orjson

from pyverno.compiler.compile import Compiled
from pyverno.controllers.evidence import Refuted, Unprovable
from pyverno.engine.request import Operation, Request
from pyverno.errors import PolicyError
from pyverno.kube.admissionreview import check_user
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.documents import Document
from pyverno.policy.schema import Cursor, Problems
from pyverno.policy.updaterequest import UPDATE_REQUEST, UpdateRequest
from pyverno.value import dataclass, replace

__all__ = ["Awaited", "Done", "Handler", "Waiting", "part_of", "read_request", "reads_old", "refused"]


@dataclass(frozen=True, slots=True)
class Done:
    """The request is completed, and deleted; `message` is for the log.

    `is_refused`: the API server does not confirm the request, so that nothing was done.
    """

    message: str = ""
    is_refused: bool = False


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
_OLD: Final = b"oldObject"


def refused(found: Refuted | None) -> Done:
    """Return the outcome of a request that the API server does not confirm."""
    return Done(found.message if found is not None else "", is_refused=True)


def part_of(found: Unprovable, *, reads_old: bool, kept: JSON = None) -> Request | Refuted:
    """Return the part of a request that the API server confirms, if that is enough for rules.

    Without its history an update is one that changes nothing, which suffices for rules that read no old object. What a
    request for `exec` or an eviction contains is recorded by the admission controller only if the caller proved its
    identity. `kept` is the deleted object as the admission controller stored it in a Secret.
    """
    is_deletion = found.request.operation is Operation.DELETE
    if is_deletion and kept is not None:
        return replace(found.request, object=None, old=kept)
    if found.is_stored and (is_deletion or reads_old):
        return Refuted(found.message)
    return found.request


def reads_old(compiled: Compiled) -> bool:
    """Return whether a policy mentions the old object of a request."""
    return _OLD in orjson.dumps(compiled.document.value.get("spec"))


def read_request(body: JSONObject) -> UpdateRequest:
    """Decode an UpdateRequest; raises PolicyError with the first problem of an invalid one, UsageError for its user."""
    problems = Problems(Document(body, _FILE))
    found = UPDATE_REQUEST(body, Cursor(problems))
    if problems.errors or not isinstance(found, UpdateRequest):
        raise problems.errors[0] if problems.errors else PolicyError("the request is invalid")
    check_user(found.spec.context.user)
    return found
