"""Time stamps of a time stamp authority (RFC 3161) over the bytes of a signature."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from cryptography.x509.oid import ExtendedKeyUsageOID

from pyverno.errors import VerificationError
from pyverno.images.verification.certificates import Certificate, read_certificate
from pyverno.images.verification.chain import check_chain
from pyverno.images.verification.trust import Authority

if TYPE_CHECKING:
    from rfc3161_client import SignerInfo

__all__ = ["MAX_TIMESTAMPS", "check_timestamp", "verify_timestamp"]

MAX_TIMESTAMPS: Final = 32
_MAX_BYTES: Final = 65_536


def check_timestamp(token: bytes, signature: bytes, authorities: Sequence[Authority]) -> int:
    """Return the time in a token over a signature, in seconds since 1970; raises VerificationError."""
    return verify_timestamp(token, signature, authorities)[0]


def verify_timestamp(
    token: bytes, signature: bytes, authorities: Sequence[Authority]
) -> tuple[int, tuple[Certificate, ...]]:
    """Return the time in a token over a signature, and the chain of the stamp's signer; raises VerificationError.

    The authority must have been in use then, and its certificates valid.
    """
    from rfc3161_client import VerificationError as TokenError  # loaded by the few that check time stamps
    from rfc3161_client import VerifierBuilder, decode_timestamp_response

    if len(token) > _MAX_BYTES:
        raise VerificationError(f"the time stamp is larger than {_MAX_BYTES} bytes")
    try:
        response = decode_timestamp_response(token)
        embedded = tuple(read_certificate(bytes(each)) for each in response.signed_data.certificates)
        time = int(response.tst_info.gen_time.timestamp())
    except (ValueError, TypeError, AttributeError):
        raise VerificationError("the time stamp cannot be read") from None
    problem = "there is no trusted time stamp authority"
    for authority in authorities:
        if not authority.is_valid_at(time):
            problem = "the time stamp authority was not in use then"
            continue
        leaf, *rest = authority.chain
        builder = VerifierBuilder()
        roots = [each for each in authority.chain if each.is_self_issued] or [authority.chain[-1]]
        if leaf not in roots:
            builder = builder.tsa_certificate(leaf.x509)
        for each in rest:
            builder = (
                builder.add_root_certificate(each.x509)
                if each in roots
                else builder.add_intermediate_certificate(each.x509)
            )
        if leaf in roots:
            builder = builder.add_root_certificate(leaf.x509)
        try:
            builder.build().verify_message(response, signature)
            signer = leaf if leaf not in roots else _signer(response.signed_data.signer_infos, embedded)
            chain = check_chain(signer, (*rest, *embedded), roots, time, ExtendedKeyUsageOID.TIME_STAMPING)
            return time, chain
        except (TokenError, ValueError):
            problem = "the time stamp is not one of this authority over this signature"
        except VerificationError as error:
            problem = f"the time stamp authority: {error.message}"
    raise VerificationError(problem)


def _signer(infos: Iterable[SignerInfo], embedded: Sequence[Certificate]) -> Certificate:
    """Return the certificate that the token names as its signer's; further ones that it holds prove nothing."""
    named = {(each.issuer, each.serial_number) for each in infos}
    found = {each for each in embedded if (each.x509.issuer, each.x509.serial_number) in named}
    if len(found) != 1:
        raise VerificationError("the time stamp does not hold the one certificate of its signer")
    return found.pop()
