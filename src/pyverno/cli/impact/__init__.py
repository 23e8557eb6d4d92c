"""`pyverno impact`: what a change of policies would do to objects, or to recorded requests."""

from __future__ import annotations
