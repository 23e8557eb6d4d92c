"""What a write does to an object: identity, metadata, defaults, patches, subresources, deletion, managed fields."""

from __future__ import annotations
