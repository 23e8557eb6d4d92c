"""The profiling port: thread stacks, CPU profiles and memory allocations over plain HTTP.

Disabled by default, bound to loopback unless an address is given, and never on the webhook's port. Profiles contain
function names and line numbers, never values.
"""

from __future__ import annotations

import asyncio
import cProfile
import gc
import io
import pstats
import sys
import tempfile
import threading
import traceback
import tracemalloc
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from types import FrameType
from typing import Any, Final

from aiohttp import web

from pyverno.controllers.runtime.process import HttpPort
from pyverno.threads import in_thread

# trust rows: probe

__all__ = ["ProfilingPort"]

_LOOPBACK: Final = "127.0.0.1"
_SECONDS: Final = 30.0
_MAX_SECONDS: Final = 300.0
_SAMPLE_SECONDS: Final = 0.01
_MOST_LINES: Final = 100
_HELP: Final = """\
/cpu?seconds=30                 collapsed stacks of all threads, sampled (flamegraph.pl, speedscope)
/cpu?seconds=30&format=pstats   calls of the event loop's thread, for `python -m pstats`; slows it down
/cpu?seconds=30&format=text     the same as a table
/heap?seconds=30                memory allocated meanwhile and still in use, by line; slows everything down
/objects                        number of objects of each type
/threads                        stack of every thread and task
"""


class ProfilingPort(HttpPort):
    """Serves profiles over plain HTTP; an async context manager. Port 0 means any free port."""

    def __init__(self, address: str = "", port: int = 6060) -> None:
        """Take the address and port to listen on; the address defaults to loopback."""
        super().__init__(address or _LOOPBACK, port)
        self._is_busy = False

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method != "GET":
            return web.Response(status=405, text="profiles are read by GET\n")
        profile = _PROFILES.get(request.path)
        if profile is None:
            return web.Response(status=200 if request.path == "/" else 404, text=_HELP)
        try:
            seconds = _seconds(request.query)
        except ValueError as error:
            return web.Response(status=400, text=f"{error}\n")
        if self._is_busy:  # two at once would measure each other
            return web.Response(status=409, text="another profile is in progress\n")
        self._is_busy = True
        try:
            return await profile(seconds, request.query.get("format", ""))
        finally:
            self._is_busy = False


def _seconds(query: Mapping[str, str]) -> float:
    text = query.get("seconds", str(_SECONDS))
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found <= _MAX_SECONDS:
        raise ValueError(f"seconds must be a number above 0 and at most {_MAX_SECONDS:g}")
    return found


async def _cpu(seconds: float, form: str) -> web.Response:
    match form:
        case "" | "collapsed":
            stop = threading.Event()
            try:
                stacks = await in_thread(_sample, seconds, stop)
            finally:
                stop.set()  # the client may have disconnected
            return web.Response(text="".join(f"{stack} {count}\n" for stack, count in stacks.most_common()))
        case "pstats" | "text":
            profile = cProfile.Profile()
            profile.enable()
            try:
                await asyncio.sleep(seconds)
            finally:
                profile.disable()
            return await in_thread(_render_profile, profile, form)
    return web.Response(status=400, text="format must be collapsed, pstats or text\n")


def _render_profile(profile: cProfile.Profile, form: str) -> web.Response:
    if form == "text":
        text = io.StringIO()
        pstats.Stats(profile, stream=text).sort_stats("cumulative").print_stats(_MOST_LINES)
        return web.Response(text=text.getvalue())
    with tempfile.NamedTemporaryFile(suffix=".pstats") as file:
        profile.dump_stats(file.name)
        body = file.read()
    headers = {"Content-Disposition": 'attachment; filename="cpu.pstats"'}
    return web.Response(body=body, content_type="application/octet-stream", headers=headers)


def _sample(seconds: float, stop: threading.Event) -> Counter[str]:
    """Sample the stacks of all other threads every hundredth of a second, until the time is up or `stop` is set."""
    stacks: Counter[str] = Counter()
    own = threading.get_ident()
    for _ in range(max(int(seconds / _SAMPLE_SECONDS), 1)):
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        for ident, frame in sys._current_frames().items():
            if ident != own:
                stacks[_collapse(names.get(ident, "?"), frame)] += 1
        if stop.wait(_SAMPLE_SECONDS):
            break
    return stacks


def _collapse(thread: str, frame: FrameType | None) -> str:
    calls: list[str] = []
    while frame is not None:
        code = frame.f_code
        calls.append(f"{frame.f_globals.get('__name__', '?')}:{code.co_qualname}")
        frame = frame.f_back
    return ";".join(part.replace(";", ",").replace(" ", "_") for part in (thread, *reversed(calls)))


async def _heap(seconds: float, _form: str) -> web.Response:
    tracemalloc.start()
    try:
        await asyncio.sleep(seconds)
        return web.Response(text=await in_thread(_format_allocations, seconds))
    finally:
        tracemalloc.stop()


def _format_allocations(seconds: float) -> str:
    found = tracemalloc.take_snapshot().statistics("lineno")
    total = sum(each.size for each in found)
    lines = [f"{total} bytes in {sum(each.count for each in found)} blocks, allocated within {seconds:g} seconds"]
    lines += [f"{each.size:>12} bytes {each.count:>8} blocks  {each.traceback}" for each in found[:_MOST_LINES]]
    return "\n".join(lines) + "\n"


async def _objects(_seconds: float, _form: str) -> web.Response:
    found = Counter(f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.get_objects())
    return web.Response(text="".join(f"{count:>9} {name}\n" for name, count in found.most_common(_MOST_LINES)))


async def _threads(_seconds: float, _form: str) -> web.Response:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    text = io.StringIO()
    for ident, frame in sys._current_frames().items():
        text.write(f"thread {names.get(ident, '?')}\n")
        text.writelines(traceback.format_stack(frame))
        text.write("\n")
    for task in asyncio.all_tasks():
        text.write(f"task {task.get_name()}\n")
        for frame in task.get_stack():
            text.writelines(traceback.format_stack(frame, limit=1))
        text.write("\n")
    return web.Response(text=text.getvalue())


_PROFILES: Final[Mapping[str, Callable[[float, str], Coroutine[Any, Any, web.Response]]]] = {
    "/cpu": _cpu,
    "/heap": _heap,
    "/objects": _objects,
    "/threads": _threads,
}
