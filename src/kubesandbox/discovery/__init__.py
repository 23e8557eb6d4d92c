"""Discovery and OpenAPI documents of what the server serves."""

from __future__ import annotations
