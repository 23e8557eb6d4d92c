"""B15: a review in a cluster: few connections, sequential reviews, events and reports written.

What is measured is the processor time of the webhook's process until everything that follows its answers is written.
The API server that it writes to is a stand-in in a process of its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache

from tests.bench.inputs import cel_policy_files, privileged_review, small_review
from tests.bench.server import Child, start_client, start_server
from tests.bench.serving import PATH

__all__ = ["deny_milliseconds", "parse_ratio", "pass_milliseconds", "ratio", "report_milliseconds"]

_CONNECTIONS = 2
_ROUNDS = 5
_REVIEWS = 600
_STILL = 0.02
_CEL = "cel"
_WRITTEN = "constant with a report"


@contextmanager
def _server(sink: Child, kind: str, *arguments: str) -> Iterator[Child]:
    api = f"https://127.0.0.1:{sink.first['port']}"
    with start_server(kind, "--api", api, *arguments, errors=False, API_CERTIFICATE=sink.first["certificate"]) as found:
        yield found


def _path(family: str) -> str:
    if family != _CEL:
        return PATH
    return "/vpol/" + "/".join(path.parent.name for path in cel_policy_files()) + "?timeout=10s"


def _wait_until_written(sink: Child) -> int:
    """Wait until the stand-in gets nothing more; return how many objects it got."""
    before, now = -1, sink.ask()["created"]
    while before != now:
        time.sleep(_STILL)
        before, now = now, sink.ask()["created"]
    return int(now)


def _used(found: Child, sender: Child, sink: Child) -> float:
    before = found.ask()["seconds"]
    sender.ask(f"{_REVIEWS} 0")
    _wait_until_written(sink)
    return float(found.ask()["seconds"] - before) / _REVIEWS * 1e3


@cache
def _milliseconds() -> dict[str, float]:
    """Return the processor time of a review by what it is: that of the slower of the two families of policies."""
    kinds = {"pass": (), "deny": ("--enforce",), "reports": ("--reports",)}
    best: dict[tuple[str, str], float] = {}
    with ExitStack() as stack:
        sink = Child("tests.bench.sink")
        stack.callback(sink.close)
        constants = {"constant": (), _WRITTEN: ("--reports",)}
        pairs = {
            (kind, ""): _pair(stack, _server(sink, "constant", *arguments), "", "pass")
            for kind, arguments in constants.items()
        }
        for family in ("rules", _CEL):
            for kind, arguments in kinds.items():
                flags = (*arguments, *(("--cel",) if family == _CEL else ()))
                pairs[kind, family] = _pair(stack, _server(sink, "full", *flags), family, kind)
        for _ in range(_ROUNDS):
            for key, (found, sender) in pairs.items():
                best[key] = min(best.get(key, float("inf")), _used(found, sender, sink))
    return {kind: max(value for (each, _), value in best.items() if each == kind) for kind, _ in best}


def _pair(stack: ExitStack, started: object, family: str, kind: str) -> tuple[Child, Child]:
    found: Child = stack.enter_context(started)  # type: ignore[arg-type]
    body = privileged_review() if kind == "deny" else small_review()
    return found, stack.enter_context(start_client(found, _CONNECTIONS, body, _path(family)))


def ratio() -> float:
    """B15: a review of a pod that passes, with its report, by a constant answer after which one report is written."""
    return _milliseconds()["reports"] / _milliseconds()[_WRITTEN]


def parse_ratio() -> float:
    """Return the same by a constant answer alone."""
    return _milliseconds()["reports"] / _milliseconds()["constant"]


def pass_milliseconds() -> float:
    """Return the time of a review that passes, without reports."""
    return _milliseconds()["pass"]


def deny_milliseconds() -> float:
    """Return the time of a review that denies, with its events."""
    return _milliseconds()["deny"]


def report_milliseconds() -> float:
    """Return the time of a review that passes, with its report."""
    return _milliseconds()["reports"]
