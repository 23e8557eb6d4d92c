"""`pyverno migrate`: policies of the old dialect become policies in CEL; objects are stored at a new version."""

from __future__ import annotations
