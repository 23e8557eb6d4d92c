"""The narrow protocol through which Kyverno's and the authorizer's libraries reach a cluster, HTTP and registries.

The engine passes an implementation to every evaluation. The implementation confines calls (namespaced policies, egress,
permissions) and counts them; a library never does. Its errors are HostErrors, whose texts reach the policy author.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from pyverno.errors import HostUnavailableError
from pyverno.kube.json import JSON, JSONObject

__all__ = ["NO_CEL_HOST", "AuthorizationCheck", "CelHost", "Decision"]


class AuthorizationCheck:
    """One question to the authorizer: a path, or a resource with its selectors, and a verb."""

    __slots__ = ("attributes", "service_account", "verb")

    def __init__(self, attributes: Mapping[str, str], verb: str, service_account: tuple[str, str] | None) -> None:
        self.attributes = dict(attributes)
        self.verb = verb
        self.service_account = service_account


class Decision:
    """The answer of the authorizer."""

    __slots__ = ("allowed", "error", "reason")

    def __init__(self, *, allowed: bool, reason: str = "", error: str = "") -> None:
        self.allowed = allowed
        self.reason = reason
        self.error = error


class CelHost(Protocol):
    """Implements the calls of the libraries `resource`, `http`, `globalContext`, `image`, `generator`, `authorizer`."""

    def get_resource(self, api_version: str, resource: str, namespace: str | None, name: str) -> JSONObject | None:
        """Return an object, or None when it does not exist; `resource` is `plural` or `plural/subresource`.

        `namespace` None means the policy's own namespace (in a namespaced policy); empty means no namespace.
        """
        ...

    def list_resources(
        self, api_version: str, resource: str, namespace: str | None, labels: Mapping[str, str]
    ) -> JSONObject:
        """Return a list object with its items."""
        ...

    def post_resource(self, api_version: str, resource: str, namespace: str | None, body: JSONObject) -> JSONObject:
        """Create an object and return the answer."""
        ...

    def to_gvr(self, api_version: str, kind: str) -> tuple[str, str, str]:
        """Return (group, version, plural) of a kind."""
        ...

    def http(self, method: str, url: str, body: JSON, headers: Mapping[str, str], ca_bundle: str) -> tuple[int, bytes]:
        """Send a request and return status code and body; an HTTP error status is an answer, not an error."""
        ...

    def global_context(self, name: str, projection: str) -> JSON:
        """Return the data of a global context entry, or None when there is no such entry."""
        ...

    def image_metadata(self, reference: str) -> JSONObject:
        """Return a registry's data about an image."""
        ...

    def generate(self, namespace: str | None, objects: list[JSONObject]) -> None:
        """Ask for objects to be generated."""
        ...

    def authorize(self, check: AuthorizationCheck) -> Decision:
        """Answer an authorization question."""
        ...

    def verify_image(self, image: str, attestors: list[JSON], attestation: str | None) -> int:
        """Return how many attestors verify the image's signature, or an attestation of it."""
        ...

    def image_payload(self, image: str, attestation: JSON) -> JSON:
        """Return the payload of an attestation."""
        ...


class _NoCelHost:
    """Answers every question with HostUnavailableError."""

    def get_resource(self, api_version: str, resource: str, namespace: str | None, name: str) -> JSONObject | None:
        raise HostUnavailableError("no cluster is available here")

    def list_resources(
        self, api_version: str, resource: str, namespace: str | None, labels: Mapping[str, str]
    ) -> JSONObject:
        raise HostUnavailableError("no cluster is available here")

    def post_resource(self, api_version: str, resource: str, namespace: str | None, body: JSONObject) -> JSONObject:
        raise HostUnavailableError("no cluster is available here")

    def to_gvr(self, api_version: str, kind: str) -> tuple[str, str, str]:
        raise HostUnavailableError("no cluster is available here")

    def http(self, method: str, url: str, body: JSON, headers: Mapping[str, str], ca_bundle: str) -> tuple[int, bytes]:
        raise HostUnavailableError("HTTP calls are not available here")

    def global_context(self, name: str, projection: str) -> JSON:
        raise HostUnavailableError("global context entries are not available here")

    def image_metadata(self, reference: str) -> JSONObject:
        raise HostUnavailableError("no image registry is available here")

    def generate(self, namespace: str | None, objects: list[JSONObject]) -> None:
        raise HostUnavailableError("objects cannot be generated here")

    def authorize(self, check: AuthorizationCheck) -> Decision:
        raise HostUnavailableError("no authorizer is available here")

    def verify_image(self, image: str, attestors: list[JSON], attestation: str | None) -> int:
        raise HostUnavailableError("image signatures cannot be verified here")

    def image_payload(self, image: str, attestation: JSON) -> JSON:
        raise HostUnavailableError("image attestations are not available here")


NO_CEL_HOST: Final[CelHost] = _NoCelHost()
