"""A sandbox in its own process, which can be killed and restarted at the same address with the same objects.

This module must send the sandbox no request other than its readiness check.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Self

from tests.e2e.admission.deployment import until
from tests.support.ports import free_port

__all__ = ["ApiServer"]


class ApiServer:
    """An async context manager that leaves no process behind."""

    def __init__(self, folder: Path) -> None:
        """Take the folder for its data, its kubeconfig and its log."""
        self.port = free_port()
        self.kubeconfig = folder / "kubeconfig"
        self._folder = folder
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kill()

    async def start(self) -> None:
        """Start it and wait until it listens."""
        command = [
            *(sys.executable, "-m", "pyverno", "sandbox", "--no-kubelet", "--port", str(self.port)),
            *("--data-dir", str(self._folder / "data"), "--kubeconfig", str(self.kubeconfig)),
        ]
        with (self._folder / "apiserver.log").open("ab") as stream:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=asyncio.subprocess.DEVNULL, stdout=stream, stderr=stream
            )
        self._process = process

        async def listens() -> bool:
            assert process.returncode is None, (self._folder / "apiserver.log").read_text()
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
            except OSError:
                return False
            writer.close()
            return self.kubeconfig.exists()

        await until("the API server listens", listens)

    async def kill(self) -> None:
        """End it without notice."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
