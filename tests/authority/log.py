"""A transparency log as Rekor is one: entries with a promise, a proof of inclusion and a signed checkpoint."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from tests.authority.certificates import public_der

__all__ = ["Entry", "Log", "b64"]

_NAME = "log.example.com"
_ORIGIN = f"{_NAME} - 1193050959916656506"
"""The first line of a checkpoint; its tree number is how verifiers recognise version 1 of Rekor."""


def b64(data: bytes) -> str:
    """Return base64 text."""
    return base64.b64encode(data).decode()


@dataclass(frozen=True)
class Entry:
    """An entry of a log, in the form of a bundle and in that of an annotation."""

    bundled: dict[str, Any]
    legacy: str


@dataclass
class Log:
    """A log whose every answer has two entries: a foreign one and the added one."""

    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    @property
    def id(self) -> bytes:
        """The hash of the log's key."""
        return hashlib.sha256(public_der(self.key)).digest()

    def sign(self, data: bytes) -> bytes:
        """Sign as the log."""
        return self.key.sign(data, ec.ECDSA(hashes.SHA256()))

    def hashed_record(self, signed: bytes, signature: bytes, signer_pem: str, time: int) -> Entry:
        """Add an entry about a signature over some bytes."""
        spec = {
            "data": {"hash": {"algorithm": "sha256", "value": hashlib.sha256(signed).hexdigest()}},
            "signature": {"content": b64(signature), "publicKey": {"content": b64(signer_pem.encode())}},
        }
        return self._add("hashedrekord", "0.0.1", spec, time)

    def envelope(self, envelope: bytes, payload: bytes, signature: bytes, signer_pem: str, time: int) -> Entry:
        """Add an entry about a DSSE envelope."""
        spec = {
            "envelopeHash": {"algorithm": "sha256", "value": hashlib.sha256(envelope).hexdigest()},
            "payloadHash": {"algorithm": "sha256", "value": hashlib.sha256(payload).hexdigest()},
            "signatures": [{"signature": b64(signature), "verifier": b64(signer_pem.encode())}],
        }
        return self._add("dsse", "0.0.1", spec, time)

    def _add(self, kind: str, version: str, spec: dict[str, Any], time: int) -> Entry:
        listed = {"apiVersion": version, "kind": kind, "spec": spec}
        body = json.dumps(listed, sort_keys=True, separators=(",", ":")).encode()
        promise_of = {"body": b64(body), "integratedTime": time, "logID": self.id.hex(), "logIndex": 1}
        promise = self.sign(json.dumps(promise_of, sort_keys=True, separators=(",", ":")).encode())
        sibling = hashlib.sha256(b"\x00foreign").digest()
        leaf = hashlib.sha256(b"\x00" + body).digest()
        root = hashlib.sha256(b"\x01" + sibling + leaf).digest()
        note = f"{_ORIGIN}\n2\n{b64(root)}\n"
        checkpoint = f"{note}\n\u2014 {_NAME} {b64(self.id[:4] + self.sign(note.encode()))}\n"
        bundled = {
            "logIndex": "1",
            "logId": {"keyId": b64(self.id)},
            "kindVersion": {"kind": kind, "version": version},
            "integratedTime": str(time),
            "inclusionPromise": {"signedEntryTimestamp": b64(promise)},
            "inclusionProof": {
                "logIndex": "1",
                "rootHash": b64(root),
                "treeSize": "2",
                "hashes": [b64(sibling)],
                "checkpoint": {"envelope": checkpoint},
            },
            "canonicalizedBody": b64(body),
        }
        legacy = json.dumps({"SignedEntryTimestamp": b64(promise), "Payload": promise_of})
        return Entry(bundled, legacy)
