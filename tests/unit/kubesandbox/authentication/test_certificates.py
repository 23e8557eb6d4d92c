"""Certificates and kubeconfigs."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubesandbox.authentication.certificates import SERVER_HOSTS, Authority, CertificateError, KeyPair, kubeconfig

NOW = datetime.now(UTC)


def request_for(name: str) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    return x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, SHA256()).public_bytes(Encoding.PEM)


def test_client_and_server_trust_each_other_by_the_authority(tmp_path):
    """A TLS connection with our leaf and our client certificate gives the server the user's name and groups."""
    authority = Authority.make("ca", now=NOW)
    leaf = authority.issue("kube-apiserver", hosts=SERVER_HOSTS, now=NOW)
    admin = authority.issue("jane", organizations=["dev", "ops"], now=NOW)
    (tmp_path / "ca.pem").write_bytes(authority.certificate)
    for name, pair in (("leaf", leaf), ("admin", admin)):
        (tmp_path / f"{name}.pem").write_bytes(pair.certificate + pair.key)
    server_context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=tmp_path / "ca.pem")
    server_context.load_cert_chain(tmp_path / "leaf.pem")
    server_context.verify_mode = ssl.CERT_REQUIRED
    client_context = ssl.create_default_context(cafile=tmp_path / "ca.pem")
    client_context.load_cert_chain(tmp_path / "admin.pem")

    async def talk():
        seen = asyncio.get_running_loop().create_future()

        async def serve(_reader, writer):
            seen.set_result(writer.get_extra_info("peercert"))
            writer.close()
            await writer.wait_closed()

        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server_context)
        port = server.sockets[0].getsockname()[1]
        async with server:
            _, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=client_context, server_hostname="localhost"
            )
            certificate = await seen
            writer.close()
            await writer.wait_closed()
            return certificate

    subject = [pair for relative in asyncio.run(talk())["subject"] for pair in relative]
    assert [("organizationName", "dev"), ("organizationName", "ops"), ("commonName", "jane")] == subject


def test_an_authority_is_the_same_after_reading_it_back():
    """The original authority verifies certificates that its copy, read from PEM, has issued."""
    authority = Authority.make("ca", now=NOW)
    again = Authority(KeyPair(authority.pair.certificate, authority.pair.key))
    leaf = x509.load_pem_x509_certificate(again.issue("web", hosts=["web"], now=NOW).certificate)
    leaf.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.certificate))


def test_signing_requests_get_the_usages_they_ask_for():
    """A certificate keeps the subject, lifetime and usages of its request."""
    authority = Authority.make("ca", now=NOW)
    signed = authority.sign(
        request_for("system:node:a"),
        now=NOW,
        lifetime=timedelta(hours=1),
        usages=["digital signature", "client auth"],
    )
    certificate = x509.load_pem_x509_certificate(signed)
    usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert [ExtendedKeyUsageOID.CLIENT_AUTH] == list(usages)
    assert "CN=system:node:a" == certificate.subject.rfc4514_string()
    assert (NOW + timedelta(hours=1)).replace(microsecond=0) == certificate.not_valid_after_utc


@pytest.mark.parametrize("request_pem", [b"", b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END"])
def test_a_broken_signing_request_is_refused(request_pem):
    """Bytes that are no signing request raise CertificateError."""
    authority = Authority.make("ca", now=NOW)
    with pytest.raises(CertificateError, match="cannot be read"):
        authority.sign(request_pem, now=NOW, lifetime=timedelta(hours=1), usages=[])


def test_a_broken_key_is_refused():
    """An authority is not made of what is no key."""
    authority = Authority.make("ca", now=NOW)
    with pytest.raises(CertificateError, match="private key cannot be read"):
        Authority(KeyPair(authority.certificate, b"nothing"))


def test_kubeconfig_names_the_client_certificate():
    """The kubeconfig holds server, authority and client in base64."""
    document = kubeconfig("https://127.0.0.1:1", b"ca", client=KeyPair(b"cert", b"key"), name="me")
    assert {"server": "https://127.0.0.1:1", "certificate-authority-data": "Y2E="} == document["clusters"][0]["cluster"]
    assert {"client-certificate-data": "Y2VydA==", "client-key-data": "a2V5"} == document["users"][0]["user"]
    assert "me" == document["current-context"]
