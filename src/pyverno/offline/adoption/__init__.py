"""Checks on repositories with a past: suppressions in manifests, baselines, changed files, rendered charts, schemas.

The modules read files and run the user's git, helm and kustomize; they never judge.
"""

from __future__ import annotations
