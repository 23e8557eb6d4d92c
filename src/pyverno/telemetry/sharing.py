"""Work that is done once for all callers that wait for it at the same time; the result is not kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

__all__ = ["Shared"]

_T = TypeVar("_T")


class Shared(Generic[_T]):
    """Runs `make` for the first caller, and gives its result to all callers that come before it is done."""

    def __init__(self, make: Callable[[], Coroutine[Any, Any, _T]]) -> None:
        self._make = make
        self._task: asyncio.Task[_T] | None = None

    async def get(self) -> _T:
        """Return what is made now; a caller that goes away does not stop it for the others."""
        if self._task is None:
            self._task = asyncio.create_task(self._make())
            self._task.add_done_callback(self._forget)
        return await asyncio.shield(self._task)

    def _forget(self, task: asyncio.Task[_T]) -> None:
        self._task = None
        if not task.cancelled():
            task.exception()  # the callers that wait for it raise it
