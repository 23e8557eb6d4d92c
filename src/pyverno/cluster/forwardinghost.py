"""A host that passes every call on to another one: the base of hosts that record, limit or cache the reads of rules.

A subclass overrides what it changes. A host that must let no call through, such as that of reviews on the event loop,
does not derive from it and defines each call itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyverno.engine.host import AuthorizingHost, Host, HttpCall, NamespacedHttpHost, Read, Reader
from pyverno.errors import EvaluationError
from pyverno.kube.apipath import ApiPath
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import KindTable

if TYPE_CHECKING:
    from pyverno.engine.imagesource import ImageSource
    from pyverno.engine.imageverification.recordkeys import RecordKeys

    # CEL is imported only where a policy is written in it
    from pyverno.lang.cel.host import AuthorizationCheck, Decision

__all__ = ["ForwardingHost"]


class ForwardingHost:
    """Answers as the host that it wraps.

    >>> from pyverno.engine.host import NO_HOST
    >>> ForwardingHost(NO_HOST).config_map("default", "settings")
    Traceback (most recent call last):
    pyverno.errors.HostUnavailableError: no cluster is available to read ConfigMap `default/settings`
    """

    def __init__(self, host: Host) -> None:
        """Take the host that answers."""
        self._host = host

    @property
    def allows_http_in_namespaces(self) -> bool:
        """Return whether expressions of namespaced policies may call services."""
        return isinstance(self._host, NamespacedHttpHost) and self._host.allows_http_in_namespaces

    def now(self) -> int:
        """Return the clock in nanoseconds."""
        return self._host.now()

    def random_bits(self, bits: int) -> int:
        """Return random bits."""
        return self._host.random_bits(bits)

    def lookup_host(self, name: str) -> tuple[str, ...]:
        """Return the addresses of a host name."""
        return self._host.lookup_host(name)

    @property
    def kinds(self) -> KindTable:
        """The kinds that the cluster serves."""
        return self._host.kinds

    @property
    def image_source(self) -> ImageSource:
        """The source of images from registries."""
        return self._host.image_source

    @property
    def record_keys(self) -> RecordKeys:
        """The keys that seal records of verified images."""
        return self._host.record_keys

    def require_read(self, reader: Reader, read: Read) -> None:
        """Raise EvaluationError unless the author of a namespaced policy may read something."""
        self._host.require_read(reader, read)  # guard: no host around another loses the check

    def api_call(self, path: ApiPath, *, method: str, body: JSON) -> JSON:
        """Send a canonical request to the API server."""
        return self._host.api_call(path, method=method, body=body)

    def http_call(self, call: HttpCall) -> JSON:
        """Call a service and return the JSON of its answer."""
        return self._host.http_call(call)

    def http_exchange(self, call: HttpCall) -> tuple[int, bytes]:
        """Call a service and return status and body."""
        return self._host.http_exchange(call)

    def config_map(self, namespace: str, name: str) -> JSONObject:
        """Return a ConfigMap."""
        return self._host.config_map(namespace, name)

    def image_data(self, image: str, *, credentials: JSONObject | None) -> JSONObject:
        """Return the data of an image."""
        return self._host.image_data(image, credentials=credentials)

    def global_entry(self, name: str) -> JSON:
        """Return the data of a GlobalContextEntry."""
        return self._host.global_entry(name)

    def get_object(
        self, api_version: str, kind: str, namespace: str, name: str, *, subresource: str = ""
    ) -> JSONObject | None:
        """Return an object, None for a missing one."""
        return self._host.get_object(api_version, kind, namespace, name, subresource=subresource)

    def list_objects(
        self, api_version: str, kind: str, namespace: str, selector: JSONObject | None
    ) -> tuple[JSONObject, ...]:
        """Return the objects that a label selector selects."""
        return self._host.list_objects(api_version, kind, namespace, selector)

    def authorize(self, check: AuthorizationCheck) -> Decision:
        """Check the permissions of a user; raises EvaluationError if the wrapped host cannot."""
        if not isinstance(self._host, AuthorizingHost):
            raise EvaluationError("no authorizer is available here: the evaluation has no user")
        return self._host.authorize(check)

    @property
    def supplies_variables(self) -> bool:
        """Return whether the user supplied variables."""
        return self._host.supplies_variables

    def recorded_variables(self, policy: str, rule: str, resource: str) -> Mapping[str, JSON]:
        """Return variables that the user supplied."""
        return self._host.recorded_variables(policy, rule, resource)
