"""What stays in memory is set aside, so that no collection of garbage holds up requests for long.

Python looks at everything that lives when it looks for cycles, which takes some 20 milliseconds with a thousand
policies. Here everything is set aside in rounds (`gc.freeze`, which costs nothing): collections between the rounds are
about the objects of requests. Reference counts work on what is set aside as ever; cycles in it are found once an hour,
when everything is looked at again. This module must never know what lives.
"""

from __future__ import annotations

import asyncio
import gc
from typing import Final

__all__ = ["keep_collections_short"]

_ROUND_SECONDS: Final = 5.0
_ROUNDS_PER_HOUR: Final = 720


async def keep_collections_short() -> None:
    """Set aside what is new in rounds until this is cancelled; once an hour everything is looked at."""
    try:
        while True:
            gc.unfreeze()
            gc.collect()
            for _ in range(_ROUNDS_PER_HOUR):
                gc.freeze()
                await asyncio.sleep(_ROUND_SECONDS)
    finally:
        gc.unfreeze()
