"""The time of the API server: never ahead of it, soon close to it, and independent of this machine's clock."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import formatdate

from hypothesis import given
from hypothesis import strategies as st

from kubesandbox import Sandbox
from kubesandbox.sandbox import Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.cluster.servertime import ServerTime
from pyverno.kube.gvk import GVR

MAPS = GVR("", "v1", "configmaps")


class Server:
    """A server whose clock is `ahead` of the monotonic clock `at`, behind a connection with delays."""

    def __init__(self, ahead: float) -> None:
        self.at = 0.0
        self.ahead = ahead

    def monotonic(self) -> float:
        """Return this machine's monotonic clock."""
        return self.at

    def respond(self, clock: ServerTime, there: float = 0.0, back: float = 0.0) -> None:
        """Respond to one request that took `there` seconds to arrive, with a response that takes `back`."""
        sent = self.at
        date = formatdate(int(self.at + there + self.ahead), usegmt=True)
        self.at += there + back
        clock.note(date, sent)


@given(
    st.floats(0, 1e9),
    st.lists(st.tuples(st.floats(0, 3), st.floats(0, 3), st.floats(0, 20)), min_size=1, max_size=30),
)
def test_the_time_is_never_ahead_of_the_server(ahead: float, calls: list[tuple[float, float, float]]) -> None:
    """Delays of requests and responses may have any length."""
    server = Server(ahead)
    clock = ServerTime(monotonic=server.monotonic)
    for there, back, pause in calls:
        server.respond(clock, there, back)
        now = clock.now()
        assert now is not None
        assert now <= server.at + server.ahead + 1e-6
        server.at += pause


def test_a_few_quick_responses_bring_it_within_a_tenth_of_a_second() -> None:
    """The response soonest after a tick of the server's clock gives the best estimate."""
    server = Server(1_700_000_000.93)
    clock = ServerTime(monotonic=server.monotonic)
    for _ in range(20):
        server.respond(clock, 0.005, 0.005)
        server.at += 0.06
    assert 0 <= server.at + server.ahead - (clock.now() or 0) < 0.1


def test_nothing_is_known_before_the_first_response() -> None:
    """A response with an invalid header adds nothing."""
    clock = ServerTime()
    clock.note("", 0.0)
    clock.note("yesterday", 0.0)
    assert clock.now() is None


def test_of_servers_that_disagree_the_slowest_counts() -> None:
    """An object must not expire by a clock that is ten minutes ahead."""
    server = Server(1_000_600.0)
    clock = ServerTime(monotonic=server.monotonic)
    server.respond(clock)
    server.ahead -= 600
    server.respond(clock)
    server.ahead += 600
    server.respond(clock)
    assert (clock.now() or 0) <= server.at + 1_000_000


def test_a_clock_that_was_set_is_followed_within_two_minutes() -> None:
    """Listeners are notified of the change."""
    server, moves = Server(1_000_000.0), []
    clock = ServerTime(monotonic=server.monotonic)
    clock.listen(lambda: moves.append(server.at))
    server.respond(clock)
    server.ahead += 600
    for _ in range(13):
        server.at += 10
        server.respond(clock)
    assert server.at + server.ahead - (clock.now() or 0) < 1
    assert 2 == len(moves)


def test_responses_of_a_sandbox_show_its_clock() -> None:
    """It is ten minutes off that of this machine, as the timestamps of its objects are."""

    async def scene(shift: timedelta) -> tuple[float, float]:
        clock = ServerTime()
        settings = Settings(controllers=False, authorization=False, clock=lambda: datetime.now(UTC) + shift)
        async with (
            Sandbox(settings) as sandbox,
            Client(load_kubeconfig(sandbox.kubeconfig, environment={}), server_time=clock) as client,
        ):
            made = await client.create(MAPS, {"metadata": {"name": "a"}}, "default")
        created = datetime.fromisoformat(made["metadata"]["creationTimestamp"]).timestamp()
        return created - datetime.now(UTC).timestamp(), (clock.now() or 0) - created

    for minutes in (-10, 10):
        shown, apart = asyncio.run(scene(timedelta(minutes=minutes)))
        assert abs(shown - minutes * 60) < 20
        assert -1.5 < apart < 20
