"""The processes of the playground."""

from __future__ import annotations

import asyncio

import pytest

from pyverno.errors import HostError, UsageError
from pyverno.ui.playground.workers import PlaygroundWorkers, _start
from tests.support import documents
from tests.unit.ui.playground.test_review import POD

GOOD = {"policies": documents.LATEST, "resources": POD}


def test_reviews_share_a_process() -> None:
    """The first starts it, the next find it ready."""

    async def play() -> None:
        async with PlaygroundWorkers(workers=1) as workers:
            answers = [await workers.review(GOOD) for _ in range(3)]
            assert answers[0] == answers[1] == answers[2]
            assert answers[0]["reviews"]

    asyncio.run(play())


def test_a_process_announces_once_that_it_has_loaded() -> None:
    """The time of a review begins after it: on a busy machine the start takes longer than a review may."""

    async def play() -> int:
        worker = await _start()
        try:
            await worker.begin()
            await worker.begin()
            answer = await worker.ask({"review": GOOD})
        finally:
            await worker.end()
        return len(answer["answer"]["reviews"])

    assert 1 == asyncio.run(play())


def test_a_late_review_is_ended_and_the_next_one_works() -> None:
    """The process of the late review is ended, the server keeps running."""

    async def play() -> None:
        async with PlaygroundWorkers(workers=1, seconds=0.001) as workers:
            with pytest.raises(HostError, match="longer than"):
                await workers.review(GOOD)
            workers._seconds = 30.0
            assert (await workers.review(GOOD))["reviews"]

    asyncio.run(play())


def test_a_review_that_takes_too_much_memory_ends_its_process_only() -> None:
    """Seventy megabytes of aliases, and more resources than fit."""

    async def play() -> None:
        async with PlaygroundWorkers(workers=1, seconds=60.0) as workers:
            huge = {"policies": documents.LATEST, "resources": "[" * 200_000}
            answer = await workers.review(huge)
            assert [] == answer["reviews"]
            assert answer["problems"]
            assert (await workers.review(GOOD))["reviews"]

    asyncio.run(play())


def test_a_bad_request_is_the_visitor_s_error() -> None:
    """The worker process survives a malformed request."""

    async def play() -> None:
        async with PlaygroundWorkers(workers=1) as workers:
            with pytest.raises(UsageError, match="operation"):
                await workers.review({"operation": "x"})
            assert (await workers.review(GOOD))["reviews"]

    asyncio.run(play())


def test_a_worker_gets_nothing_of_the_server_s_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens and proxies of the server are no business of a visitor's policy."""
    monkeypatch.setenv("SECRET_TOKEN", "canary")

    async def play() -> str:
        worker = await _start()
        await worker.begin()
        await worker.ask({})
        path = f"/proc/{worker._process.pid}/environ"
        with open(path, "rb") as file:  # noqa: PTH123 - a small file of the kernel
            found = file.read()
        await worker.end()
        return found.decode()

    assert "canary" not in asyncio.run(play())


@pytest.mark.parametrize("answer", [b"garbage", b"[]", b"{}", b'{"answer": 1}', b'{"error": {}}', b"\xff", b""])
def test_a_process_that_answers_nonsense_is_replaced(answer: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The visitor gets an error, and the next review another process."""
    code = (
        "import sys; out = sys.stdout.buffer; out.write(bytes(4)); out.flush(); sys.stdin.buffer.read(4);"
        f"out.write(({len(answer)}).to_bytes(4, 'big') + {answer!r}); out.flush(); sys.stdin.buffer.read()"
    )

    async def play() -> None:
        async with PlaygroundWorkers(workers=1) as workers:
            await asyncio.gather(*workers._spare)
            with monkeypatch.context() as patch:
                patch.setattr("pyverno.ui.playground.workers._WORDS", ("-c", code))
                workers._free.appendleft(await _start())
            with pytest.raises(HostError, match="no sound answer"):
                await workers.review(GOOD)
            assert (await workers.review(GOOD))["reviews"]

    asyncio.run(play())


@pytest.mark.parametrize("fault", [OSError(12, "Cannot allocate memory"), PermissionError(13, "Permission denied")])
def test_a_process_that_cannot_start_is_an_error_of_one_review(fault: OSError, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the reason of the system; the next review tries again."""

    async def refuse(*_: object, **__: object) -> None:
        raise fault

    async def play() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(asyncio, "create_subprocess_exec", refuse)
            async with PlaygroundWorkers(workers=1) as workers:
                with pytest.raises(HostError, match="cannot start a process"):
                    await workers.review(GOOD)
                patch.undo()
                assert (await workers.review(GOOD))["reviews"]

    asyncio.run(play())
