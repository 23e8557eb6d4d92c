"""Health probes from a separate process, as a kubelet sends them.

The process that sends the load cannot measure them: its event loop writes megabytes between a response and the moment
at which it looks at the clock.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
import sys
import threading
import time
from typing import Final, Self

__all__ = ["Probe"]

_SECONDS: Final = 0.05
_TIMEOUT: Final = 30.0


class Probe:
    """Probes health every 50 milliseconds over one connection while the context is open.

    Afterwards `asked` is the number of probes and `slowest` the longest of them in seconds.
    """

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        self.asked = 0
        self.slowest = 0.0
        self._port = port
        self._authorities = "".join(map(ssl.DER_cert_to_PEM_cert, context.get_ca_certs(binary_form=True)))
        self._process: asyncio.subprocess.Process

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            __name__,
            str(self._port),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(self._authorities).encode() + b"\n")
        assert b"first\n" == await stdout.readline()
        return self

    async def __aexit__(self, *_: object) -> None:
        written, _ = await self._process.communicate(b"")  # the end of its input ends it
        assert 0 == self._process.returncode
        self.asked, self.slowest = json.loads(written)


def main(port: int) -> None:
    """Probe until the input ends; write a line after the first probe, and the figures at the end."""
    context = ssl.create_default_context(cadata=json.loads(sys.stdin.readline()))
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=_TIMEOUT, context=context)
    asked, slowest = 0, 0.0
    while not ended.is_set():
        began = time.monotonic()
        connection.request("GET", "/health/liveness")
        with connection.getresponse() as reply:
            reply.read()
            assert 200 == reply.status
        slowest = max(slowest, time.monotonic() - began)
        asked += 1
        if asked == 1:
            print("first", flush=True)
        ended.wait(_SECONDS)
    print(json.dumps([asked, slowest]), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
