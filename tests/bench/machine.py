"""The machine that figures were measured on, in words: figures of two machines are not compared by accident.

This module must never reveal the machine's owner or name.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path

__all__ = ["described"]


def described() -> dict[str, str]:
    """Return the model of the processor, how many of its cores may be used, and the versions of Python and the kernel.

    `load` is how many processes wanted a core in the last minute: figures of a busy machine are worth less.
    """
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {
        "cpu": _model(),
        "cores": str(usable),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "kernel": f"{platform.system()} {platform.release()}",
        "load": f"{os.getloadavg()[0]:.1f}",
    }


def _model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
