"""The keys that seal records of verified images: one Secret of the installation, which every replica reads.

The leader makes the Secret and rotates the key in it; the key before stays valid until the next rotation. A replica
that cannot read the Secret has no keys, and verifies anew. Keys must never be logged, nor shown in an error.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from pyverno.cluster.client import Client
from pyverno.controllers.runtime.reconcile import Again, Controller, LoopMetrics, LoopSettings
from pyverno.controllers.runtime.recurring import RecurringFault
from pyverno.controllers.runtime.workqueue import Backoff
from pyverno.engine.imageverification.recordkeys import KEY_BYTES, NO_RECORD_KEYS, RecordKeys
from pyverno.errors import HostError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.status import StatusError

# trust rows: record-keys

__all__ = ["RECORD_KEYS", "ROTATION_SECONDS", "StoredRecordKeys"]

RECORD_KEYS: Final = "kyverno-image-record-keys"
"""The name of the Secret."""

ROTATION_SECONDS: Final = 90 * 24 * 3600
"""A record counts for one to two of these periods; then its image is verified anew when its object is written."""

_SECRETS: Final = GVR("", "v1", "secrets")
_LOOK_SECONDS: Final = 60.0
_FIRST_SECONDS: Final = 1.0
_DAY: Final = 24 * 3600
_KEY: Final = "record-keys"
_NOTHING: Final[tuple[bytes, ...]] = ()

log = logging.getLogger("pyverno.recordkeys")


class StoredRecordKeys:
    """The keys as the Secret held them when it was last read; `follow` reads it once a minute.

    The Secret may be deleted at any time: the leader makes new keys, and images are verified anew.
    """

    def __init__(self, client: Client, namespace: str, clock: Callable[[], float] = time.time) -> None:
        """Take the client, the namespace of the installation, and the clock by which keys are rotated."""
        self._client = client
        self._namespace = namespace
        self._clock = clock
        self.keys: RecordKeys = NO_RECORD_KEYS

    def controller(self, metrics: LoopMetrics) -> Controller[str]:
        """Return the controller that makes and rotates the keys while this replica leads."""
        return Controller(
            "record-key-controller",
            self._keep,
            keys=lambda: (_KEY,),
            settings=LoopSettings(backoff=Backoff(first=1.0, longest=30.0)),
            metrics=metrics,
        )

    async def start(self) -> None:
        """Read the keys, and make them if there are none; a failure is left to `follow`."""
        with suppress(HostError, StatusError):
            await self.reconcile()
        if not self.keys:  # another replica was first
            await self.look()

    async def look(self) -> None:
        """Read the keys once; a failure is left to `follow`."""
        with suppress(HostError, StatusError):
            self.keys = _keys_of((await self._read() or {}).get("data"))

    async def follow(self) -> None:
        """Read the Secret again and again until cancelled; a failure means that no record counts."""
        fault = RecurringFault(
            log,
            "the keys of records cannot be read: images are verified anew, and results of requests are not reported",
            "the keys of records can be read again",
        )
        while True:
            try:
                self.keys = _keys_of((await self._read() or {}).get("data"))
                fault.succeeded()
            except (HostError, StatusError) as error:
                self.keys = NO_RECORD_KEYS
                fault.failed(error.message)
            await asyncio.sleep(_LOOK_SECONDS if self.keys else _FIRST_SECONDS)

    async def reconcile(self) -> None:
        """Make the Secret if it is missing or unusable, and rotate the key when its time has come.

        Of several writers the first one wins. Raises HostError, StatusError.
        """
        found = await self._read()
        data = (found or {}).get("data")
        now = int(self._clock())
        known = _secrets_of(data)
        if known and now - ROTATION_SECONDS < _made(data) <= now + _DAY:
            self.keys = RecordKeys(*known)
            return
        fresh = (secrets.token_bytes(KEY_BYTES), *known[:1])
        try:
            await self._write(found, fresh, now)
        except StatusError as error:
            if error.status != 409:  # another replica was first, and its keys are read with the next look
                raise
            return
        self.keys = RecordKeys(*fresh)
        log.info("a key of image records is made", extra={"fields": {"previous": len(fresh) - 1}})

    async def _keep(self, _key: str) -> Again:
        await self.reconcile()
        return Again(_LOOK_SECONDS)

    async def _read(self) -> JSONObject | None:
        try:
            found: JSONObject = await self._client.get(_SECRETS, RECORD_KEYS, self._namespace)
        except StatusError as error:
            if error.status == 404:
                return None
            raise
        return found

    async def _write(self, found: JSONObject | None, keys: tuple[bytes, ...], now: int) -> None:
        data = {
            name: base64.b64encode(value).decode()
            for name, value in (*zip(("current", "previous"), keys, strict=False), ("made", str(now).encode()))
        }
        if found is not None:
            await self._client.update(_SECRETS, {**found, "data": data}, self._namespace)
            return
        metadata = {
            "name": RECORD_KEYS,
            "namespace": self._namespace,
            "labels": {"app.kubernetes.io/part-of": "kyverno"},
        }
        body = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": data}
        await self._client.create(_SECRETS, body, self._namespace)


def _keys_of(data: JSON) -> RecordKeys:
    return RecordKeys(*_secrets_of(data))


def _secrets_of(data: JSON) -> tuple[bytes, ...]:
    """Return the current key and the previous one; nothing without a usable current key."""
    current, previous = _value(data, "current"), _value(data, "previous")
    if len(current) < KEY_BYTES:
        return _NOTHING
    return (current, previous) if len(previous) >= KEY_BYTES else (current,)


def _made(data: JSON) -> int:
    text = _value(data, "made")
    return int(text) if text.isdigit() and len(text) < 16 else 0


def _value(data: JSON, name: str) -> bytes:
    text = data.get(name) if isinstance(data, dict) else None
    try:
        return base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except (ValueError, binascii.Error):
        return b""
