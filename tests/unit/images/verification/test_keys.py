"""Keys and certificates of any size and depth: what is too long is not read."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest

from pyverno.errors import VerificationError
from pyverno.images.verification.certificates import read_certificate, read_certificates
from pyverno.images.verification.keys import MAX_PEM, format_pem, read_key, read_keys
from pyverno.images.verification.notary.envelope import read_notary
from pyverno.images.verification.timestamps import verify_timestamp
from tests.authority.notary import COSE, JWS
from tests.authority.signing import SigningServices

KEY = SigningServices().keyed().public_pem
LONG = 10 * 1024 * 1024
READERS: dict[str, Callable[[bytes], object]] = {
    "a key": read_key,
    "keys": lambda data: read_keys(data.decode("latin-1")),
    "a certificate": read_certificate,
    "certificates": lambda data: read_certificates(data.decode("latin-1")),
    "a time stamp": lambda data: verify_timestamp(data, b"signature", ()),
    "an envelope in JSON": lambda data: read_notary(data, JWS),
    "an envelope in CBOR": lambda data: read_notary(data, COSE),
}


def _nested(levels: int) -> bytes:
    """Return sequences in sequences, as DER."""
    heads: list[bytes] = []
    for level in range(levels):
        heads.append(b"\x30\x84" + (6 * level).to_bytes(4, "big"))
    return b"".join(reversed(heads))


DEEP = _nested(30_000)
DOCUMENTS = {
    "a long text of PEM": b"-----BEGIN PUBLIC KEY-----\n" + b"A" * LONG,
    "a key before a long text": KEY.encode() + b"\n" * LONG,
    "many beginnings": b"-----BEGIN CERTIFICATE-----\n" * (LONG // 28),
    "many points": b"." * LONG,
    "deep DER": DEEP,
    "deep PEM": format_pem("CERTIFICATE", DEEP),
    "a deep key": format_pem("PUBLIC KEY", DEEP),
    "long DER": b"\x30\x84" + (LONG).to_bytes(4, "big") + bytes(LONG),
}


@pytest.mark.parametrize("document", DOCUMENTS)
@pytest.mark.parametrize("reader", READERS)
def test_what_is_long_or_deep_is_not_read(reader: str, document: str) -> None:
    """An error of ours ends the reading (CVE-2024-12401, CVE-2025-66564, CVE-2025-66506)."""
    with pytest.raises(VerificationError):
        READERS[reader](DOCUMENTS[document])


@pytest.mark.parametrize("reader", ["a key", "keys", "a certificate", "certificates", "a time stamp"])
def test_what_is_long_is_refused_by_its_length(reader: str) -> None:
    """Nothing is split, searched or decoded before its length is known (CVE-2025-66564, CVE-2025-66506)."""
    with pytest.raises(VerificationError, match=r"(longer|larger) than \d+ (bytes|characters)"):
        READERS[reader](b"." * LONG)


def test_a_key_has_a_length() -> None:
    """The limit holds for PEM and DER, before anything is decoded (CVE-2024-12401)."""
    der = base64.b64decode("".join(KEY.splitlines()[1:-1]))
    for each in (KEY.encode(), der):
        assert read_key(each).der == der
    for each in (KEY.encode() + b"\n" * MAX_PEM, der + bytes(MAX_PEM)):
        with pytest.raises(VerificationError, match="the public key is longer than 262144 bytes"):
            read_key(each)
