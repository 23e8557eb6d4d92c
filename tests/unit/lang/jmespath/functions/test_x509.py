"""Certificates and requests under Go's field names."""

from datetime import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from pyverno.errors import EvaluationError
from tests.unit.lang.jmespath.hosts import evaluate

NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test.example")])
NAMES = x509.SubjectAlternativeName([x509.DNSName("a.example"), x509.UniformResourceIdentifier("spiffe://td/x")])


@pytest.fixture(scope="module")
def key():
    return rsa.generate_private_key(65537, 2048)


def certificate(key, serial=1) -> str:
    builder = x509.CertificateBuilder(NAME, NAME, key.public_key(), serial)
    builder = builder.not_valid_before(datetime(2020, 1, 1)).not_valid_after(datetime(2055, 1, 1))
    builder = builder.add_extension(NAMES, critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3"), b"\x05\x00"), True)
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


def test_a_certificate_is_shown(key):
    """The fields that policies look at."""
    shown = evaluate("x509_decode(@)", "text before\n" + certificate(key, serial=2**100))
    expected = {
        "NotAfter": "2055-01-01T00:00:00Z",
        "IsCA": True,
        "MaxPathLenZero": True,
        "DNSNames": ["a.example"],
        "PublicKeyAlgorithm": 1,
        "SignatureAlgorithm": 4,
        "Version": 3,
        "SerialNumber": float(2**100),
        "UnhandledCriticalExtensions": [[1, 2, 3]],
        "OCSPServer": None,
        "PublicKey": {"N": str(key.public_key().public_numbers().n), "E": 65537},
    }
    assert expected == {name: shown[name] for name in expected}
    assert "test.example" == shown["Subject"]["CommonName"]
    assert ("spiffe", "td", "/x") == tuple(shown["URIs"][0][part] for part in ("Scheme", "Host", "Path"))
    assert {"Id": [1, 2, 3], "Critical": True, "Value": "BQA="} == shown["Extensions"][2]


def test_a_request_is_shown(key):
    """The request is shown with extensions and attributes."""
    builder = x509.CertificateSigningRequestBuilder(NAME).add_extension(NAMES, critical=False)
    shown = evaluate("x509_decode(@)", builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM).decode())
    assert (["a.example"], 0, 4) == (shown["DNSNames"], shown["Version"], shown["SignatureAlgorithm"])
    assert [2, 5, 29, 17] == shown["Extensions"][0]["Id"] == shown["Attributes"][0]["Value"][0][0]["Type"]


def test_other_keys_than_rsa_are_refused():
    """As upstream."""
    with pytest.raises(EvaluationError, match="certificate should use rsa algorithm"):
        evaluate("x509_decode(@)", certificate(ec.generate_private_key(ec.SECP256R1())))


@pytest.mark.parametrize(
    ("pem", "message"),
    [
        ("", "failed to decode PEM block"),
        ("-----BEGIN CERTIFICATE-----\n###\n-----END CERTIFICATE-----\n", "failed to decode PEM block"),
        (
            "-----BEGIN X-----\nAAAA\n-----END X-----\n",
            "PEM block neither contains a CERTIFICATE or CERTIFICATE REQUEST",
        ),
    ],
)
def test_what_is_no_certificate(pem, message):
    """The errors have Kyverno's texts."""
    with pytest.raises(EvaluationError) as caught:
        evaluate("x509_decode(@)", pem)
    assert message == caught.value.detailed


@pytest.mark.parametrize("cut", [1, 2, 5, 50, 300, 600])
def test_a_damaged_certificate_is_a_typed_error(key, cut):
    """A certificate truncated at any byte gives the typed error."""
    lines = certificate(key).splitlines()
    body = "".join(lines[1:-1])[: -cut * 4]
    with pytest.raises(EvaluationError):
        evaluate("x509_decode(@)", f"{lines[0]}\n{body}\n{lines[-1]}\n")
