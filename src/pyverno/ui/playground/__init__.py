"""The playground: policies and resources as texts in, what the engine says about them out; in a process of its own."""

from __future__ import annotations
