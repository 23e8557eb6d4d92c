"""The Deployment of this replica: whether a rollout is in progress, and whether its last replica is leaving."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pyverno.controllers.runtime.owndeployment import OwnDeployment
from pyverno.kube.status import StatusError
from tests.support.apiserver import serving, status

PATH = "GET /apis/apps/v1/namespaces/kyverno/deployments/us"


def deployment(replicas: int | None, running: int, **metadata: Any) -> dict[str, Any]:
    """Return a Deployment."""
    spec = {} if replicas is None else {"replicas": replicas}
    return {"metadata": {"name": "us", **metadata}, "spec": spec, "status": {"replicas": running}}


def rollout_of(answer: Any) -> tuple[bool, bool]:
    """Return whether a rollout is in progress and whether the Deployment is going away."""

    async def run() -> tuple[bool, bool]:
        async with serving() as (script, client):
            script.on(PATH, answer)
            own = OwnDeployment(client, "kyverno", "us")
            return await own.is_rolling(), await own.is_going()

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (deployment(3, 3), (False, False)),
        (deployment(3, 4), (True, False)),
        (deployment(None, 1), (False, False)),
        (deployment(None, 2), (True, False)),
        (deployment(0, 1), (True, True)),
        (deployment(3, 3, deletionTimestamp="2026-11-22T10:00:00Z"), (False, True)),
        (status(404, "NotFound"), (False, True)),
    ],
)
def test_the_deployment_shows_rollout_and_removal(answer: Any, expected: tuple[bool, bool]) -> None:
    """Cases are surplus replicas, zero replicas, a deletion and a missing Deployment."""
    assert expected == rollout_of(answer)


def test_a_forbidden_deployment_is_neither_rolling_nor_gone() -> None:
    """A missing permission deletes no webhook and blocks no startup.

    Register: eb49d4c4.
    """

    async def run() -> None:
        async with serving() as (script, client):
            script.on(PATH, status(403, "Forbidden"))
            own = OwnDeployment(client, "kyverno", "us")
            assert not await own.is_rolling()
            with pytest.raises(StatusError, match="Forbidden"):
                await own.is_going()
            script.on(PATH, status(500, "InternalError"))
            for admission_request in (own.is_rolling, own.is_going):
                with pytest.raises(StatusError, match="InternalError"):
                    await admission_request()

    asyncio.run(run())


def test_outside_of_a_cluster_there_is_no_deployment() -> None:
    """No request is sent."""

    async def run() -> None:
        async with serving() as (script, client):
            own = OwnDeployment(client, "kyverno", "")
            assert (False, False) == (await own.is_rolling(), await own.is_going())
            assert [] == script.asked

    asyncio.run(run())
