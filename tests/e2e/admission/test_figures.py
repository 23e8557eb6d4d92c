"""No request fails while replicas, certificates and the API server change.

Each test is small in `make test`; `make e2e` runs it at its full size and writes what it measured to `build/e2e.json`.
Every answer of the load is held against that of the library.
"""

from __future__ import annotations

import asyncio
import itertools
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.cluster.leases import LEASES
from pyverno.kube.status import StatusError
from tests.e2e.admission.apiserver import ApiServer
from tests.e2e.admission.deployment import CONFIG_MAPS, POLICIES, SECRETS, Deployment, install, trusted, until
from tests.e2e.admission.load import Load, config_map, team_labels
from tests.e2e.admission.mixture import mixture
from tests.e2e.admission.scene import ADD, ADD_TO_LATECOMER, IS_FULL, REQUIRE, apply, apply_all, note, play, pool
from tests.e2e.admission.users import Users

_ROLLS = 20 if IS_FULL else 1
_ENDS = 50 if IS_FULL else 1
_CHANGES = 20 if IS_FULL else 1
_ROTATIONS = 20 if IS_FULL else 1
_AWAY_SECONDS = 35.0 if IS_FULL else 2.0
_REVIEWS = 10_000 if IS_FULL else 300
_POOL = 2_000 if IS_FULL else 200
_MIXTURE = mixture(1 if IS_FULL else 8)
_UNTRUSTING = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # reads no authorities, which takes longer than a handshake
_UNTRUSTING.check_hostname, _UNTRUSTING.verify_mode = False, ssl.CERT_NONE
_CA, _LEAF = "kyverno-svc.kyverno.svc.kyverno-tls-ca", "kyverno-svc.kyverno.svc.kyverno-tls-pair"


def _figures(load: Load) -> dict[str, float]:
    return {
        "requests": load.asked,
        "handshakes": load.handshakes,
        "seconds": load.seconds,
        "handshakes_per_second": load.handshakes / load.seconds,
        "slowest_seconds": load.slowest,
        "wrong": len(load.wrong),
    }


def test_mixed_reviews_are_answered_as_the_library_answers(tmp_path: Path) -> None:
    """Many policies, kinds, users and operations, some malformed: verdict, text, patch, warnings are the library's."""

    async def scene(client: Client, deployment: Deployment) -> None:
        await apply_all(client, _MIXTURE)
        reviews = pool(_MIXTURE.reviews(seed=1), _REVIEWS)
        context = await trusted(client)
        async with Load(deployment.balancer.port, context, reviews, pause=0, most=_REVIEWS) as load:
            pass
        denied = sum(each.expected is not None and not each.expected[0] for each in reviews)
        changed = sum(each.expected is not None and bool(each.expected[2]) for each in reviews)
        malformed = sum(each.expected is None for each in reviews)
        note("mixed reviews", **_figures(load), denied=denied, changed=changed, malformed=malformed)
        assert [] == load.wrong, deployment.complaints(load.wrong)
        assert (_REVIEWS, True) == (load.asked, min(denied, changed, malformed) > 0)

    play(scene, tmp_path, replicas=2)


def test_no_request_fails_while_a_deployment_is_rolled(tmp_path: Path) -> None:
    """A new replica comes before an old one goes, as a Deployment does it: every answer is right."""

    async def scene(client: Client, deployment: Deployment) -> None:
        await apply_all(client, _MIXTURE)
        reviews = itertools.cycle(pool(_MIXTURE.reviews(seed=2), _POOL))
        async with Load(deployment.balancer.port, await trusted(client), reviews) as load:
            for _ in range(_ROLLS):
                for old in list(deployment.replicas):
                    await deployment.ready(*await deployment.start())
                    old.terminate()
                    assert 0 == await deployment.forget(old)
        note("rolling restarts", restarts=_ROLLS, **_figures(load))
        assert [] == load.wrong, deployment.complaints(load.wrong)

    play(scene, tmp_path, replicas=2 if IS_FULL else 1)


def test_no_request_fails_when_replicas_are_terminated(tmp_path: Path) -> None:
    """SIGTERM to half of the replicas at once, under load: each ends with code 0, and every answer is right."""

    async def scene(client: Client, deployment: Deployment) -> None:
        await apply_all(client, _MIXTURE)
        reviews = itertools.cycle(pool(_MIXTURE.reviews(seed=3), _POOL))
        slowest = 0.0
        half = len(deployment.replicas) // 2
        async with Load(deployment.balancer.port, await trusted(client), reviews) as load:
            for _ in range(-(-_ENDS // half)):
                old = deployment.replicas[:half]
                began = time.monotonic()
                for replica in old:
                    replica.terminate()
                fresh = await deployment.start(half)
                assert [0] * half == [await deployment.forget(replica) for replica in old]
                slowest = max(slowest, time.monotonic() - began)
                await deployment.ready(*fresh)
        note("ends by SIGTERM", ends=_ENDS, slowest_end_seconds=slowest, **_figures(load))
        assert [] == load.wrong, deployment.complaints(load.wrong)

    play(scene, tmp_path, replicas=4 if IS_FULL else 2)


def test_nothing_forbidden_gets_in_while_everything_changes(tmp_path: Path) -> None:
    """Users send requests to the API server while replicas stop, leaders change and policies come and go.

    No forbidden object is ever admitted; allowed objects are admitted as long as a replica is ready.
    """

    async def scene(client: Client, deployment: Deployment) -> None:
        await apply(client, REQUIRE)
        async with Users(client, "the label team is required") as users:
            for number in range(_CHANGES):
                other = {**ADD, "metadata": {"name": f"add-tier-{number}"}}
                await apply(client, other)
                fresh = await deployment.start()
                old = deployment.replicas[0]
                old.terminate()
                assert 0 == await deployment.forget(old)
                await deployment.ready(*fresh)
                await client.delete(POLICIES, f"add-tier-{number}")
        note(
            "users of the API server",
            changes=_CHANGES,
            requests=users.asked,
            denied=users.denied,
            wrong=len(users.wrong),
        )
        assert [] == users.wrong, deployment.complaints(users.wrong)
        assert users.denied > 0

    play(scene, tmp_path, replicas=2)


def test_no_handshake_fails_while_certificates_are_rotated(tmp_path: Path) -> None:
    """Deleting the Secrets rotates the leaf and sometimes the CA; clients trust the published bundle."""

    async def scene(client: Client, deployment: Deployment) -> None:
        await apply(client, REQUIRE)
        reviews = itertools.cycle(pool(team_labels(REQUIRE), 2))
        port = deployment.balancer.port
        async with Load(port, await trusted(client), reviews, staying=0, fresh=4, pause=0) as load:
            for number in range(_ROTATIONS):
                served = {await _serial(replica.port) for replica in deployment.replicas}
                if number % 8 == 4:
                    await client.delete(SECRETS, _CA, "kyverno")
                await client.delete(SECRETS, _LEAF, "kyverno")

                async def is_rotated(before: set[bytes] = served) -> bool:
                    load.context = await trusted(client)  # an API server watches its configurations
                    now = [await _serial(replica.port) for replica in deployment.replicas]
                    return not before & {*now} and len({*now}) == 1

                await until("all replicas serve the new certificate", is_rotated)
        note("certificate rotations", rotations=_ROTATIONS, **_figures(load))
        assert [] == load.wrong, deployment.complaints(load.wrong)

    play(scene, tmp_path, replicas=2)


def test_no_handshake_fails_when_the_authority_is_lost_while_no_replica_leads(tmp_path: Path) -> None:
    """The replicas that run serve what the API server trusts; one that starts has to wait for the next leader."""

    async def scene(client: Client, deployment: Deployment) -> None:
        await apply(client, REQUIRE)
        reviews = itertools.cycle(pool(team_labels(REQUIRE), 2))
        lease = await client.get(LEASES, "kyverno", "kyverno")
        holder = lease["spec"]["holderIdentity"]
        [leader] = [each for each in deployment.replicas if each.log.stem in holder]
        leader.process.kill()
        await deployment.forget(leader)
        served = {await _serial(replica.port) for replica in deployment.replicas}
        async with Load(deployment.balancer.port, await trusted(client), reviews, fresh=4, staying=0, pause=0) as load:
            for name in (_CA, _LEAF):
                await client.delete(SECRETS, name, "kyverno")
            await deployment.start()

            async def is_settled() -> bool:
                load.context = await trusted(client)
                if not all(deployment.balancer.is_ready(replica.port) for replica in deployment.replicas):
                    return False
                now = [await _serial(replica.port) for replica in deployment.replicas]
                return not served & {*now} and len({*now}) == 1

            await until("all replicas serve a leaf of the new authority", is_settled)
        assert load.handshakes > 0
        assert [] == load.wrong, deployment.complaints(load.wrong)

    # the lease of a leader that is gone holds for 24 seconds, in which the new replica starts
    play(scene, tmp_path, replicas=3, arguments=("--leaderElectionRetryPeriod", "4s"))


async def _serial(port: int) -> bytes:
    """Return the certificate that a replica serves now."""
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=_UNTRUSTING)
    found: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    return found


def test_reviews_go_on_while_the_api_server_is_away(tmp_path: Path) -> None:
    """Reviews are answered from the cache; rules that must query the API server deny.

    The replica keeps running, becomes unready after 30 seconds, and follows the cluster again after the restart.
    """

    async def run() -> None:
        async with _killable(tmp_path) as (server, client, deployment):
            await apply_all(client, _MIXTURE)
            [replica] = deployment.replicas
            reviews = itertools.cycle(pool(_MIXTURE.reviews(seed=4), _POOL))
            # whoever asks while there is no API server asks the replica itself
            async with Load(replica.port, await trusted(client), reviews) as load:
                load.is_away = True
                await server.kill()
                await asyncio.sleep(_AWAY_SECONDS)
                was_ready = deployment.balancer.is_ready(replica.port)
                await server.start()
                began = time.monotonic()
                await deployment.ready(replica)
                await until("the replica follows the cluster again", lambda: _follows(client))
                recovery = time.monotonic() - began
                load.is_away = False
            note("API server away", away_seconds=_AWAY_SECONDS, recovery_seconds=recovery, **_figures(load))
            assert [] == load.wrong, deployment.complaints(load.wrong)
            assert (None, not IS_FULL) == (replica.process.returncode, was_ready)

    asyncio.run(run())


async def _follows(client: Client) -> bool:
    """Return whether a new policy takes effect; it changes none of the reviews that the load sends meanwhile."""
    try:
        await client.create(POLICIES, ADD_TO_LATECOMER)
    except StatusError as error:
        if error.reason != "AlreadyExists":
            return False
    latecomer = config_map("latecomer", team="blue")
    try:
        stored = await client.create(CONFIG_MAPS, latecomer, "default", query={"dryRun": "All"})
    except StatusError:
        return False
    return (stored["metadata"].get("labels") or {}).get("tier") == "bronze"


@asynccontextmanager
async def _killable(folder: Path) -> AsyncIterator[tuple[ApiServer, Client, Deployment]]:
    async with (
        ApiServer(folder) as server,
        Client(load_kubeconfig(str(server.kubeconfig)), qps=0) as client,
        Deployment(str(server.kubeconfig), folder) as deployment,
    ):
        await install(client)
        await deployment.ready(*await deployment.start())
        yield server, client, deployment
