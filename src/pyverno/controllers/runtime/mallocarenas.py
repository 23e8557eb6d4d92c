"""Few heaps of the C library: what threads have freed is used again by all of them.

glibc gives each thread a heap of its own, up to eight for each core, and keeps what is freed in it. Threads that
compile policies leave megabytes each. Python's own lock lets few of them allocate at a time: few heaps are enough.
"""

from __future__ import annotations

from typing import Final

__all__ = ["limit_arenas"]

_M_ARENA_MAX: Final = -8
_ARENAS: Final = 2


def limit_arenas() -> None:
    """Let all threads of this process share two heaps, where the C library has such a limit (glibc)."""
    import ctypes  # only processes of controllers need it

    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_M_ARENA_MAX, _ARENAS)
