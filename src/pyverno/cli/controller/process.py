"""One of several processes of `pyverno controller admission`, started by `controllers.runtime.processgroup`.

Its only argument is the number of an open socket; the flags come from there.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from typing import Any

from pyverno.cli.args.records import unpacked
from pyverno.cli.controller.admission import assembled, settings_of
from pyverno.cli.controller.admissionflags import AdmissionFlags
from pyverno.cli.controller.services import access_of, begin_log
from pyverno.cli.errors import guarded
from pyverno.controllers.runtime.process import run_process
from pyverno.controllers.runtime.processgroup.peers import Peers
from pyverno.errors import HostError
from pyverno.telemetry.metrics import Metrics

# trust rows: command-line, environment, own-process

__all__ = ["main"]


def main(words: list[str]) -> int:
    """Run until the parent process stops this one or ends; returns the exit code."""
    return guarded(lambda: _run(socket.socket(fileno=int(words[0]))))


def _run(end: socket.socket) -> None:
    message = _first_message(end)
    flags = unpacked(AdmissionFlags, message["flags"])
    number = int(message["number"])
    begin_log(flags)
    access = access_of(flags, os.environ)
    settings = settings_of(flags, os.environ).share(number, int(message["of"]))
    metrics, peers = Metrics(), Peers(end, number)
    controller, services = assembled(flags, access, settings, metrics, peers)

    async def work(stop: asyncio.Event) -> None:
        following = asyncio.create_task(peers.follow(controller.own_problem, metrics, stop))
        try:
            await controller.run(stop)
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    run_process(work, services)


def _first_message(end: socket.socket) -> dict[str, Any]:
    """Return the first message, which holds flags and number; nothing after it is read."""
    with end.makefile("rb", buffering=0) as stream:
        line = stream.readline()
    if not line:
        raise HostError("the parent process is gone")
    found: dict[str, Any] = json.loads(line)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
