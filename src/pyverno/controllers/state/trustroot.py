"""The trusted root of an installation: read from a file at the start, or followed in a TUF repository.

Reviews read what was fetched last, and never wait for the repository.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pyverno.errors import HostError, HostUnavailableError, VerificationError
from pyverno.images.verification.trust import TrustRoot, read_trust_root
from pyverno.value import dataclass

__all__ = ["FollowedRoot", "TufRepository"]

log = logging.getLogger("pyverno.trust")

_TARGET: Final = "trusted_root.json"
_REFRESH_SECONDS: Final = 3600.0
_RETRY_SECONDS: Final = 30.0
_MOST_SECONDS: Final = 300.0


Fetch = Callable[[str, str, bytes, Path], bytes]
"""Returns a target of a mirror by its name, with the first root metadata, and a folder for the metadata it keeps."""


@dataclass(frozen=True, slots=True)
class TufRepository:
    """A repository of trusted roots: its address, and root metadata that its own must lead to."""

    mirror: str
    root: bytes


class FollowedRoot:
    """Fetches the trusted root of a repository every hour; after a failure it stays as it was."""

    def __init__(
        self,
        repository: TufRepository,
        *,
        refresh: float = _REFRESH_SECONDS,
        retry: float = _RETRY_SECONDS,
        most: float = _MOST_SECONDS,
        fetch: Fetch | None = None,
    ) -> None:
        """Take the repository, the pauses in seconds after a success and after a failure, and the longest fetch.

        `fetch` reads a target; None is the TUF library, which is imported with the first fetch.
        """
        self._repository = repository
        self._fetch_target = fetch
        self._refresh = refresh
        self._retry = retry
        self._most = most
        self._running = threading.Lock()
        self._root: TrustRoot | None = None
        self._problem = "the first answer is awaited"

    def current(self) -> TrustRoot:
        """Return what was fetched last; raises HostUnavailableError with the reason before the first success."""
        if self._root is None:
            raise HostUnavailableError(
                f"no trusted root was fetched from {self._repository.mirror} yet: {self._problem}"
            )
        return self._root

    async def run(self) -> None:
        """Follow the repository until cancelled.

        Metadata is kept meanwhile, so that an older state of the repository is refused.
        """
        with TemporaryDirectory(prefix="pyverno-tuf-", ignore_cleanup_errors=True) as folder:
            while True:
                await asyncio.sleep(self._retry if await self._update(Path(folder)) else self._refresh)

    async def _update(self, folder: Path) -> str:
        """Fetch once; return why that failed, the empty text otherwise."""
        try:
            async with asyncio.timeout(self._most):
                found = read_trust_root(await _run_in_thread(lambda: self._fetch(folder)))
        except (HostError, VerificationError) as error:
            return self._note_problem(error.message)
        except TimeoutError:
            return self._note_problem(f"no answer within {self._most:g} seconds")
        if found != self._root:  # cached verifications count for the same object only
            self._root = found
        self._problem = ""
        return ""

    def _note_problem(self, text: str) -> str:
        self._problem = text
        fields = {"mirror": self._repository.mirror, "error": text}
        log.warning("the trusted root cannot be fetched", extra={"fields": fields})
        return text

    def _fetch(self, folder: Path) -> bytes:
        if not self._running.acquire(blocking=False):
            raise HostError("an earlier fetch has not ended")
        try:
            if self._fetch_target is None:
                from pyverno.registry.tufrepository import fetch_target

                self._fetch_target = fetch_target
            return self._fetch_target(self._repository.mirror, _TARGET, self._repository.root, folder)
        except HostError:
            raise
        except Exception as error:  # what a repository serves may break the library in ways that it does not document
            raise HostError(f"the TUF library fails on what {self._repository.mirror} serves") from error
        finally:
            self._running.release()


async def _run_in_thread(call: Callable[[], bytes]) -> bytes:
    """Return the result of a call in a thread that the end of the process does not wait for."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[bytes] = loop.create_future()

    def settle(result: bytes, error: Exception | None) -> None:
        if not done.done():
            if error is None:
                done.set_result(result)
            else:
                done.set_exception(error)

    def work() -> None:
        result, failed = b"", None
        try:
            result = call()
        except Exception as error:  # raised where the result is awaited
            failed = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, failed)

    threading.Thread(target=work, name="tuf", daemon=True).start()
    return await done
