"""`pyverno create`: templates of files for the command line and for Kyverno."""

from __future__ import annotations
