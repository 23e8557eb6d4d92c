"""`pyverno ui`: reports and playground in a browser."""

from __future__ import annotations
