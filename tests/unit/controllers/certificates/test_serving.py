"""Certificates that a replica serves: every replica follows them, the leader renews them, and trust comes first."""

from __future__ import annotations

import asyncio
import base64
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from cryptography import x509

from kubesandbox import Sandbox
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.certificates.secrets import SECRETS, CertificateSettings, make_leaf
from pyverno.controllers.certificates.serving import ServingCertificates
from pyverno.errors import HostError
from tests.support.certificatereplicas import ApiServer, Replica

SETTINGS = CertificateSettings(namespace="default")


def play(scene: Callable[[Client, Replica, Replica], Awaitable[None]]) -> None:
    """Run a scene with a leader and a follower."""

    async def run() -> None:
        async with (
            Sandbox(controllers=False) as sandbox,
            Client(load_kubeconfig(sandbox.kubeconfig), qps=0) as client,
        ):
            server = ApiServer()
            leader, follower = (Replica(client, SETTINGS, server) for _ in range(2))
            for each in (leader, follower):
                await each.certificates.start()
            server.bundles = [leader.certificates.bundle]  # as a leader before them wrote it
            tasks = [asyncio.create_task(each.certificates.follow()) for each in (leader, follower)]
            tasks.append(asyncio.create_task(leader.certificates.controller.run()))
            try:
                async with asyncio.timeout(60):
                    await scene(client, leader, follower)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(run())


async def _until(holds: Callable[[], object]) -> None:
    while not holds():
        await asyncio.sleep(0.02)


def test_replicas_share_a_leaf_and_follow_a_new_one() -> None:
    """The leader replaces a deleted leaf; the bundle stays the same."""

    async def scene(client: Client, leader: Replica, follower: Replica) -> None:
        first = leader.leaf
        assert first
        assert first == follower.leaf
        await _until(lambda: ("", "") == (leader.certificates.problem(), follower.certificates.problem()))
        await client.delete(SECRETS, SETTINGS.tls_name, "default")
        await _until(lambda: leader.leaf != first and leader.leaf == follower.leaf)
        assert [] == leader.history

    play(scene)


def test_a_leaf_that_does_not_name_the_address_that_serves_is_renewed_at_once() -> None:
    """It has months to live, but the API server would refuse it; a starting replica and the leader both renew it."""
    elsewhere = replace(SETTINGS, server="192.0.2.1:9443", tls_secret=SETTINGS.tls_name, ca_secret=SETTINGS.ca_name)

    async def scene(client: Client, leader: Replica, follower: Replica) -> None:
        first = leader.leaf
        moved = ServingCertificates(client, elsewhere, leader)
        await moved.start()
        assert "192.0.2.1" in str(_addresses(moved))
        # the leader has no such address, and extra names in the leaf do no harm
        await _until(lambda: leader.leaf == follower.leaf != first)
        authority = leader.certificates._authority
        assert authority is not None
        foreign = make_leaf(authority, CertificateSettings(namespace="elsewhere"), datetime.now(UTC))
        secret = await client.get(SECRETS, SETTINGS.tls_name, "default")
        data = {"tls.crt": foreign.certificates, "tls.key": foreign.key}
        coded = {name: base64.b64encode(text).decode() for name, text in data.items()}
        await client.update(SECRETS, {**secret, "data": coded}, "default")
        second = leader.leaf
        # both may have read the foreign one before the leader replaces it
        await _until(lambda: leader.leaf == follower.leaf and leader.leaf not in (second, foreign.certificates))

    play(scene)


def _addresses(certificates: ServingCertificates) -> list[object]:
    leaf = certificates._leaf
    assert leaf is not None
    names = leaf.parsed()[0].extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return list(names.get_values_for_type(x509.IPAddress))


def test_a_new_authority_is_published_before_it_is_served() -> None:
    """The bundle includes the old authority, which replicas still serve; the follower publishes nothing."""

    async def scene(client: Client, leader: Replica, follower: Replica) -> None:
        before, leaf = leader.certificates.bundle, leader.leaf
        served: list[bytes] = []
        publish = leader.publish

        async def note() -> None:
            served.append(leader.leaf)
            await publish()

        leader.publish = note  # type: ignore[method-assign]
        await client.delete(SECRETS, SETTINGS.ca_name, "default")
        await client.delete(SECRETS, SETTINGS.tls_name, "default")
        await _until(lambda: leader.leaf != leaf and leader.leaf == follower.leaf)
        assert [leaf] == served
        [bundle] = leader.history
        assert bundle.endswith(before)
        assert len(bundle) > len(before)
        assert [] == follower.history

    play(scene)


def test_a_replica_that_cannot_ask_what_is_trusted_is_not_ready_and_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A bug in the question ends no replica either; it is ready when there is an answer."""
    errors: list[Exception] = [
        HostError("away"),
        HostError("away"),
        HostError("away"),
        KeyError("x"),
        HostError("away"),
    ]

    async def scene(client: Client, leader: Replica, _: Replica) -> None:
        late = Replica(client, SETTINGS, leader._server)
        answer = late.published

        async def fail() -> Sequence[bytes]:
            assert late.certificates.problem()
            if errors:
                raise errors.pop()
            return await answer()

        late.published = fail  # type: ignore[method-assign]
        await late.certificates.start()
        following = asyncio.create_task(late.certificates.follow())
        await _until(lambda: not late.certificates.problem())
        following.cancel()

    with caplog.at_level(logging.INFO):
        play(scene)
    lines = [each.msg for each in caplog.records if each.name == "pyverno.certificates"]
    assert 1 == sum("cannot be read" in each for each in lines)
    assert 1 == sum("can be read again" in each for each in lines)


def test_the_expiry_of_certificates_is_a_metric() -> None:
    """Each Secret has one series, and the authority never expires before its leaf; rounds of the leader are counted."""

    async def scene(client: Client, leader: Replica, _: Replica) -> None:
        metrics = leader.certificates._metrics
        found = {reading.name: reading.numbers for reading in metrics.read()}
        ends = found["kyverno_certificate_end_timestamp_seconds"]
        assert {(SETTINGS.ca_name,), (SETTINGS.tls_name,)} == set(ends)
        now = time.time()
        assert now < ends[(SETTINGS.tls_name,)] <= ends[(SETTINGS.ca_name,)]
        await _until(lambda: ("certmanager-controller",) in _rounds(leader))

    play(scene)


def _rounds(replica: Replica) -> set[tuple[str, ...]]:
    read = replica.certificates._metrics.read()
    return set(next(each for each in read if each.name == "kyverno_controller_reconcile").numbers)
