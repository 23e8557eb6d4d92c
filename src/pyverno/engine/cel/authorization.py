"""Authorization requests of proxies: how they differ from requests for Kubernetes objects, and which policies run.

A policy in evaluation mode Envoy or HTTP matches such requests only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyverno.engine.match import Filter, IndexKey
from pyverno.engine.request import Operation, Request
from pyverno.errors import DocumentError, UsageError
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSON
from pyverno.kube.resource import Resource
from pyverno.value import dataclass

__all__ = ["CheckRequestMatcher", "check_request"]

_KINDS: Final[Mapping[str, GVK]] = {
    "HTTP": GVK("http", "", "CheckRequest"),
    "Envoy": GVK("envoy.service.auth", "v3", "CheckRequest"),
}


def check_request(payload: JSON, *, mode: str) -> Request:
    """Build the request of a proxy (`HTTP`, or `Envoy` in protobuf's JSON); raises UsageError for an invalid one.

    >>> check_request({"attributes": {"method": "GET"}}, mode="HTTP").gvk.kind
    'CheckRequest'
    """
    from pyverno.lang.cel.presets import read_check_request

    try:
        read_check_request(mode, payload)
    except DocumentError as error:
        raise UsageError(error.message) from error
    return Request(operation=Operation.CREATE, object=payload, old=None, gvk=_KINDS[mode], is_payload=True)


@dataclass(frozen=True, slots=True)
class CheckRequestMatcher:
    """Selects the authorization requests of one mode, and nothing else."""

    mode: str
    policy_namespace: str = ""

    @property
    def blocks(self) -> tuple[Filter, ...]:
        """No match blocks."""
        return ()

    def may_match(self, key: IndexKey) -> bool:
        """Return whether requests with that key are such requests."""
        return key.gvk == _KINDS[self.mode]

    def surely_matches(self, key: IndexKey) -> bool:
        """Return a constant: the key alone decides equality."""
        return self.may_match(key)

    def names_operation(self, operation: str) -> bool:
        """Authorization requests have no operation to list."""
        return False

    def mismatch(self, request: Request, resource: Resource) -> str | None:
        """Return in words why the request is not matched, or None when it is."""
        if request.gvk == _KINDS[self.mode]:
            return None
        return f"the policy judges authorization requests (evaluation mode {self.mode}) only"
