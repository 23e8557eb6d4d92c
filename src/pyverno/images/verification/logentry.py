"""Entries of a Rekor log, version 1 and 2: proofs that the log holds them, and that they belong to a signature.

An entry counts only when the log signed it and its body names the same signature, the same key or certificate and the
same digest as what is verified: an entry for something else proves nothing (CVE-2022-23649).
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from typing import Final

from pyverno.errors import VerificationError
from pyverno.images.verification.certificates import Certificate, read_certificate
from pyverno.images.verification.keys import PublicKey, format_pem, read_key
from pyverno.images.verification.merkle import leaf_hash, read_checkpoint, root_of
from pyverno.images.verification.strictjson import decode_base64, encode_text, read_object, text_of
from pyverno.images.verification.trust import TransparencyLog
from pyverno.kube.json import JSON, JSONObject
from pyverno.lazyregex import regex
from pyverno.value import dataclass

__all__ = ["InclusionProof", "LogEntry", "Logged", "check_entry", "read_legacy_entry", "read_log_entry"]

_MAX_HASHES: Final = 64
_CANONICAL: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_NUMBER: Final = regex("-?[0-9]{1,18}")
_ALGORITHMS: Final = {"SHA2_256": "sha256", "SHA2_384": "sha384", "SHA2_512": "sha512"}
"""Digest algorithms as version 2 of the log names them."""


@dataclass(frozen=True, slots=True)
class InclusionProof:
    """The inclusion proof of an entry: its index, the tree's size and root, the path, the signed checkpoint."""

    index: int
    size: int
    root: bytes
    hashes: tuple[bytes, ...]
    checkpoint: str


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One entry as a bundle carries it; `integrated_time` is in seconds since 1970, 0 when the log gives none."""

    log_id: str
    index: int
    kind: str
    version: str
    body: bytes
    integrated_time: int = 0
    promise: bytes = b""
    proof: InclusionProof | None = None


@dataclass(frozen=True, slots=True)
class Logged:
    """The subject that an entry must have: the signed bytes, the signature, and its key or certificate.

    `payload` is the payload of a DSSE envelope, and `envelope` the stored envelope, if any.
    """

    signed: bytes
    signature: bytes
    signer: PublicKey | Certificate
    payload: bytes | None = None
    envelope: bytes | None = None


def read_log_entry(body: JSONObject) -> LogEntry:
    """Read an item of `tlogEntries` of a bundle; raises VerificationError."""
    what = "the log entry"
    kind_version = _object(body, "kindVersion", what)
    log_id = decode_base64(_object(body, "logId", what).get("keyId"), "the id of the log").hex()
    promise = body.get("inclusionPromise")
    signed = promise.get("signedEntryTimestamp") if isinstance(promise, dict) else None
    return LogEntry(
        log_id,
        _number(body.get("logIndex", 0), what),
        text_of(kind_version, "kind", what),
        text_of(kind_version, "version", what),
        decode_base64(body.get("canonicalizedBody"), "the body of the log entry"),
        _number(body.get("integratedTime", 0), what),
        decode_base64(signed, "the promise of the log") if signed else b"",
        _proof(body.get("inclusionProof")),
    )


def read_legacy_entry(text: str) -> LogEntry:
    """Read the annotation that holds a log entry beside a legacy signature; raises VerificationError."""
    what = "the log entry"
    outer = read_object(encode_text(text, what), what)
    payload = _object(outer, "Payload", what)
    body = decode_base64(payload.get("body"), "the body of the log entry")
    inner = read_object(body, "the body of the log entry")
    return LogEntry(
        text_of(payload, "logID", what),
        _number(payload.get("logIndex"), what),
        text_of(inner, "kind", what),
        text_of(inner, "apiVersion", what),
        body,
        _number(payload.get("integratedTime"), what),
        decode_base64(outer.get("SignedEntryTimestamp"), "the promise of the log"),
    )


def check_entry(entry: LogEntry, logs: Sequence[TransparencyLog], about: Logged, times: Sequence[int]) -> int:
    """Return when the entry was made, in seconds since 1970 (0: not in the log).

    An entry may prove no time; then its log must have been in use at all of `times`: the time stamps of the signature,
    or the present. Raises VerificationError unless one of the logs holds the entry, at a time of its validity, and the
    entry has the verified subject.
    """
    log = next((each for each in logs if each.id == entry.log_id), None)
    if log is None:
        raise VerificationError("the entry is of a log that is not trusted")
    if not entry.promise and entry.proof is None:
        raise VerificationError("the entry has neither a promise nor a proof of the log")
    if entry.promise:
        log.key.check(entry.promise, _promised(entry), what="the promise of the log")
    if entry.proof is not None:
        _check_proof(entry, entry.proof, log)
    # a time counts only where the log signed it: a proof without a promise does not prove a time
    time = entry.integrated_time if entry.promise else 0
    # a log that was given up may be in other hands by now: without a time of its own it must be valid at the others
    if not all(log.is_valid_at(each) for each in ((time,) if time else times)):  # guard: a log without a time is valid
        raise VerificationError("the log was not in use when the entry was made")
    _check_body(entry, about)
    return time


def _promised(entry: LogEntry) -> bytes:
    fields = {
        "body": base64.b64encode(entry.body).decode(),
        "integratedTime": entry.integrated_time,
        "logID": entry.log_id,
        "logIndex": entry.index,
    }
    return _CANONICAL.encode(fields).encode()


def _check_proof(entry: LogEntry, proof: InclusionProof, log: TransparencyLog) -> None:
    root = root_of(leaf_hash(entry.body), proof.index, proof.size, proof.hashes)
    checkpoint = read_checkpoint(proof.checkpoint)
    if root != proof.root or checkpoint.root != root or checkpoint.size != proof.size:
        raise VerificationError("the inclusion proof does not lead to the checkpoint")
    checkpoint.check([(hint, log.key) for hint in log.hints(checkpoint.origin)])


# ------------------------------------------------------------------------------------------ the subject of an entry


def _check_body(entry: LogEntry, about: Logged) -> None:
    what = "the body of the log entry"
    body = read_object(entry.body, what)
    if body.get("kind") != entry.kind or body.get("apiVersion") != entry.version:
        raise VerificationError(f"{what} is of another kind than the entry says")
    spec = _object(body, "spec", what)
    match entry.kind, entry.version:
        case "hashedrekord", "0.0.1":
            _check_hashed(spec, about)
        case "hashedrekord", "0.0.2":
            _check_hashed_v2(_object(spec, "hashedRekordV002", what), about)
        case "dsse", "0.0.1":
            _check_dsse(spec, about)
        case "intoto", "0.0.1":
            _check_first_in_toto(spec, about)
        case "intoto", "0.0.2":
            _check_in_toto(spec, about)
        case kind, version:
            raise VerificationError(f"{what} is of the kind `{kind[:40]}` `{version[:20]}`, which is not supported")


def _check_hashed(spec: JSONObject, about: Logged) -> None:
    what = "the body of the log entry"
    digest = _object(_object(spec, "data", what), "hash", what)
    signature = _object(spec, "signature", what)
    signer = decode_base64(_object(signature, "publicKey", what).get("content"), "the key in the log entry")
    _same_digest(text_of(digest, "algorithm", what), bytes.fromhex(_hex(digest.get("value"))), about)
    _same_signature(signature.get("content"), about)
    _same_signer(signer, about)


def _check_hashed_v2(spec: JSONObject, about: Logged) -> None:
    what = "the body of the log entry"
    data, signature = _object(spec, "data", what), _object(spec, "signature", what)
    verifier = _object(signature, "verifier", what)
    signer = next((verifier[key] for key in ("x509Certificate", "publicKey") if key in verifier), None)
    raw = decode_base64(signer.get("rawBytes") if isinstance(signer, dict) else None, "the key in the log entry")
    _same_digest(
        _ALGORITHMS.get(text_of(data, "algorithm", what), ""),
        decode_base64(data.get("digest"), "the digest in the log entry"),
        about,
    )
    _same_signature(signature.get("content"), about)
    _same_signer(raw, about)


def _check_dsse(spec: JSONObject, about: Logged) -> None:
    _same_hash(spec, "payloadHash", about.payload)
    signature = _only_signature(spec)
    _same_signature(signature.get("signature"), about)
    _same_signer(decode_base64(signature.get("verifier"), "the key in the log entry"), about)


def _check_in_toto(spec: JSONObject, about: Logged) -> None:
    what = "the body of the log entry"
    content = _object(spec, "content", what)
    _same_hash(content, "payloadHash", about.payload)
    signature = _only_signature(_object(content, "envelope", what))
    # the signature is base64 of base64 there
    inner = decode_base64(signature.get("sig"), "the signature in the log entry")
    _same_signature(inner.decode("ascii", "replace"), about)
    _same_signer(decode_base64(signature.get("publicKey"), "the key in the log entry"), about)


def _check_first_in_toto(spec: JSONObject, about: Logged) -> None:
    """Check a body that names no signature: the hash of the whole envelope binds it."""
    _same_hash(_object(spec, "content", "the body of the log entry"), "hash", about.envelope)
    _same_signer(decode_base64(spec.get("publicKey"), "the key in the log entry"), about)


def _only_signature(source: JSONObject) -> JSONObject:
    found = source.get("signatures")
    if not isinstance(found, list) or len(found) != 1 or not isinstance(found[0], dict):
        raise VerificationError("the body of the log entry must have exactly one signature")
    return found[0]


def _same_hash(source: JSONObject, key: str, expected: bytes | None) -> None:
    what = "the body of the log entry"
    digest = _object(source, key, what)
    if expected is None:
        raise VerificationError("the log entry is for an envelope, the signature is not")
    if text_of(digest, "algorithm", what) != "sha256":
        raise VerificationError(f"{what} has a digest of another algorithm than sha256")
    if bytes.fromhex(_hex(digest.get("value"))) != hashlib.sha256(expected).digest():
        raise VerificationError("the log entry is for another payload")


def _same_digest(algorithm: str, digest: bytes, about: Logged) -> None:
    if algorithm not in ("sha256", "sha384", "sha512"):
        raise VerificationError("the log entry has a digest of an algorithm that is not supported")
    if hashlib.new(algorithm, about.signed).digest() != digest:
        raise VerificationError("the log entry is for other bytes")


def _same_signature(encoded: JSON, about: Logged) -> None:
    if decode_base64(encoded, "the signature in the log entry") != about.signature:
        raise VerificationError("the log entry is for another signature")


def _same_signer(raw: bytes, about: Logged) -> None:
    label = "PUBLIC KEY" if isinstance(about.signer, PublicKey) else "CERTIFICATE"
    if raw == format_pem(label, about.signer.der):
        return  # logs write exactly this body, so comparing texts needs no parser
    if isinstance(about.signer, PublicKey):
        found = read_key(raw, "the key in the log entry").der
        expected = about.signer.der
    else:
        found = read_certificate(raw, "the certificate in the log entry").der
        expected = about.signer.der
    if found != expected:
        raise VerificationError("the log entry is for another key")


# ------------------------------------------------------------------------------------------------------------ fields


def _proof(body: JSON) -> InclusionProof | None:
    if not isinstance(body, dict):
        return None
    what = "the inclusion proof"
    hashes = body.get("hashes") or []
    if not isinstance(hashes, list) or len(hashes) > _MAX_HASHES:
        raise VerificationError(f"{what} has more than {_MAX_HASHES} hashes")
    return InclusionProof(
        _number(body.get("logIndex", 0), what),
        _number(body.get("treeSize", 0), what),
        decode_base64(body.get("rootHash"), "the root of the log"),
        tuple(decode_base64(each, "a hash of the inclusion proof") for each in hashes),
        text_of(_object(body, "checkpoint", what), "envelope", what),
    )


def _number(value: JSON, what: str) -> int:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise VerificationError(f"{what} has an invalid number")


def _hex(value: JSON) -> str:
    if not isinstance(value, str) or len(value) % 2 or any(char not in "0123456789abcdef" for char in value):
        raise VerificationError("the log entry has a digest that is no hexadecimal number")
    return value


def _object(source: JSONObject, key: str, what: str) -> JSONObject:
    found = source.get(key)
    if not isinstance(found, dict):
        raise VerificationError(f"{what} has no object `{key}`")
    return found
