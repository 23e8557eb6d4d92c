"""Conversion of ClusterPolicies and what goes with them to policies in CEL: one module per feature of the old dialect.

A feature becomes CEL that decides alike on every object that an API server admits, or raises `UnconvertibleError` with
the field, the reason and the next step. Conversion never guesses. What it returns are documents for `pyverno.compiler`
like any other; `pyverno.compiler.equivalence` judges them against their source.
"""

from __future__ import annotations
