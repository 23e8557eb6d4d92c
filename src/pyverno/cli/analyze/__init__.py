"""`pyverno analyze`: what policies do together."""

from __future__ import annotations
