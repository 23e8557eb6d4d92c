"""`pyverno apply`: its flags, what it loads, how it judges, and what it prints."""

from __future__ import annotations
