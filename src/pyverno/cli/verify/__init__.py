"""`pyverno verify`: the signatures and attestations of one image, and every check that they passed or failed."""

from __future__ import annotations
