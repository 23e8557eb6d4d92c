"""Storage of objects: store, journal, lists, watches, field selectors."""

from __future__ import annotations
