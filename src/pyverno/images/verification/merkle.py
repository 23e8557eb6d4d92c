"""Inclusion in a transparency log: Merkle proofs (RFC 6962) and signed checkpoints (signed notes)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from pyverno.errors import VerificationError
from pyverno.images.verification.keys import PublicKey
from pyverno.images.verification.strictjson import decode_base64
from pyverno.value import dataclass

__all__ = ["Checkpoint", "leaf_hash", "read_checkpoint", "root_of"]

_HASH_BYTES = 32
_MAX_PROOF = 64
_MAX_NOTE = 65_536
_MAX_SIGNERS = 64
_HINT_BYTES = 4
_DASH = "\u2014 "


def leaf_hash(body: bytes) -> bytes:
    """Return the hash of a log entry as a leaf of the tree."""
    return hashlib.sha256(b"\x00" + body).digest()


def root_of(leaf: bytes, index: int, size: int, proof: Sequence[bytes]) -> bytes:
    """Return the root that an inclusion proof leads to; raises VerificationError when it does not fit the tree.

    >>> leaf = leaf_hash(b"entry")
    >>> root_of(leaf, 0, 1, ()) == leaf
    True
    """
    if not 0 <= index < size or len(proof) > _MAX_PROOF or any(len(each) != _HASH_BYTES for each in proof):
        raise VerificationError("the inclusion proof does not fit the size of the log")
    found, node, last, left = leaf, index, size - 1, list(reversed(proof))
    while last > 0:
        if node % 2 or node < last:
            if not left:
                raise VerificationError("the inclusion proof is too short")
            sibling = left.pop()
            found = _parent(sibling, found) if node % 2 else _parent(found, sibling)
        node, last = node // 2, last // 2
    if left:
        raise VerificationError("the inclusion proof is too long")
    return found


def _parent(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The signed head of a log: its name, size and root, the signed text and the signatures (hint, signature)."""

    origin: str
    size: int
    root: bytes
    signed: bytes
    signatures: tuple[tuple[bytes, bytes], ...]

    def check(self, keys: Iterable[tuple[bytes, PublicKey]]) -> None:
        """Raise VerificationError unless one of the keys, each with its hint, signed the checkpoint.

        Of several signatures with the same hint only the first counts, as in signed notes.
        """
        first: dict[bytes, bytes] = {}
        for hint, signature in self.signatures:
            first.setdefault(hint, signature)
        for hint, key in keys:
            if hint in first and _holds(key, first[hint], self.signed):
                return
        raise VerificationError("the checkpoint is not signed by the log")


def read_checkpoint(text: str) -> Checkpoint:
    """Read a signed note; raises VerificationError."""
    head, blank, tail = text.partition("\n\n")
    lines = head.split("\n")
    *signers, rest = tail.split("\n")
    is_note = blank and not rest and signers and all(signers)
    if len(text) > _MAX_NOTE or not is_note or len(lines) < 3 or len(signers) > _MAX_SIGNERS:
        raise VerificationError("the checkpoint is not a signed note")
    origin, size, root = lines[:3]
    if not size.isascii() or not size.isdigit() or len(size) > 19:
        raise VerificationError("the size in the checkpoint is no number")
    signatures = tuple(_signature(line) for line in signers)
    return Checkpoint(origin, int(size), decode_base64(root, "the root"), f"{head}\n".encode(), signatures)


def _signature(line: str) -> tuple[bytes, bytes]:
    name, _, encoded = line.removeprefix(_DASH).rpartition(" ")
    if not line.startswith(_DASH) or not name or any(map(str.isspace, name)):
        raise VerificationError("the checkpoint has a line that is no signature")
    found = decode_base64(encoded, "the signature of the checkpoint")
    return found[:_HINT_BYTES], found[_HINT_BYTES:]


def _holds(key: PublicKey, signature: bytes, signed: bytes) -> bool:
    try:
        key.check(signature, signed)
    except VerificationError:
        return False
    return True
