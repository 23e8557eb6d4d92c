"""Records what the evaluation of one object reads, in a host around the real one.

An object whose evaluation reads nothing need not be evaluated again before it or its policies change. One that reads
ConfigMaps is evaluated again when they change, one that reads anything else at each interval.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyverno.cluster.forwardinghost import ForwardingHost
from pyverno.engine.host import HttpCall, Read, Reader
from pyverno.kube.apipath import ApiPath
from pyverno.kube.json import JSON, JSONObject

if TYPE_CHECKING:
    from pyverno.engine.imagesource import ImageSource
    from pyverno.lang.cel.host import AuthorizationCheck, Decision

__all__ = ["ConfigMapKey", "NotingHost"]

ConfigMapKey = tuple[str, str]
"""Namespace and name."""


class NotingHost(ForwardingHost):
    """Forwards every call; `config_maps` are those that were read, `reads_host` is true after any other call.

    >>> from pyverno.engine.host import NO_HOST
    >>> NotingHost(NO_HOST).reads_host
    False
    """

    # of the class, because each evaluation has a host of its own and most read nothing
    config_maps: frozenset[ConfigMapKey] = frozenset()
    reads_host = False

    def now(self) -> int:
        """Return the wall clock."""
        self.reads_host = True
        return super().now()

    def random_bits(self, bits: int) -> int:
        """Return random bits."""
        self.reads_host = True
        return super().random_bits(bits)

    def lookup_host(self, name: str) -> tuple[str, ...]:
        """Return the addresses of a host name."""
        self.reads_host = True
        return super().lookup_host(name)

    @property
    def image_source(self) -> ImageSource:
        """The source of images from registries."""
        self.reads_host = True
        return super().image_source

    def require_read(self, reader: Reader, read: Read) -> None:
        """Check a read for the author of a namespaced policy, whose permissions may change."""
        self.reads_host = True  # guard: a scan follows the permissions of authors
        super().require_read(reader, read)

    def api_call(self, path: ApiPath, *, method: str, body: JSON) -> JSON:
        """Call the API server."""
        self.reads_host = True
        return super().api_call(path, method=method, body=body)

    def http_call(self, call: HttpCall) -> JSON:
        """Call a service."""
        self.reads_host = True
        return super().http_call(call)

    def http_exchange(self, call: HttpCall) -> tuple[int, bytes]:
        """Call a service and return status and body."""
        self.reads_host = True
        return super().http_exchange(call)

    def config_map(self, namespace: str, name: str) -> JSONObject:
        """Return a ConfigMap."""
        self.config_maps |= {(namespace, name)}
        return super().config_map(namespace, name)

    def image_data(self, image: str, *, credentials: JSONObject | None) -> JSONObject:
        """Return the data of an image."""
        self.reads_host = True
        return super().image_data(image, credentials=credentials)

    def global_entry(self, name: str) -> JSON:
        """Return the data of a GlobalContextEntry."""
        self.reads_host = True
        return super().global_entry(name)

    def get_object(
        self, api_version: str, kind: str, namespace: str, name: str, *, subresource: str = ""
    ) -> JSONObject | None:
        """Return one object."""
        self.reads_host = True
        return super().get_object(api_version, kind, namespace, name, subresource=subresource)

    def list_objects(
        self, api_version: str, kind: str, namespace: str, selector: JSONObject | None
    ) -> tuple[JSONObject, ...]:
        """Return the objects that a label selector selects."""
        self.reads_host = True
        return super().list_objects(api_version, kind, namespace, selector)

    def authorize(self, check: AuthorizationCheck) -> Decision:
        """Answer a question about a user."""
        self.reads_host = True
        return super().authorize(check)
