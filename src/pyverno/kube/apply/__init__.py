"""Server-side apply: structured merge over schema trees, field sets, managed fields."""

from __future__ import annotations
