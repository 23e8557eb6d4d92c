"""`pyverno fix`: policies and test suites rewritten to the current schema."""

from __future__ import annotations
