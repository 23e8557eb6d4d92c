"""The `x509_decode` function; see `certificate`, which is imported when the function is first called.

This module must never import the cryptography itself: it takes longer to load than all other functions together.
"""

from __future__ import annotations

from typing import Final

from pyverno.errors import EvaluationError
from pyverno.kube.json import JSON
from pyverno.lang.jmespath.cost import Cost
from pyverno.lang.jmespath.function import OBJECT, STRING, function
from pyverno.lang.runtime import Runtime

__all__ = ["FUNCTIONS"]


@function(
    "x509_decode",
    STRING,
    returns=OBJECT,
    cost=Cost(per_step=4, most=262_144, copies=True),
    note="shows an X.509 certificate or request in PEM as an object",
)
def x509_decode(_runtime: Runtime, pem: str) -> JSON:
    """Show the first PEM block, a certificate or certificate request with an RSA key, under Go's field names.

    Byte fields are base64, a large serial number loses precision. Combine it with `base64_decode` for Secrets.

    >>> x509_decode('no PEM')
    error: failed to decode PEM block
    """
    from pyverno.lang.x509.certificate import decode

    try:
        return decode(pem)
    except EvaluationError as error:
        raise EvaluationError(error.message, detailed=error.detailed) from None  # the cause may quote the certificate


FUNCTIONS: Final = (x509_decode,)
