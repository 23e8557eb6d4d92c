"""`pyverno sandbox`: flags and life of the sandbox process."""

from __future__ import annotations
