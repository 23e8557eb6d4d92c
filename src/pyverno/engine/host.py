"""The protocol through which rules read a cluster, HTTP services and registries.

Adapters implement `Host` (a cluster, files and recorded answers, a sandbox). Missing abilities raise
HostUnavailableError; no implementation may invent an answer. Confinement of policies to their namespace happens in
`broker`, before a host is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from pyverno.errors import HostUnavailableError
from pyverno.kube.apipath import ApiPath
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS, KindTable
from pyverno.lang.runtime import NO_EXPRESSION_HOST, ExpressionHost
from pyverno.value import dataclass, field

if TYPE_CHECKING:
    from pyverno.engine.imagesource import ImageSource
    from pyverno.engine.imageverification.recordkeys import RecordKeys

    # CEL is imported only where a policy is written in it
    from pyverno.lang.cel.host import AuthorizationCheck, Decision

__all__ = ["NO_HOST", "AuthorizingHost", "Host", "HttpCall", "NamespacedHttpHost", "NoHost", "Read", "Reader"]


@dataclass(frozen=True, slots=True)
class HttpCall:
    """A request to an HTTP service outside the API server: method, URL, headers, JSON body, CA bundle (PEM text).

    `deadline` (monotonic seconds) is when the calling review must be over; None for no limit.
    """

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: JSON = None
    ca_bundle: str = ""
    deadline: float | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Read:
    """What a policy of a namespace reads there, as the API server sees it; without a `name` all objects of a kind.

    `resource` is empty for a kind that the cluster does not serve.
    """

    verb: str
    group: str
    resource: str
    subresource: str = ""
    name: str = ""


class Reader(Protocol):
    """The policy that reads: its identity, and its annotations, which name its author."""

    @property
    def api_version(self) -> str:
        """Group and version of its kind."""
        ...

    @property
    def kind(self) -> str:
        """Its kind."""
        ...

    @property
    def namespace(self) -> str:
        """Its namespace."""
        ...

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def annotations(self) -> Mapping[str, str]:
        """Its annotations."""
        ...


class Host(ExpressionHost, Protocol):
    """Answers the reads of rules. Every method raises HostError subclasses only."""

    def api_call(self, path: ApiPath, *, method: str, body: JSON) -> JSON:
        """Send a canonical request to the API server and return the decoded JSON answer."""
        ...

    def http_call(self, call: HttpCall) -> JSON:
        """Call an HTTP service and return the decoded JSON answer; a status outside 200-299 is a HostError."""
        ...

    def http_exchange(self, call: HttpCall) -> tuple[int, bytes]:
        """Call an HTTP service and return status code and body, whatever the status."""
        ...

    @property
    def kinds(self) -> KindTable:
        """The kinds of the cluster."""
        ...

    def require_read(self, reader: Reader, read: Read) -> None:
        """Raise EvaluationError unless the author of a namespaced policy may read something; without authors return."""
        ...

    def config_map(self, namespace: str, name: str) -> JSONObject:
        """Return a ConfigMap object."""
        ...

    @property
    def image_source(self) -> ImageSource:
        """Registry contents: digests, signatures, and the trust root."""
        ...

    @property
    def record_keys(self) -> RecordKeys:
        """The keys that seal records of verified images; none where no installation has made any."""
        ...

    def image_data(self, image: str, *, credentials: JSONObject | None) -> JSONObject:
        """Return image, resolvedImage, registry, repository, identifier, manifest, manifestList and configData."""
        ...

    def global_entry(self, name: str) -> JSON:
        """Return the data of a GlobalContextEntry (`entry` or `entry.projection`)."""
        ...

    def get_object(
        self, api_version: str, kind: str, namespace: str, name: str, *, subresource: str = ""
    ) -> JSONObject | None:
        """Return one object, or what its subresource holds; None when it does not exist."""
        ...

    def list_objects(
        self, api_version: str, kind: str, namespace: str, selector: JSONObject | None
    ) -> tuple[JSONObject, ...]:
        """Return the objects of a kind ("" = all namespaces) that a label selector selects (None = all)."""
        ...

    @property
    def supplies_variables(self) -> bool:
        """Return whether the user supplied variables."""
        ...

    def recorded_variables(self, policy: str, rule: str, resource: str) -> Mapping[str, JSON]:
        """Return variables that a person supplied for this policy, rule and resource (values files)."""
        ...


@runtime_checkable
class AuthorizingHost(Protocol):
    """A host that can also check authorization, as the API server itself can."""

    def authorize(self, check: AuthorizationCheck) -> Decision:
        """Answer a question about the user of the request, or about the service account that it names."""
        ...


@runtime_checkable
class NamespacedHttpHost(Protocol):
    """A host that also knows whether policies of a namespace may call services by HTTP."""

    @property
    def allows_http_in_namespaces(self) -> bool:
        """Return whether expressions of namespaced policies may call services."""
        ...


class NoHost:
    """A host without a cluster, for library calls without a Host.

    >>> NO_HOST.config_map("default", "settings")
    Traceback (most recent call last):
    pyverno.errors.HostUnavailableError: no cluster is available to read ConfigMap `default/settings`
    """

    def now(self) -> int:
        """Raise HostUnavailableError."""
        return NO_EXPRESSION_HOST.now()

    def random_bits(self, bits: int) -> int:
        """Raise HostUnavailableError."""
        return NO_EXPRESSION_HOST.random_bits(bits)

    def lookup_host(self, name: str) -> tuple[str, ...]:
        """Raise HostUnavailableError."""
        return NO_EXPRESSION_HOST.lookup_host(name)

    def api_call(self, path: ApiPath, *, method: str, body: JSON) -> JSON:
        """Raise HostUnavailableError."""
        raise HostUnavailableError(f"no cluster is available to call `{method} {path}`")

    def http_call(self, call: HttpCall) -> JSON:
        """Raise HostUnavailableError."""
        raise HostUnavailableError(f"no network is available to call `{call.method} {call.url}`")

    def http_exchange(self, call: HttpCall) -> tuple[int, bytes]:
        """Raise HostUnavailableError."""
        raise HostUnavailableError(f"no network is available to call `{call.method} {call.url}`")

    @property
    def kinds(self) -> KindTable:
        """The kinds that are built into Kubernetes and Kyverno."""
        return BUILTIN_KINDS

    def require_read(self, reader: Reader, read: Read) -> None:
        """Return: there are no authors here."""

    def config_map(self, namespace: str, name: str) -> JSONObject:
        """Raise HostUnavailableError."""
        raise HostUnavailableError(f"no cluster is available to read ConfigMap `{namespace}/{name}`")

    @property
    def image_source(self) -> ImageSource:
        """A source without a registry."""
        from pyverno.engine.imagesource import NO_IMAGES

        return NO_IMAGES

    @property
    def record_keys(self) -> RecordKeys:
        """No keys: no record counts."""
        from pyverno.engine.imageverification.recordkeys import NO_RECORD_KEYS

        return NO_RECORD_KEYS

    def image_data(self, image: str, *, credentials: JSONObject | None) -> JSONObject:
        """Raise HostUnavailableError."""
        raise HostUnavailableError(f"no registry is available to read image `{image}`")

    def global_entry(self, name: str) -> JSON:
        """Raise HostUnavailableError."""
        raise HostUnavailableError(f"no global context is available to read entry `{name}`")

    def get_object(
        self, api_version: str, kind: str, namespace: str, name: str, *, subresource: str = ""
    ) -> JSONObject | None:
        """Raise HostUnavailableError."""
        raise HostUnavailableError(f"no cluster is available to read {kind} `{namespace}/{name}`")

    def list_objects(
        self, api_version: str, kind: str, namespace: str, selector: JSONObject | None
    ) -> tuple[JSONObject, ...]:
        """Raise HostUnavailableError."""
        raise HostUnavailableError(f"no cluster is available to list {kind}")

    @property
    def supplies_variables(self) -> bool:
        """False: there are no supplied variables."""
        return False

    def recorded_variables(self, policy: str, rule: str, resource: str) -> Mapping[str, JSON]:
        """Return nothing: there are no supplied variables."""
        return {}


NO_HOST: Host = NoHost()
