"""Certificates as JMESPath and CEL show them."""

from datetime import datetime
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from pyverno.compiler.cel.environment import environment_of_kind
from pyverno.errors import BudgetExceededError
from pyverno.lang.cel.types import DYN
from pyverno.lang.jmespath import compile_expression
from pyverno.lang.runtime import Runtime
from pyverno.lang.x509.certificate import MAX_PEM, decode

NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test.example")])


def in_cel(pem: str) -> Any:
    """Return what `x509.decode` of CEL shows."""
    environment = environment_of_kind("ValidatingPolicy").with_variables({"pem": DYN})
    return environment.compile("x509.decode(pem)").evaluate({"pem": pem})


def test_both_languages_show_the_same_certificate() -> None:
    """CEL leaves out fields, and its numbers are doubles."""
    key = rsa.generate_private_key(65537, 2048)
    builder = x509.CertificateBuilder(NAME, NAME, key.public_key(), 7)
    builder = builder.not_valid_before(datetime(2020, 1, 1)).not_valid_after(datetime(2055, 1, 1))
    pem = builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()
    shown = compile_expression("x509_decode(@)").evaluate(pem, Runtime())
    found = in_cel(pem)
    assert decode(pem) == shown
    assert {name: shown[name] for name in found} == found
    assert (7.0, "2055-01-01T00:00:00Z") == (found["SerialNumber"], found["NotAfter"])
    assert "Subject" not in found


def test_long_texts_are_refused() -> None:
    """In CEL as in JMESPath."""
    text = " " * (MAX_PEM + 1)
    with pytest.raises(BudgetExceededError, match="takes no more than"):
        in_cel(text)
    with pytest.raises(BudgetExceededError, match="takes no more than"):
        compile_expression("x509_decode(@)").evaluate(text, Runtime())
