"""`pyverno impact`: the effect of a change of policies on objects or on recorded requests."""

from __future__ import annotations
