"""Checks the files of a release against its provenance: `python -m scripts.release.verify FOLDER --key PUBLIC`.

The signature of `provenance.dsse.json` is verified with the public key of the project, and every file that the
statement names is compared with its digest. Nothing in the folder is trusted before: not the other copy of the
statement, and not `SHA256SUMS`, which a person who replaces a file can write anew.
"""

from __future__ import annotations

import argparse
import json
import sys
from base64 import b64decode
from binascii import Error as Base64Error
from hashlib import sha256
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from scripts.release.provenance import TYPE, encoded

__all__ = ["main", "problems"]

_ENVELOPE = "provenance.dsse.json"
_UNNAMED = {_ENVELOPE, "provenance.intoto.json", "SHA256SUMS"}
"""Files that are written after the statement."""


def problems(folder: Path, key: bytes, revision: str = "") -> list[str]:
    """Return what is wrong with a release, empty if nothing is.

    `key` is the public key of the project (PEM). With a revision, the statement must name this commit.
    """
    try:
        statement = _statement((folder / _ENVELOPE).read_bytes(), key)
        named = {each["name"]: each["digest"]["sha256"] for each in statement["subject"]}
        built_from = statement["predicate"]["buildDefinition"]["externalParameters"]["revision"]
    except FileNotFoundError:
        return [f"{_ENVELOPE} is missing: this release is not signed"]
    except InvalidSignature:
        return [f"{_ENVELOPE} is not signed by this key"]
    except (ValueError, KeyError, TypeError, AttributeError, Base64Error) as error:
        return [f"{_ENVELOPE} cannot be read: {type(error).__name__}"]
    found = {path.name: sha256(path.read_bytes()).hexdigest() for path in folder.iterdir() if path.is_file()}
    wrong = [f"{name} is missing" for name in sorted(named.keys() - found.keys())]
    wrong += [f"{name} is not of this release" for name in sorted(found.keys() - named.keys() - _UNNAMED)]
    wrong += [f"{name} was changed" for name in sorted(named) if found.get(name, named[name]) != named[name]]
    if revision and revision != built_from:
        wrong.append(f"the release was made from {built_from}, not from {revision}")
    return wrong


def _statement(envelope: bytes, key: bytes) -> Any:
    """Return the statement of an envelope; raises InvalidSignature unless the key signed it."""
    public = load_pem_public_key(key)
    if not isinstance(public, EllipticCurvePublicKey):
        raise SystemExit("the key of a release is an ECDSA key")
    read = json.loads(envelope)
    payload = b64decode(read["payload"], validate=True)
    if read["payloadType"] != TYPE:
        raise ValueError("not an in-toto statement")
    for each in read["signatures"]:
        try:
            public.verify(b64decode(each["sig"], validate=True), encoded(payload), ECDSA(hashes.SHA256()))
        except InvalidSignature:
            continue
        return json.loads(payload)
    raise InvalidSignature


def main() -> int:
    """Check a release as the arguments say; returns 1 if something is wrong."""
    parser = argparse.ArgumentParser(description="Check the files of a release against its signed provenance.")
    parser.add_argument("folder", type=Path, help="folder with the files of the release")
    parser.add_argument("--key", type=Path, required=True, help="public key of the project (PEM)")
    parser.add_argument("--revision", default="", help="commit that the release must be made from")
    given = parser.parse_args()
    wrong = problems(given.folder, given.key.read_bytes(), given.revision)
    for each in wrong:
        print(f"{given.folder}: {each}", file=sys.stderr)
    print("not verified" if wrong else "verified: every file is what the signed provenance names")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
