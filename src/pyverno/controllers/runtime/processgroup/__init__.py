"""Several processes of one controller that share a port: how they are started, watched, and speak with each other."""

from __future__ import annotations
