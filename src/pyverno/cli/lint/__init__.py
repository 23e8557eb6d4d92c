"""`pyverno lint`: what is probably wrong in policies that Kyverno accepts."""

from __future__ import annotations
