"""The longest name of an object, which is also the longest text that any cache keeps.

Caches of the names, kinds and small values that requests repeat save time; a cache of longer texts would only keep what
a request sent. Functions bypass their cache for longer texts.
"""

from __future__ import annotations

from typing import Final

__all__ = ["MAX_NAME"]

MAX_NAME: Final = 253
"""Characters of the longest name of an object in Kubernetes."""
