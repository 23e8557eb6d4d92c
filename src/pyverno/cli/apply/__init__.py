"""`pyverno apply`: flags, inputs, reviews and output."""

from __future__ import annotations
