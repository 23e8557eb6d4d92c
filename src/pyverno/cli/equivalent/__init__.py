"""`pyverno equivalent`: two sets of policies held against each other."""

from __future__ import annotations
