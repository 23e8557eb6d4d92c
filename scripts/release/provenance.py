"""How the files of a release were made, as an in-toto statement with SLSA provenance, and its signature."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

__all__ = ["TYPE", "encoded", "signed", "statement"]

TYPE = "application/vnd.in-toto+json"


def statement(files: Mapping[str, bytes], revision: str, materials: Mapping[str, bytes]) -> str:
    """Return the statement: the files by digest, the revision of the sources, and the lock files that were used."""
    body = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": sha256(files[name]).hexdigest()}} for name in sorted(files)],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "urn:pyverno:release:v1",
                "externalParameters": {"revision": revision},
                "resolvedDependencies": [
                    {"name": name, "digest": {"sha256": sha256(materials[name]).hexdigest()}}
                    for name in sorted(materials)
                ],
            },
            "runDetails": {"builder": {"id": "urn:pyverno:release:by-hand"}},
        },
    }
    return json.dumps(body, separators=(",", ":"))


def signed(text: str, key: bytes) -> str:
    """Return a statement in a DSSE envelope, signed with an ECDSA key (PEM, without a password).

    Raises SystemExit for another key.
    """
    private = load_pem_private_key(key, password=None)
    if not isinstance(private, EllipticCurvePrivateKey):
        raise SystemExit("the key of the release must be an ECDSA key")
    payload = text.encode()
    public = private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    value = private.sign(encoded(payload), ECDSA(hashes.SHA256()))
    signature = {"keyid": sha256(public).hexdigest(), "sig": b64encode(value).decode()}
    return json.dumps({"payloadType": TYPE, "payload": b64encode(payload).decode(), "signatures": [signature]})


def encoded(payload: bytes) -> bytes:
    """Return what a signature in a DSSE envelope is made of: the type and the payload with their lengths."""
    return b"DSSEv1 %d %b %d %b" % (len(TYPE), TYPE.encode(), len(payload), payload)
