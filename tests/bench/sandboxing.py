"""`python -m tests.bench.sandboxing [FOLDER]`: a sandbox in a process of its own, which prints its resource usage.

Its objects are those in the folder, if one is given. Prints its address and credentials as JSON; then each line on
stdin is answered by the processor time and the memory in use. This module must never measure.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from pathlib import Path
from time import process_time

from kubesandbox import Sandbox

__all__: list[str] = []


async def _run(folder: Path | None) -> None:
    # without controllers: what is measured is the server, not what happens to pods afterwards
    async with Sandbox(controllers=False, data_dir=folder) as sandbox:
        print(json.dumps({"kubeconfig": sandbox.kubeconfig}), flush=True)
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while await reader.readline():
            print(json.dumps({"seconds": process_time(), "bytes": _resident()}), flush=True)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    asyncio.run(_run(Path(sys.argv[1]) if len(sys.argv) > 1 else None))
