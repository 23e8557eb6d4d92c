"""Field paths: chains of keys and indexes that cost next to nothing until they are printed.

A place is None (the root) or a pair of the place around it and a key or an index.
"""

from __future__ import annotations

from typing import TypeAlias

__all__ = ["Place", "place_text"]

Place: TypeAlias = "tuple[Place, str | int] | None"


def place_text(place: Place) -> str:
    """Write a place as Kubernetes does.

    >>> place_text((((None, "spec"), "containers"), 0))
    'spec.containers[0]'
    """
    steps: list[str] = []
    while place is not None:
        place, step = place
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}")
    return "".join(reversed(steps)).removeprefix(".")
