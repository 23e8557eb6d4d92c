"""`pyverno trust`: the trusted root of a TUF repository as a file, for commands and controllers without a network."""

from __future__ import annotations
