"""Conditions of deny rules and preconditions, as tests in CEL: one module for each family of operators.

Kyverno's operators never fail: incomparable values give false. Tests of texts that have to be read as something else
(durations, quantities, versions) are guarded, so that CEL does not fail either.
"""

from __future__ import annotations

from pyverno.compiler.migration.conditions.blocks import condition, conditions

__all__ = ["condition", "conditions"]
