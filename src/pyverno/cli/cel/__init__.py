"""`pyverno cel`: evaluation, checking and function reference of CEL expressions."""

from __future__ import annotations
