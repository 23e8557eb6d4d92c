"""Several processes of one replica: start, supervision, restart and shutdown, with stand-in programs."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable

import pytest

from pyverno.controllers.runtime.processgroup import peers, processes
from pyverno.controllers.runtime.processgroup.channel import Channel
from pyverno.controllers.runtime.processgroup.peers import Peers
from pyverno.controllers.runtime.processgroup.processes import Processes
from pyverno.errors import HostError
from pyverno.telemetry.instruments import Instruments
from pyverno.telemetry.metric import Metric
from pyverno.telemetry.metrics import Metrics
from pyverno.telemetry.snapshots import packed
from tests.unit.controllers.state.test_clusterstate import until

STAND_IN = """
import json, os, signal, socket, sys, threading, time
end = socket.socket(fileno=int(sys.argv[-1])).makefile("rwb", buffering=0)
errand = json.loads(end.readline())
say = lambda **message: end.write(json.dumps(message).encode() + b"\\n")
signal.signal(signal.SIGTERM, lambda *_: os._exit(errand.get("code", 0)))
heard = lambda: [json.loads(line) for line in iter(end.readline, b"")]
"""
"""The first lines of a stand-in program; its last argument is the number of its socket."""

GOOD = "say(problem='')\nfor line in iter(end.readline, b''):\n    pass\n"
COUNTING = """
say(problem="")
for line in iter(end.readline, b""):
    if json.loads(line).get("ask") == "metrics":
        say(readings=errand["readings"])
    elif errand["number"] == 1 and not os.path.exists(errand["marker"]):
        open(errand["marker"], "w").close()
        os._exit(9)
"""


def processes_running(program: str, count: int = 2, **errand: object) -> Processes:
    return Processes([sys.executable, "-c", STAND_IN + program], errand, count)


def sent_problems(running: Processes) -> dict[int, str]:
    """Return the last problem of the others that each process received."""
    return dict(running._sent)


async def run(running: Processes, until_what: Callable[[], bool]) -> None:
    """Run until a condition holds, then shut down."""
    stop = asyncio.Event()
    task = asyncio.create_task(running.run(stop))
    try:
        await until(lambda: task.done() or until_what())
    finally:
        stop.set()
        await task


def test_each_process_knows_the_health_of_the_others_and_all_end_together() -> None:
    """A process with healthy siblings receives no problem."""
    running = processes_running(GOOD, 3)
    asyncio.run(run(running, lambda: sent_problems(running) == {1: "", 2: "", 3: ""}))
    assert [] == running._pids()


def test_an_unhealthy_process_is_reported_to_all_others() -> None:
    """The message has its number and its reason; the process itself does not receive it."""
    running = processes_running("say(problem='' if errand['number'] == 1 else 'a watch is old')\nheard()\n")
    asyncio.run(run(running, lambda: sent_problems(running) == {1: "process 2 of 2: a watch is old", 2: ""}))


def test_a_process_that_cannot_start_ends_all() -> None:
    """The error names the process; its output is in the log."""
    running = processes_running("sys.exit(3) if errand['number'] == 2 else (say(problem=''), heard())\n")
    with pytest.raises(HostError, match="process 2 of 2 ended with 3 before it was ready; see the log"):
        asyncio.run(running.run(asyncio.Event()))
    assert [] == running._pids()


def test_a_missing_command_is_an_error() -> None:
    """The error names the problem without a traceback."""
    with pytest.raises(HostError, match="a process cannot be started: no such file or directory"):
        asyncio.run(Processes(["/nowhere/python"], {}, 2).run(asyncio.Event()))


def test_a_nonzero_exit_is_an_error() -> None:
    """One process exits with a nonzero code after SIGTERM."""
    running = processes_running(GOOD, code=4)
    with pytest.raises(HostError, match="process 1 of 2 ended with 4; see the log"):
        asyncio.run(run(running, lambda: sent_problems(running) == {1: "", 2: ""}))


def test_a_process_that_is_ended_while_it_starts_is_no_error() -> None:
    """It has no signal handler yet, so SIGTERM kills it, which counts as an orderly end."""
    running = processes_running("signal.signal(signal.SIGTERM, signal.SIG_DFL)\n" + GOOD)
    asyncio.run(run(running, lambda: sent_problems(running) == {1: "", 2: ""}))


def test_a_process_that_ends_is_restarted_and_its_counts_stay(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The new process takes the same number and counts from zero; sums never decrease."""
    monkeypatch.setattr(processes, "_PAUSES", (0.01,))
    instruments = Instruments()
    instruments.counter(Metric("counter", "asked", "")).add((), 5)
    instruments.counter(Metric("counter", "changed", "", is_common=True)).add((), 2)
    readings = packed(instruments.read())
    running = processes_running(COUNTING, readings=readings, marker=f"{tmp_path}/marker")

    async def scene() -> None:
        stop = asyncio.Event()
        task = asyncio.create_task(running.run(stop))
        await until(lambda: sent_problems(running) == {1: "", 2: ""} and len(running._pids()) == 2)
        found: list[dict[str, float]] = []

        async def is_counted() -> bool:
            counted = {each.name: each.numbers[()] for each in await running.gather()}
            found.append(counted)
            return counted.get("asked", 0) >= 10

        while not await is_counted():
            await asyncio.sleep(0.01)
        assert 2 == found[-1]["changed"]
        assert b"asked_total" in b"".join(await running.scrape())
        stop.set()
        await task

    asyncio.run(asyncio.wait_for(scene(), 60))
    assert "a process ended and is restarted" in caplog.text


def test_a_process_that_hangs_is_killed(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """It reported health once and then nothing, and it ignores SIGTERM."""
    monkeypatch.setattr(processes, "_HANGING_SECONDS", 0.3)
    monkeypatch.setattr(processes, "_LATE_SECONDS", 0.1)
    monkeypatch.setattr(processes, "_LOOK_SECONDS", 0.05)
    monkeypatch.setattr(processes, "_PAUSES", (0.01,))
    running = processes_running(
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nsay(problem='')\n"
        "while errand['number'] == 1: time.sleep(1)\n"
        "while True: say(problem=''); time.sleep(0.02)\n"
    )

    async def scene() -> None:
        task = asyncio.create_task(running.run(asyncio.Event()))
        await until(lambda: "has sent no message for" in sent_problems(running).get(2, ""))
        await until(lambda: "a process hangs and is killed" in caplog.text)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(asyncio.wait_for(scene(), 60))
    assert [] == running._pids()


def test_a_process_reports_its_health_and_receives_that_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """It repeats its health, sends metrics on request, and stops when the channel closes."""
    monkeypatch.setattr(peers, "_BEAT_SECONDS", 0.01)

    async def scene() -> None:
        ours, theirs = socket.socketpair()
        parent, metrics, stop = await Channel.open(ours), Metrics(), asyncio.Event()
        metrics.reconciled("half \ud800")
        peers = Peers(theirs, 2)
        assert "the health of the other processes is not known yet" == peers.problem()
        problems = iter(["starting"])
        following = asyncio.create_task(peers.follow(lambda: next(problems, ""), metrics, stop))
        assert [{"problem": "starting"}, {"problem": ""}] == [await parent.receive() for _ in range(2)]
        parent.send({"others": "process 1 of 2: is not there"})
        await until(lambda: "process 1 of 2: is not there" == peers.problem())
        parent.send({"ask": "metrics"})
        while "readings" not in (message := await parent.receive() or {}):
            pass
        labels = [labels for each in message["readings"] for labels, _ in each["numbers"]]
        await parent.close()
        assert ["half \ud800"] in labels
        await asyncio.wait_for(following, 60)
        assert stop.is_set()

    asyncio.run(scene())


@pytest.mark.parametrize("sent", [b"no message\n", b"[]\n", b"half a mess", b""])
def test_an_invalid_message_ends_the_channel(sent: bytes) -> None:
    """The channel treats it like a closed connection."""

    async def scene() -> None:
        ours, theirs = socket.socketpair()
        channel = await Channel.open(ours)
        with theirs:
            theirs.sendall(sent)
        assert await channel.receive() is None
        await channel.close()
        channel.send({"nobody": "hears"})

    asyncio.run(scene())
