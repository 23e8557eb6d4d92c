"""Several processes of one controller that share a port: their start, supervision and messages."""

from __future__ import annotations
