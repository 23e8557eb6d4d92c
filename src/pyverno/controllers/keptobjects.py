"""Deleted objects that UpdateRequests need: each is in a Secret of the same name, owned by the request.

The Secret is in the namespace of the controllers and goes with its request. Whoever may write UpdateRequests, but no
Secrets, cannot make one up: type, owner and contents must fit the request.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import Final

import orjson

from pyverno.cluster.client import Client
from pyverno.engine.origin import uid_of
from pyverno.engine.result import ResourceRef
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.status import StatusError
from pyverno.policy.updaterequest import KEPT_TYPE

# trust rows: kept-object

__all__ = ["keep", "read_kept", "secret_of"]

SECRETS: Final = GVR("", "v1", "secrets")
_KEY: Final = "object"
_MAX_BYTES: Final = 16 << 20
_EXISTS: Final = "AlreadyExists"
_NOT_FOUND: Final = 404


def secret_of(request: JSONObject, kept: bytes) -> JSONObject:
    """Return the Secret of a stored UpdateRequest; `kept` is the object as compressed JSON."""
    metadata = request["metadata"]
    owner = {"apiVersion": "kyverno.io/v2", "kind": "UpdateRequest", "name": metadata["name"], "uid": metadata["uid"]}
    owners = [owner]  # guard: a kept object goes with its request
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": KEPT_TYPE,
        "immutable": True,
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"], "ownerReferences": owners},
        "data": {_KEY: base64.b64encode(kept).decode()},
    }


async def keep(client: Client, request: JSONObject, kept: bytes) -> None:
    """Store the deleted object of a stored UpdateRequest; raises HostError, StatusError."""
    body = secret_of(request, kept)
    try:
        await client.create(SECRETS, body, body["metadata"]["namespace"])
    except StatusError as error:
        if error.reason != _EXISTS:  # guard: keeping twice is keeping once
            raise


async def read_kept(client: Client, request: JSONObject, reference: JSON) -> JSONObject | None:
    """Return the deleted object of an UpdateRequest, None where none is stored that fits.

    `reference` is what the request says of the object. Raises HostError, StatusError.
    """
    metadata = request["metadata"]
    try:
        secret = await client.get(SECRETS, metadata["name"], metadata.get("namespace") or "")
    except StatusError as error:
        if error.status != _NOT_FOUND:
            raise
        return None
    owners = [each.get("uid") for each in secret["metadata"].get("ownerReferences") or ()]
    if secret.get("type") != KEPT_TYPE or owners != [metadata.get("uid")]:  # guard: a kept object is of its request
        return None
    found = _unpack((secret.get("data") or {}).get(_KEY))
    is_same = (uid_of(found), ResourceRef.of(found)) == (uid_of(reference), ResourceRef.of(reference))
    return found if isinstance(found, dict) and is_same else None


def _unpack(text: JSON) -> JSON:
    """Return the object in a Secret, None where it cannot be read."""
    try:
        reader = zlib.decompressobj()
        raw = reader.decompress(base64.b64decode(text if isinstance(text, str) else "", validate=True), _MAX_BYTES)
        found: JSON = orjson.loads(raw) if reader.eof else None
    except (binascii.Error, zlib.error, orjson.JSONDecodeError):
        return None
    return found
