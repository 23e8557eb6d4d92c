"""Lowering of policies written in CEL: environments, expressions, constraints, and type checks."""
