"""Certificates of the webhook: created, renewed, and trusted across renewals."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from kubesandbox import Sandbox
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.certificates.secrets import (
    SECRETS,
    CertificateController,
    CertificateSettings,
    KeyPair,
    is_good_leaf,
    make_authority,
    make_leaf,
    read_pair,
    renewed_bundle,
)
from pyverno.errors import HostError
from pyverno.kube.json import JSONObject

NOW = datetime(2026, 11, 22, tzinfo=UTC)
SETTINGS = CertificateSettings()


@pytest.mark.parametrize("algorithm", ["ECDSA", "RSA", "Ed25519"])
def test_a_leaf_is_trusted_by_its_authority(algorithm: str) -> None:
    """Every key type works; the names are those of the service."""
    settings = CertificateSettings(algorithm=algorithm, server="127.0.0.1:9443")
    authority = make_authority(algorithm, NOW)
    leaf = make_leaf(authority, settings, NOW)
    [certificate] = leaf.parsed()
    assert is_good_leaf(leaf, authority, settings, NOW)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert ["kyverno-svc", "kyverno-svc.kyverno", "kyverno-svc.kyverno.svc"] == names.get_values_for_type(x509.DNSName)
    assert ["127.0.0.1"] == [str(each) for each in names.get_values_for_type(x509.IPAddress)]
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=authority.certificates.decode())


def test_a_leaf_never_outlives_its_authority() -> None:
    """Clients that verify the chain would refuse it after the authority expires."""
    authority = make_authority("ECDSA", NOW)
    late = NOW + timedelta(days=300)
    leaf = make_leaf(authority, SETTINGS, late)
    assert authority.parsed()[0].not_valid_after_utc == leaf.parsed()[0].not_valid_after_utc


def test_a_certificate_with_enough_time_left_is_kept() -> None:
    """Renewal starts fifteen days before the end."""
    authority = make_authority("ECDSA", NOW)
    leaf = make_leaf(authority, SETTINGS, NOW)
    assert renewed_bundle(authority, SETTINGS, NOW + timedelta(days=349)) is None
    assert is_good_leaf(leaf, authority, SETTINGS, NOW + timedelta(days=134))
    assert not is_good_leaf(leaf, authority, SETTINGS, NOW + timedelta(days=136))


def test_an_authority_that_is_renewed_still_trusts_old_leaves() -> None:
    """The key stays, and the bundle keeps the old certificate until it expires."""
    authority = make_authority("ECDSA", NOW)
    late = NOW + timedelta(days=351)
    leaf = make_leaf(authority, CertificateSettings(renew_before_days=1), late)
    renewed = renewed_bundle(authority, SETTINGS, late)
    assert renewed is not None
    assert 2 == len(renewed.parsed())
    assert authority.parsed()[0] == renewed.parsed()[1]
    assert is_good_leaf(leaf, renewed, CertificateSettings(renew_before_days=1), late)
    ended = renewed_bundle(authority, SETTINGS, NOW + timedelta(days=366))
    assert ended is not None
    assert 1 == len(ended.parsed())


def test_a_leaf_of_another_service_or_key_is_not_good() -> None:
    """A leaf of another authority is invalid as well."""
    authority = make_authority("ECDSA", NOW)
    leaf = make_leaf(authority, SETTINGS, NOW)
    assert not is_good_leaf(leaf, authority, CertificateSettings(service="other"), NOW)
    assert not is_good_leaf(leaf, make_authority("ECDSA", NOW), SETTINGS, NOW)
    assert not is_good_leaf(KeyPair(leaf.certificates, authority.key), authority, SETTINGS, NOW)
    assert not is_good_leaf(KeyPair(b"", b""), authority, SETTINGS, NOW)


@pytest.mark.parametrize(
    "asked",
    [
        CertificateSettings(service="other"),
        CertificateSettings(namespace="elsewhere"),
        CertificateSettings(more_services=("metrics",)),
        CertificateSettings(server="192.0.2.1:9443"),
        CertificateSettings(server="[2001:db8::1]:9443"),
        CertificateSettings(server="webhook.example:443"),
    ],
    ids=["service", "namespace", "second-service", "address", "address-6", "host"],
)
def test_a_leaf_without_the_configured_names_is_not_good(asked: CertificateSettings) -> None:
    """After a changed flag or a copied Secret the leaf is young, but clients would refuse its names."""
    authority = make_authority("ECDSA", NOW)
    assert not is_good_leaf(make_leaf(authority, SETTINGS, NOW), authority, asked, NOW)
    assert is_good_leaf(make_leaf(authority, asked, NOW), authority, asked, NOW)


@pytest.mark.parametrize("data", [{}, {"tls.crt": "!", "tls.key": "!"}, {"tls.crt": "eA==", "tls.key": "eA=="}])
def test_a_secret_without_a_valid_pair_counts_as_missing(data: dict[str, str]) -> None:
    """It is created again, or left to its owner."""
    assert read_pair({"data": data}) is None


def secret_of(name: str, pair: KeyPair, **labels: str) -> JSONObject:
    """Return a Secret with a pair."""
    data = {"tls.crt": base64.b64encode(pair.certificates).decode(), "tls.key": base64.b64encode(pair.key).decode()}
    metadata = {"name": name, "labels": labels}
    body = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": metadata, "data": data}
    return body if pair.key else {**body, "type": "Opaque", "data": {"tls.crt": data["tls.crt"]}}


def play(scene: Callable[[Client], Awaitable[None]]) -> None:
    """Run a scene with the Secrets of a sandbox."""

    async def run() -> None:
        async with (
            Sandbox(controllers=False) as sandbox,
            Client(load_kubeconfig(sandbox.kubeconfig), qps=0) as client,
        ):
            await scene(client)

    asyncio.run(run())


def test_foreign_certificates_are_served_until_they_end() -> None:
    """They may have other names, no authority key, and less than fifteen days left."""
    now = datetime.now(UTC)
    authority = make_authority("ECDSA", now)
    leaf = make_leaf(authority, CertificateSettings(service="other"), now - timedelta(days=145))
    given = CertificateSettings(namespace="default")

    async def scene(client: Client) -> None:
        await client.create(SECRETS, secret_of(given.ca_name, KeyPair(authority.certificates, b"")), "default")
        await client.create(SECRETS, secret_of(given.tls_name, leaf), "default")
        for settings in (given, replace(given, manages=False)):
            _, found = await CertificateController(client, settings).reconcile()
            assert leaf.certificates == found.certificates
        old = make_leaf(authority, given, now - timedelta(days=151))
        found_secret = await client.get(SECRETS, given.tls_name, "default")
        await client.update(SECRETS, {**found_secret, "data": secret_of("", old)["data"]}, "default")
        with pytest.raises(HostError, match="not managed by kyverno"):
            await CertificateController(client, given).reconcile()
        assert old.certificates == base64.b64decode(
            (await client.get(SECRETS, given.tls_name, "default"))["data"]["tls.crt"]
        )

    play(scene)


def test_a_manager_that_is_switched_off_makes_nothing() -> None:
    """The administrator has to provide a missing Secret."""

    async def scene(client: Client) -> None:
        settings = CertificateSettings(namespace="default", manages=False)
        with pytest.raises(HostError, match="not managed by kyverno"):
            await CertificateController(client, settings).reconcile()
        assert [] == (await client.list(SECRETS, "default"))["items"]

    play(scene)
