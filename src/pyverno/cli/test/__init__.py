"""`pyverno test`: suites, expectations, comparison, strict mode, and result tables."""

from __future__ import annotations
