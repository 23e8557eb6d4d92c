"""The HTTP server of the pages: routes, security headers, errors as JSON, live updates."""

from __future__ import annotations
