"""The playground: evaluates policies and resources given as texts, in a process of its own."""

from __future__ import annotations
