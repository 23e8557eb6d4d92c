"""A host that caches answers, so that the objects of one run share their reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import orjson

from pyverno.cluster.forwardinghost import ForwardingHost
from pyverno.engine.host import Host, HttpCall
from pyverno.kube.apipath import ApiPath
from pyverno.kube.json import JSON, JSONObject

__all__ = ["RememberingHost"]

_MAX_ANSWERS: Final = 256
T = TypeVar("T")


class RememberingHost(ForwardingHost):
    """Caches the answers of another host as long as it lives; errors are not cached.

    The clock, randomness and the authorizer are not cached. It belongs to one thread at a time.
    """

    def __init__(self, host: Host) -> None:
        """Take the host to ask."""
        super().__init__(host)
        self._answers: dict[tuple[object, ...], object] = {}

    def _once(self, key: tuple[object, ...], ask: Callable[[], T]) -> T:
        if key in self._answers:
            return self._answers[key]  # type: ignore[return-value]  # the same key has the same question
        answer = ask()
        if len(self._answers) < _MAX_ANSWERS:
            self._answers[key] = answer
        return answer

    def lookup_host(self, name: str) -> tuple[str, ...]:
        """Return the addresses of a host name."""
        return self._once(("lookup", name), lambda: self._host.lookup_host(name))

    def api_call(self, path: ApiPath, *, method: str, body: JSON) -> JSON:
        """Send a canonical request to the API server."""
        key = ("api", method, str(path.path), tuple(path.query), orjson.dumps(body))
        return self._once(key, lambda: self._host.api_call(path, method=method, body=body))

    def http_call(self, call: HttpCall) -> JSON:
        """Call a service and return the JSON of its answer."""
        return self._once(("call", *_key(call)), lambda: self._host.http_call(call))

    def http_exchange(self, call: HttpCall) -> tuple[int, bytes]:
        """Call a service and return status and body."""
        return self._once(("exchange", *_key(call)), lambda: self._host.http_exchange(call))

    def config_map(self, namespace: str, name: str) -> JSONObject:
        """Return a ConfigMap."""
        return self._once(("map", namespace, name), lambda: self._host.config_map(namespace, name))

    def image_data(self, image: str, *, credentials: JSONObject | None) -> JSONObject:
        """Return a registry's data about an image."""
        key = ("image", image, orjson.dumps(credentials))
        return self._once(key, lambda: self._host.image_data(image, credentials=credentials))

    def get_object(
        self, api_version: str, kind: str, namespace: str, name: str, *, subresource: str = ""
    ) -> JSONObject | None:
        """Return an object, None for a missing one."""
        key = ("get", api_version, kind, namespace, name, subresource)
        return self._once(
            key, lambda: self._host.get_object(api_version, kind, namespace, name, subresource=subresource)
        )

    def list_objects(
        self, api_version: str, kind: str, namespace: str, selector: JSONObject | None
    ) -> tuple[JSONObject, ...]:
        """Return the objects that a label selector selects."""
        key = ("list", api_version, kind, namespace, orjson.dumps(selector, option=orjson.OPT_SORT_KEYS))
        return self._once(key, lambda: self._host.list_objects(api_version, kind, namespace, selector))


def _key(call: HttpCall) -> tuple[object, ...]:
    headers = tuple(sorted(call.headers.items()))
    return call.method, call.url, headers, orjson.dumps(call.body), call.ca_bundle
