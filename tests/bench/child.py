"""A child process that answers each line of input with a line of JSON.

This module must never know what it runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from types import TracebackType
from typing import Any, Self

__all__ = ["Child"]


class Child:
    """A Python module as a process; `first` is the message that it prints when it is ready."""

    def __init__(self, module: str, *arguments: str, **environment: str) -> None:
        """Start it and wait until it is ready."""
        command = (sys.executable, "-m", module, *arguments)
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}
        )
        self.first = self._read()

    def ask(self, line: str = "") -> Any:
        """Send a line and return the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._read()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it by the end of its input."""
        self._process.communicate(timeout=30)

    def _read(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())
