"""B19: verification of images, beside the arithmetic that it cannot do without."""

from __future__ import annotations

import json

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from pyverno.engine.imageverification.passes import PassCache, PassKey
from pyverno.images.verification.attestors import Attestor, Identity, exact
from pyverno.images.verification.payloads import IMAGE_SIGNATURE
from pyverno.images.verification.signature import read_bundle
from pyverno.images.verification.trust import read_trust_root
from pyverno.images.verification.verify import Expected, verify
from tests.authority.signing import SigningServices
from tests.bench.measure import compare

__all__ = ["bundle_ratio", "kept_microseconds"]

_DIGEST = "sha256:" + "ab" * 32
_SIGNATURES = 6
"""Signatures of a logged bundle: its own, the certificate's and its issuer's, and those of the certificate log, of the
log's promise and of its checkpoint."""
_MICROSECONDS = 1e6


def bundle_ratio() -> float:
    """B19: a keyless bundle from its bytes to a verdict, by as many bare signatures as there are in it."""
    services = SigningServices()
    root = read_trust_root(services.trusted_root())
    signer = services.keyless("dev@example.com")
    raw = json.dumps(signer.bundle(_DIGEST)).encode()
    attestor = Attestor(
        ".keyless",
        authorities=root.authorities,
        identities=(Identity((exact("dev@example.com"),), (exact("https://accounts.example.com"),)),),
        logs=root.logs,
        certificate_logs=root.certificate_logs,
    )
    expected = Expected(_DIGEST, IMAGE_SIGNATURE, services.now + 10**6)
    assert verify(attestor, read_bundle(raw), expected).ledger.passes
    public, algorithm = signer.key.public_key(), ec.ECDSA(hashes.SHA256())
    signature = signer.sign(raw)

    def bare() -> None:
        for _ in range(_SIGNATURES):
            public.verify(signature, raw, algorithm)

    return compare(lambda: verify(attestor, read_bundle(raw), expected), bare).ratio


def kept_microseconds() -> float:
    """B19: a verdict that is kept, looked up among as many as there may be."""
    cache, trust, now = PassCache(), object(), 1_700_000_000 * 10**9
    for index in range(1000):
        cache.add(PassKey("registry.example.com/app", f"sha256:{index:064x}", "0" * 64), trust, now)
    wanted = f"sha256:{500:064x}"

    def look() -> bool:
        return cache.has(PassKey("registry.example.com/app", wanted, "0" * 64), trust, now + 1)

    assert look()
    return compare(look, lambda: None).measured * _MICROSECONDS
