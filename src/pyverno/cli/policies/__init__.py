"""`pyverno policies`: the policy library that comes with pyverno."""

from __future__ import annotations
