"""The probe port of a controller."""

from __future__ import annotations

import asyncio

import aiohttp

from pyverno.controllers.runtime.healthport import HealthPort


def test_a_controller_is_alive_before_it_is_ready() -> None:
    """The readiness probe fails with the reason; other paths are not served."""
    problems = ["policies are not known yet"]

    async def run() -> None:
        async with HealthPort(lambda: problems[0], "127.0.0.1", 0) as port, aiohttp.ClientSession() as session:

            async def probe(path: str) -> tuple[int, str]:
                async with session.get(f"http://127.0.0.1:{port.port}{path}") as reply:
                    return reply.status, await reply.text()

            assert (200, "ok\n") == await probe("/health/liveness")
            assert (503, "policies are not known yet\n") == await probe("/health/readiness")
            assert 404 == (await probe("/"))[0]
            problems[0] = ""
            assert (200, "ok\n") == await probe("/health/readiness")

    asyncio.run(run())
