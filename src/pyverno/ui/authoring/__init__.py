"""Completion and documentation for texts that are being written: policies, resources and their expressions.

Field names come from schemas, functions from their own declarations. This package must never evaluate an expression,
and takes texts that are not valid YAML yet.
"""

from __future__ import annotations
