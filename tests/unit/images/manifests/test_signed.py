"""Messages of signed manifests: annotations of untrusted origin are read under limits."""

from __future__ import annotations

import base64
import gzip
import io
import tarfile

import pytest

from pyverno.errors import BudgetExceededError, VerificationError
from pyverno.images.manifests.signed import read_signed_manifest
from pyverno.lang.runtime import Budget


def _packed(data: bytes) -> str:
    return base64.b64encode(gzip.compress(data)).decode()


def _archive(member: tarfile.TarInfo, content: bytes = b"") -> str:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        archive.addfile(member, io.BytesIO(content))
    return _packed(buffer.getvalue())


def _link() -> tarfile.TarInfo:
    found = tarfile.TarInfo("link")
    found.type, found.linkname = tarfile.SYMTYPE, "/etc/passwd"
    return found


BROKEN = {
    "a bomb": (
        _packed(b"\x00" * (5 * 1024 * 1024)),
        "the signed message exceeds 2097152 bytes for all that is unpacked",
    ),
    "a bomb in the archive": (
        _packed(gzip.compress(b"\x00" * (5 * 1024 * 1024))),
        "the archive exceeds 2097152 bytes for all that is unpacked",
    ),
    "two streams": (
        base64.b64encode(gzip.compress(b"a: 1") + gzip.compress(b"a: 2")).decode(),
        "the signed message is not exactly one gzip stream",
    ),
    "a cut stream": (
        base64.b64encode(gzip.compress(b"a: 1")[:-1]).decode(),
        "the signed message is not exactly one gzip stream",
    ),
    "a link": (_archive(_link()), "the archive holds something else than plain files"),
    "no archive": (_packed(gzip.compress(b"text" * 200)), "the archive cannot be read"),
    "no base64": ("%%", "the signed message is not base64"),
    "many documents": (_packed(b"---\na: 1\n" * 101), "the signed manifest has more than 100 documents"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_message_that_cannot_be_read_is_an_error(case: str) -> None:
    """Sizes are bounded, and nothing but plain manifests is read."""
    message, expected = BROKEN[case]
    with pytest.raises(VerificationError) as caught:
        read_signed_manifest({"cosign.sigstore.dev/message": message})
    assert caught.value.message == expected


def test_a_key_twice_in_a_manifest_is_an_error() -> None:
    """The document that was signed is read in one way only."""
    with pytest.raises(VerificationError):
        read_signed_manifest({"cosign.sigstore.dev/message": _packed(b"a: 1\na: 2\n")})


def test_parts_that_are_unpacked_share_a_limit() -> None:
    """Twenty signatures, each with a log entry of megabytes in a few kilobytes, took seconds to read."""
    entry = _packed(b" " * (1 << 20) + b"{}")
    for message, problem in ((b"a: 1\n", "has no object"), (b"#" * (3 << 19), "exceeds 2097152 bytes")):
        annotations = {"message": _packed(message), "signature": "AAAA", "bundle": entry}
        with pytest.raises(VerificationError, match=f"the log entry {problem}"):
            read_signed_manifest({f"cosign.sigstore.dev/{name}": text for name, text in annotations.items()})


def test_what_is_unpacked_is_charged() -> None:
    """Five kilobytes of an annotation became four megabytes of YAML, four seconds of work that no budget counted."""
    text = b"a: [" + b"[]," * 40_000 + b"[]]"
    budget = Budget(steps=50_000)
    with pytest.raises(BudgetExceededError):
        read_signed_manifest({"cosign.sigstore.dev/message": _packed(text)}, meter=budget)
    assert 0 > budget.steps
