"""The checks of the analysis, one module each; see `analysis.registry`."""

from __future__ import annotations
