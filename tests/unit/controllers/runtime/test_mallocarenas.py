"""Threads of a controller share few heaps of the C library."""

from __future__ import annotations

import subprocess
import sys

import pytest

_PROGRAM = """
import ctypes, sys, threading

library = ctypes.CDLL(None)
if not hasattr(library, "malloc_info"):
    sys.exit(9)
if "limited" in sys.argv:
    from pyverno.controllers.runtime.mallocarenas import limit_arenas
    limit_arenas()
together, kept = threading.Barrier(9), []

def work():
    kept.append([bytearray(2000) for _ in range(500)])
    together.wait()

for _ in range(8):
    threading.Thread(target=work).start()
together.wait()
library.fopen.restype = ctypes.c_void_p
stream = ctypes.c_void_p(library.fopen(b"/dev/stdout", b"w"))
library.malloc_info(0, stream)
library.fclose(stream)
"""


@pytest.mark.parametrize(("arguments", "heaps"), [((), 3), (("limited",), 2)])
def test_threads_share_two_heaps(arguments: tuple[str, ...], heaps: int) -> None:
    """Without the limit each of eight threads that allocate at the same time has one of its own."""
    done = subprocess.run([sys.executable, "-c", _PROGRAM, *arguments], capture_output=True, text=True, check=False)
    if done.returncode == 9:
        pytest.skip("the C library does not tell its heaps")
    found = done.stdout.count("<heap nr=")
    assert (found <= heaps) if arguments else (found >= heaps)
