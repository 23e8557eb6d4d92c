"""Writes the generated parts of the Helm charts: facts of `pyverno.install`, schemas of values, library policies."""

from __future__ import annotations
