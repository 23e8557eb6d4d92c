"""The CA certificate of an OpenTelemetry collector, read from a Secret."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from typing import Final

from pyverno.cluster.access import Access
from pyverno.cluster.client import Client
from pyverno.errors import HostError
from pyverno.kube.gvk import GVR
from pyverno.kube.status import StatusError

__all__ = ["collector_authority"]

_SECRETS: Final = GVR("", "v1", "secrets")
_KEYS: Final = ("ca.pem", "ca.crt")
"""Keys of the Secret that may hold the certificate; the first is Kyverno's."""


def collector_authority(access: Access, name: str, namespace: str) -> Callable[[], Awaitable[bytes | None]]:
    """Return a function that reads the certificate (PEM); it returns None without a name, and raises HostError."""

    async def read() -> bytes | None:
        if not name:
            return None
        async with Client(access) as client:
            try:
                data = (await client.get(_SECRETS, name, namespace)).get("data") or {}
            except StatusError as error:
                raise HostError(f"the Secret `{name}` of a collector cannot be read: {error.message}") from None
        found = next((data[key] for key in _KEYS if data.get(key)), None)
        if found is None:
            raise HostError(f"the Secret `{name}` of a collector has no key `{_KEYS[0]}`")
        return base64.b64decode(found)

    return read
