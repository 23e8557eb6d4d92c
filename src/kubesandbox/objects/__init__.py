"""The steps of a write: identity, metadata, defaults, patches, subresources, deletion, managed fields."""

from __future__ import annotations
