"""The signed manifest in the annotations of an object: `message`, `signature`, `certificate`, `bundle`.

The message is unpacked under a limit. An archive may hold plain files only, because its author is not trusted.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from typing import Final

from pyverno.errors import DocumentError, VerificationError
from pyverno.images.verification.certificates import Certificate, read_certificate
from pyverno.images.verification.logentry import LogEntry, read_legacy_entry
from pyverno.images.verification.payloads import Payload
from pyverno.images.verification.signature import Signature
from pyverno.images.verification.strictjson import decode_base64
from pyverno.kube.json import JSONObject
from pyverno.kube.meter import UNMETERED, Meter
from pyverno.kube.yaml.documents import load_documents
from pyverno.value import dataclass

__all__ = ["DEFAULT_DOMAIN", "MANIFEST", "SignedManifest", "read_signed_manifest"]

DEFAULT_DOMAIN: Final = "cosign.sigstore.dev"
"""The prefix of the annotations, unless a rule names another one."""

MANIFEST: Final = "signed manifest"
"""The type of a signed manifest, which has no predicate type."""

_MAX_BYTES: Final = 2 * 1024 * 1024
"""The limit for all unpacked bytes: five kilobytes can unpack to thousands of times their size."""

_BYTES_PER_STEP: Final = 2
"""YAML of many small values takes about a microsecond for each byte."""

_MAX_FILES: Final = 100
_MAX_DOCUMENTS: Final = 100
_MAX_SIGNATURES: Final = 20
_GZIP: Final = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class SignedManifest:
    """The documents that were signed, the digest (`sha256:…`) of the signed bytes, and the signatures over them."""

    documents: tuple[JSONObject, ...]
    digest: str
    signatures: tuple[Signature, ...]


def read_signed_manifest(
    annotations: Mapping[str, str], domain: str = DEFAULT_DOMAIN, *, meter: Meter = UNMETERED
) -> SignedManifest | None:
    """Return the signed manifest of an object, None without a message; raises VerificationError if it is unreadable.

    Unpacked bytes are charged before they are parsed.
    """
    packed = annotations.get(f"{domain}/message")
    if not packed:
        return None
    unpacking = _Unpacking(meter)
    signed = unpacking.unpack(packed, "the signed message")
    digest = f"sha256:{hashlib.sha256(signed).hexdigest()}"
    payload = Payload((digest,), MANIFEST, {})
    signatures = tuple(
        Signature(signed, raw, payload, certificate, log_entries=entries, annotations=dict(annotations))
        for raw, certificate, entries in _signatures(annotations, domain, unpacking)
    )
    return SignedManifest(tuple(_documents(signed, unpacking)), digest, signatures)


def _signatures(
    annotations: Mapping[str, str], domain: str, unpacking: _Unpacking
) -> Iterator[tuple[bytes, Certificate | None, tuple[LogEntry, ...]]]:
    for number in range(_MAX_SIGNATURES):
        suffix = f"_{number}" if number else ""
        text = annotations.get(f"{domain}/signature{suffix}")
        if not text:
            continue
        certificate = annotations.get(f"{domain}/certificate{suffix}")
        bundle = annotations.get(f"{domain}/bundle{suffix}")
        entry = unpacking.unpack(bundle, "the log entry") if bundle else b""
        try:
            entries = (read_legacy_entry(entry.decode()),) if entry else ()
        except UnicodeDecodeError:
            raise VerificationError("the log entry is no text") from None
        yield (
            decode_base64(text, "the signature"),
            read_certificate(unpacking.unpack(certificate, "the certificate")) if certificate else None,
            entries,
        )


class _Unpacking:
    """Unpacks the parts of one object under a common limit, and charges them to a meter."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._left = _MAX_BYTES

    def unpack(self, text: str, what: str) -> bytes:
        """Return the unpacked bytes of a compressed annotation."""
        return self.inflate(decode_base64(text, what), what)

    def inflate(self, data: bytes, what: str) -> bytes:
        """Return the bytes of one gzip stream."""
        reader = zlib.decompressobj(wbits=31)
        try:
            found = reader.decompress(data, self._left + 1)
        except zlib.error:
            raise VerificationError(f"{what} is not compressed with gzip") from None
        if len(found) > self._left:
            raise VerificationError(f"{what} exceeds {_MAX_BYTES} bytes for all that is unpacked")
        if not reader.eof or reader.unused_data:
            raise VerificationError(f"{what} is not exactly one gzip stream")
        self._left -= len(found)
        self._meter.charge_steps(len(found) // _BYTES_PER_STEP)
        return found


def _documents(signed: bytes, unpacking: _Unpacking) -> Iterator[JSONObject]:
    texts = _files(unpacking.inflate(signed, "the archive")) if signed.startswith(_GZIP) else iter((signed,))
    count = 0
    for text in texts:
        try:
            documents = load_documents(text, file="the signed manifest")
        except DocumentError as error:
            raise VerificationError(error.message) from None
        for each in documents:
            count += 1
            if count > _MAX_DOCUMENTS:
                raise VerificationError(f"the signed manifest has more than {_MAX_DOCUMENTS} documents")
            if isinstance(each.value, dict):
                yield each.value


def _files(archive: bytes) -> Iterator[bytes]:
    """Yield the plain files of a tar archive; their names are ignored."""
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as opened:
            for position, member in enumerate(opened):
                if position >= _MAX_FILES:
                    raise VerificationError(f"the archive has more than {_MAX_FILES} files")
                if member.isdir():
                    continue
                file = opened.extractfile(member) if member.type in tarfile.REGULAR_TYPES else None
                if file is None or member.issparse() or member.size > len(archive):
                    raise VerificationError("the archive holds something else than plain files")
                yield file.read()
    except (tarfile.TarError, ValueError, OSError, EOFError, OverflowError):
        raise VerificationError("the archive cannot be read") from None
