"""Types of kinds without a definition, inferred from rules and examples.

A rule that compares `spec.mode` with a text reads a text there. What rules show of a kind becomes a definition, by
which the rule is converted and objects are generated. It is an assumption, which conversions that rest on it name.
"""

from pyverno.compiler.migration.inference.definitions import infer_definitions, known_definitions, read_rule
from pyverno.compiler.migration.inference.evidence import Evidence

__all__ = ["Evidence", "infer_definitions", "known_definitions", "read_rule"]
