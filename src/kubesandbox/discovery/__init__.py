"""Discovery and OpenAPI documents of the served resources."""

from __future__ import annotations
