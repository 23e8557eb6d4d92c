"""Short garbage collections: long-lived objects are frozen, so that collections do not delay requests.

A full collection visits every object that is not frozen, which takes about 30 milliseconds with a thousand policies,
and no other thread runs meanwhile. The interpreter therefore starts none here; rounds do what is left:

- While few objects have become old since the last freeze, a round collects them. Connections and reviews in progress
  are not frozen, so their reference cycles are freed by the next round.
- When many have, they are what a change of policies or the first use of a policy leaves: the round freezes them
  (`gc.freeze`, which is free) after a collection of the young ones only.
- Garbage that was frozen is freed by a full collection when the memory in use has grown: by an eighth within five
  minutes of a freeze, or at once when it has doubled, as clients could cause.

Reference counting frees frozen objects as ever.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from typing import Final

__all__ = ["keep_collections_short"]

_ROUND_SECONDS: Final = 5.0
_ROUNDS: Final = 60
"""Five minutes."""

_FEW: Final = 1
"""Collections of the middle generation, which leave some 4,200 old objects each: a round collects these."""

_GROWTH: Final = 1 / 8
"""Growth of the memory since the last full collection that demands another one after `_ROUNDS`."""

_MANY: Final = 1_000_000
"""Blocks of memory, about 64 MiB: a growth of so many, and by the double, demands one at once."""

_YOUNG: Final = 700
_MIDDLE: Final = 5
"""Collections of young objects to one of the middle generation, which takes half a millisecond."""

_NEVER: Final = 1_000_000_000


async def keep_collections_short(round_seconds: float = _ROUND_SECONDS) -> None:
    """Collect and freeze new objects in rounds until cancelled."""
    thresholds = gc.get_threshold()
    gc.set_threshold(_YOUNG, _MIDDLE, _NEVER)
    try:
        while True:
            gc.unfreeze()
            gc.collect()
            gc.freeze()
            await _until_stale(round_seconds)
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


async def _until_stale(round_seconds: float) -> None:
    """Run rounds until a full collection is due."""
    # blocks are counted in microseconds: gc.get_freeze_count visits all objects, gc.get_objects disturbs other threads
    known = sys.getallocatedblocks()
    passed = 0  # collections of the middle generation since the last freeze
    rounds = 0  # since the first freeze
    while True:
        await asyncio.sleep(round_seconds)
        passed += gc.get_count()[2]
        is_much = passed > _FEW
        if is_much:
            gc.collect(1)
            gc.freeze()
            passed = 0
        gc.collect()  # after a freeze there is nothing left to visit
        rounds += is_much or rounds > 0
        grown = sys.getallocatedblocks() - known
        if (rounds and grown > max(_MANY, known)) or (rounds >= _ROUNDS and grown > known * _GROWTH):
            return
