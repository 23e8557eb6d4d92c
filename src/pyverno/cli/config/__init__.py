"""Configuration files: flags of `apply`, `lint` and `test` that a repository keeps, and `pyverno config`."""

from __future__ import annotations
