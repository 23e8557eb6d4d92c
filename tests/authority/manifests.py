"""Signs manifests as k8s-manifest-sigstore does: the manifest and its signatures go into annotations."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import yaml

from tests.authority.log import b64
from tests.authority.signing import Signer

__all__ = ["sign_manifest"]


def sign_manifest(
    manifest: dict[str, Any],
    *signers: Signer,
    domain: str = "cosign.sigstore.dev",
    others: Sequence[dict[str, Any]] = (),
    is_archive: bool = False,
    is_logged: bool = False,
) -> dict[str, Any]:
    """Return a manifest with its signatures; `others` are documents that are signed together with it."""
    signed = yaml.safe_dump_all([manifest, *others]).encode()
    if is_archive:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
            member = tarfile.TarInfo("manifest.yaml")
            member.size = len(signed)
            archive.addfile(member, io.BytesIO(signed))
        signed = buffer.getvalue()
    found = {f"{domain}/message": _pack(signed)}
    for number, signer in enumerate(signers):
        suffix = f"_{number}" if number else ""
        signature = signer.sign(signed)
        found[f"{domain}/signature{suffix}"] = b64(signature)
        if signer.leaf is not None:
            found[f"{domain}/certificate{suffix}"] = _pack(signer.leaf.pem.encode())
        if is_logged:
            pem = signer.leaf.pem if signer.leaf is not None else signer.public_pem
            entry = signer.services.log.hashed_record(signed, signature, pem, signer.services.now + 60)
            found[f"{domain}/bundle{suffix}"] = _pack(entry.legacy.encode())
    result = deepcopy(manifest)
    result["metadata"].setdefault("annotations", {}).update(found)
    return result


def _pack(data: bytes) -> str:
    return b64(gzip.compress(data, mtime=0))
