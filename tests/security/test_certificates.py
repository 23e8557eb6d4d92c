"""Changed certificates of the webhook: every damage of a Secret ends in a chain that clients accept."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

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
    renewed_bundle,
)
from tests.support.certificatereplicas import ApiServer, Replica

_SETTINGS = CertificateSettings(namespace="default")
_NOW = datetime.now(UTC)
_YEAR = timedelta(days=366)

Damage = Callable[[KeyPair, KeyPair], tuple[bytes, bytes] | None]
"""New certificate and key of a Secret, from authority and leaf; None deletes the Secret."""


def _pair(pair: KeyPair) -> tuple[bytes, bytes]:
    return pair.certificates, pair.key


def _weak(authority: KeyPair) -> tuple[bytes, bytes]:
    """A leaf whose key is too short for OpenSSL, with all names."""
    good = make_leaf(authority, _SETTINGS, _NOW).parsed()[0]
    key = rsa.generate_private_key(65537, 1024)  # noqa: S505 - to be refused
    issuer = authority.parsed()[0]
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a")]))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_NOW - timedelta(hours=1))
        .not_valid_after(_NOW + timedelta(days=100))
        .add_extension(good.extensions.get_extension_for_class(x509.SubjectAlternativeName).value, critical=False)
    )
    made = builder.sign(authority.private_key(), hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    plain = serialization.NoEncryption()
    return made, key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)


_ANYWHERE: dict[str, Damage] = {
    "deleted": lambda ca, leaf: None,
    "empty": lambda ca, leaf: (b"", b""),
    "no PEM": lambda ca, leaf: (b"certificate", b"key"),
    "many certificates": lambda ca, leaf: (ca.certificates * 800, ca.key),
    "an encrypted key": lambda ca, leaf: (leaf.certificates, b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n"),
}
_DAMAGES: dict[tuple[str, str], Damage] = {
    **{(secret, name): damage for secret in ("authority", "leaf") for name, damage in _ANYWHERE.items()},
    ("authority", "the key of another"): lambda ca, leaf: (ca.certificates, make_authority("ECDSA", _NOW).key),
    ("authority", "the certificate of another"): lambda ca, leaf: (make_authority("ECDSA", _NOW).certificates, ca.key),
    ("authority", "another"): lambda ca, leaf: _pair(make_authority("ECDSA", _NOW)),
    ("authority", "no authority"): lambda ca, leaf: _pair(leaf),
    ("authority", "not yet valid"): lambda ca, leaf: _pair(make_authority("ECDSA", _NOW + timedelta(days=9))),
    ("authority", "expired"): lambda ca, leaf: _pair(make_authority("ECDSA", _NOW - _YEAR, ca.private_key())),
    ("authority", "expires soon"): lambda ca, leaf: _pair(
        make_authority("ECDSA", _NOW - timedelta(days=360), ca.private_key())
    ),
    ("leaf", "the key of another"): lambda ca, leaf: (leaf.certificates, ca.key),
    ("leaf", "the certificate of another"): lambda ca, leaf: (make_leaf(ca, _SETTINGS, _NOW).certificates, leaf.key),
    ("leaf", "of another authority"): lambda ca, leaf: _pair(make_leaf(make_authority("ECDSA", _NOW), _SETTINGS, _NOW)),
    ("leaf", "of another service"): lambda ca, leaf: _pair(make_leaf(ca, CertificateSettings(service="b"), _NOW)),
    ("leaf", "not yet valid"): lambda ca, leaf: _pair(make_leaf(ca, _SETTINGS, _NOW + timedelta(days=9))),
    ("leaf", "expired"): lambda ca, leaf: _pair(make_leaf(ca, _SETTINGS, _NOW - _YEAR)),
    ("leaf", "too weak"): lambda ca, leaf: _weak(ca),
    ("leaf", "without names"): lambda ca, leaf: _pair(ca),
    ("leaf", "of the authority before"): lambda ca, leaf: (leaf.certificates, b""),
}


async def _read(client: Client, name: str) -> KeyPair:
    secret = await client.get(SECRETS, name, "default")
    return KeyPair(*(base64.b64decode(secret["data"][key]) for key in ("tls.crt", "tls.key")))


@pytest.mark.parametrize(("secret", "damage"), _DAMAGES, ids=lambda part: part.replace(" ", "-"))
def test_no_change_of_a_secret_takes_the_webhook_out_of_service(secret: str, damage: str) -> None:
    """Both replicas serve a chain that clients of the published bundle accept; no loop renews without end."""

    async def play() -> None:
        async with (
            Sandbox(controllers=False) as sandbox,
            Client(load_kubeconfig(sandbox.kubeconfig), qps=0) as client,
        ):
            server = ApiServer()
            leader, follower = (Replica(client, _SETTINGS, server) for _ in range(2))
            for each in (leader, follower):
                await each.certificates.start()
            server.bundles = [leader.certificates.bundle]  # as a leader before them wrote it
            tasks = [asyncio.create_task(each.certificates.follow()) for each in (leader, follower)]
            tasks.append(asyncio.create_task(leader.certificates.controller.run()))
            try:
                await _damage(client, secret, damage)
                async with asyncio.timeout(60):
                    while not await _is_whole(client, leader, follower):
                        assert not [task for task in tasks if task.done()]
                        assert _is_served(server, leader, follower)
                        await asyncio.sleep(0.05)
                stored = await client.get(SECRETS, _SETTINGS.tls_name, "default")
                await asyncio.sleep(0.5)
                again = await client.get(SECRETS, _SETTINGS.tls_name, "default")
                assert stored["metadata"]["resourceVersion"] == again["metadata"]["resourceVersion"]
                assert b"PRIVATE" not in b"".join([*leader.history, leader.certificates.bundle])
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(play())


async def _is_whole(client: Client, leader: Replica, follower: Replica) -> bool:
    """Return whether the Secrets hold a good pair, which both replicas serve."""
    try:
        authority, leaf = await _read(client, _SETTINGS.ca_name), await _read(client, _SETTINGS.tls_name)
        if not is_good_leaf(leaf, authority, _SETTINGS, datetime.now(UTC)):
            return False
    except Exception:  # a Secret that is missing or damaged still
        return False
    bundle = leader.certificates.bundle
    served = {each.certificates._leaf.certificates for each in (leader, follower) if each.certificates._leaf}
    return served == {leaf.certificates} and all(each.is_accepted(bundle) for each in (leader, follower))


def _is_served(server: ApiServer, *replicas: Replica) -> bool:
    """Return whether the API server accepts each replica that is ready: it calls all of these."""
    return all(server.accepts(each) for each in replicas if not each.certificates.problem())


@pytest.mark.parametrize("next_leader", ["the-one-that-starts", "the-one-that-follows"])
@pytest.mark.parametrize("damage", ["deleted", "another", "expired"])
def test_no_replica_that_is_ready_serves_an_authority_that_no_leader_has_published(
    damage: str, next_leader: str
) -> None:
    """The leader is gone when the authority is replaced, and a replica starts that has to make another."""

    async def play() -> None:
        async with (
            Sandbox(controllers=False) as sandbox,
            Client(load_kubeconfig(sandbox.kubeconfig), qps=0) as client,
        ):
            server = ApiServer()
            follower, starting = (Replica(client, _SETTINGS, server) for _ in range(2))
            await follower.certificates.start()
            server.bundles = [follower.certificates.bundle]
            tasks = [asyncio.create_task(follower.certificates.follow())]
            try:
                async with asyncio.timeout(60):
                    while follower.certificates.problem():
                        await asyncio.sleep(0.02)
                    await _damage(client, "authority", damage)
                    await starting.certificates.start()
                    tasks.append(asyncio.create_task(starting.certificates.follow()))
                    for _ in range(50):
                        assert _is_served(server, follower, starting)
                        await asyncio.sleep(0.05)
                    assert not follower.certificates.problem()
                    leader = starting if next_leader == "the-one-that-starts" else follower
                    tasks.append(asyncio.create_task(leader.certificates.controller.run()))
                    while follower.leaf != starting.leaf or starting.certificates.problem():
                        assert _is_served(server, follower, starting)
                        await asyncio.sleep(0.02)
                    assert server.accepts(follower)
                    assert server.accepts(starting)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(play())


async def _damage(client: Client, secret: str, damage: str) -> None:
    authority, leaf = await _read(client, _SETTINGS.ca_name), await _read(client, _SETTINGS.tls_name)
    name = {"authority": _SETTINGS.ca_name, "leaf": _SETTINGS.tls_name}[secret]
    found = _DAMAGES[(secret, damage)](authority, leaf)
    if found is None:
        await client.delete(SECRETS, name, "default")
        return
    certificate, key = (base64.b64encode(each).decode() for each in found)
    body: Any = await client.get(SECRETS, name, "default")
    await client.update(SECRETS, {**body, "data": {"tls.crt": certificate, "tls.key": key}}, "default")


def test_no_key_beside_a_certificate_is_published() -> None:
    """Administrators put both into one file; the bundle of the webhook configurations is for everybody to read."""

    async def play() -> bytes:
        async with (
            Sandbox(controllers=False) as sandbox,
            Client(load_kubeconfig(sandbox.kubeconfig), qps=0) as client,
        ):
            replica = Replica(client, _SETTINGS)
            await replica.certificates.start()
            authority = await _read(client, _SETTINGS.ca_name)
            body: Any = await client.get(SECRETS, _SETTINGS.ca_name, "default")
            both = base64.b64encode(b"junk\n" + authority.key + authority.certificates + b"more\n").decode()
            await client.update(SECRETS, {**body, "data": {**body["data"], "tls.crt": both}}, "default")
            again = Replica(client, _SETTINGS)
            await again.certificates.start()
            assert again.is_accepted(replica.certificates.bundle)
            return again.certificates.bundle

    assert b"PRIVATE" not in asyncio.run(play())


@pytest.mark.parametrize("minutes", [-10, 10])
def test_clocks_that_differ_renew_nothing(minutes: int) -> None:
    """A replica whose clock is ten minutes off takes the certificates of the others."""

    async def play() -> bool:
        async with (
            Sandbox(controllers=False) as sandbox,
            Client(load_kubeconfig(sandbox.kubeconfig), qps=0) as client,
        ):
            first = await CertificateController(client, _SETTINGS).reconcile(_NOW)
            found = [
                await CertificateController(client, _SETTINGS).reconcile(_NOW + timedelta(minutes=each))
                for each in (minutes, 0, -minutes)
            ]
            return all(each == first for each in found)

    assert asyncio.run(play())


def test_replicas_that_renew_at_once_agree() -> None:
    """The first one wins, and the others serve its pair."""

    async def play() -> int:
        async with (
            Sandbox(controllers=False) as sandbox,
            Client(load_kubeconfig(sandbox.kubeconfig), qps=0) as client,
        ):
            controllers = [CertificateController(client, _SETTINGS) for _ in range(8)]
            found = await asyncio.gather(*(each.reconcile() for each in controllers))
            return len({leaf.certificates for _, leaf in found})

    assert 1 == asyncio.run(play())


def test_a_long_time_before_the_end_renews_once() -> None:
    """A time that is longer than a certificate lives would have each of them renewed at once, for ever."""
    settings = CertificateSettings(namespace="default", renew_before_days=400)
    authority = make_authority("ECDSA", _NOW)
    leaf = make_leaf(authority, settings, _NOW)
    assert is_good_leaf(leaf, authority, settings, _NOW)
    assert renewed_bundle(authority, settings, _NOW) is None
    assert not is_good_leaf(leaf, authority, settings, _NOW + timedelta(days=76))
