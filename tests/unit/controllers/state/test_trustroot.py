"""The trusted root of an installation that follows a TUF repository."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from pyverno.controllers.state.trustroot import FollowedRoot, TufRepository
from pyverno.errors import HostUnavailableError
from pyverno.images.verification.trust import TrustRoot, read_trust_root
from tests.authority.signing import SigningServices
from tests.authority.tuf import ROOT, Repository, serve

OTHER = SigningServices().trusted_root()


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository that holds a trusted root."""
    made = Repository(tmp_path)
    made.publish()
    return made


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.005)


def _follow(repository: Repository, mirror: str, root: bytes = b"") -> FollowedRoot:
    metadata = root or repository.sign(repository.root)
    return FollowedRoot(TufRepository(mirror, metadata), refresh=0.01, retry=0.01)


def _now(followed: FollowedRoot) -> TrustRoot | None:
    with suppress(HostUnavailableError):
        return followed.current()
    return None


def test_a_root_that_is_published_is_the_next_one(repository: Repository) -> None:
    """Reviews read what was fetched last, without waiting for the repository."""

    async def play() -> None:
        with serve(repository.folder) as mirror:
            followed = _follow(repository, mirror)
            task = asyncio.create_task(followed.run())
            await _until(lambda: _now(followed) == read_trust_root(ROOT))
            repository.publish(OTHER)
            await _until(lambda: _now(followed) == read_trust_root(OTHER))
            task.cancel()

    asyncio.run(play())


def test_a_repository_that_fails_leaves_the_last_root(repository: Repository, caplog: pytest.LogCaptureFixture) -> None:
    """An older state is refused, with the reason in the log."""

    async def play() -> TrustRoot | None:
        with serve(repository.folder) as mirror:
            repository.publish()
            followed = _follow(repository, mirror)
            task = asyncio.create_task(followed.run())
            await _until(lambda: _now(followed) is not None)
            repository.version = 0
            repository.publish(OTHER)
            await _until(lambda: bool(caplog.records))
            task.cancel()
            return _now(followed)

    assert read_trust_root(ROOT) == asyncio.run(play())
    assert {"the trusted root cannot be fetched"} == {each.getMessage() for each in caplog.records}


def test_an_unexpected_exception_of_the_library_is_a_problem_of_the_repository() -> None:
    """It would end the task that follows the repository, and with it the process."""
    answers = [KeyError("signed"), RecursionError(), ROOT]
    problems: list[str] = []

    def fetch(_mirror: str, _name: str, _root: bytes, _folder: Path) -> bytes:
        with pytest.raises(HostUnavailableError) as caught:
            followed.current()
        problems.append(caught.value.message)
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def play() -> TrustRoot | None:
        task = asyncio.create_task(followed.run())
        await _until(lambda: task.done() or _now(followed) is not None)
        task.cancel()
        return _now(followed)

    followed = FollowedRoot(TufRepository("https://tuf.example.com", b""), refresh=60, retry=0.01, fetch=fetch)
    assert read_trust_root(ROOT) == asyncio.run(play())
    failed = "the TUF library fails on what https://tuf.example.com serves"
    reasons = ["the first answer is awaited", failed, failed]
    assert [f"no trusted root was fetched from https://tuf.example.com yet: {each}" for each in reasons] == problems


def test_a_repository_that_never_answers_is_given_up(caplog: pytest.LogCaptureFixture, repository: Repository) -> None:
    """One fetch at a time, so that a silent repository holds one thread."""

    async def play() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            mirror = f"http://127.0.0.1:{silent.getsockname()[1]}"
            metadata = TufRepository(mirror, repository.sign(repository.root))
            task = asyncio.create_task(FollowedRoot(metadata, retry=0.01, most=0.01).run())
            await _until(lambda: "an earlier fetch has not ended" in errors())
            task.cancel()

    def errors() -> list[str]:
        return [getattr(each, "fields", {}).get("error", "") for each in caplog.records]

    asyncio.run(play())
    assert "no answer within 0.01 seconds" == errors()[0]


def test_before_the_first_root_the_reason_is_the_error(repository: Repository) -> None:
    """A rule that needs the root is an error, never a signature without authorities."""

    async def play() -> str:
        with serve(repository.folder) as mirror:
            followed = _follow(repository, mirror, b"{}")
            with pytest.raises(HostUnavailableError, match=r"yet: the first answer is awaited$"):
                followed.current()
            task = asyncio.create_task(followed.run())
            await _until(lambda: "awaited" not in followed._problem)
            task.cancel()
            with pytest.raises(HostUnavailableError) as caught:
                followed.current()
            return caught.value.message.replace(mirror, "MIRROR")

    assert asyncio.run(play()).startswith(
        "no trusted root was fetched from MIRROR yet: the TUF repository MIRROR proves nothing: "
    )
