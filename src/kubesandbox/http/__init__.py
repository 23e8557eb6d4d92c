"""HTTP of the API server: connections, requests, bodies, operations, replies."""

from __future__ import annotations
