"""`pyverno equivalent`: a search for objects on which two sets of policies differ."""

from __future__ import annotations
