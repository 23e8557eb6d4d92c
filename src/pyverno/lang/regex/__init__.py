"""Regular expressions of policy authors: RE2 with Go's limits and error texts."""

from __future__ import annotations
