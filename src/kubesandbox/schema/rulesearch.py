"""Whether a schema has rules in CEL, so that what evaluates them is loaded only where there are some."""

from __future__ import annotations

from pyverno.kube.json import JSON

__all__ = ["RULES", "has_rules"]

RULES = "x-kubernetes-validations"


def has_rules(schema: JSON) -> bool:
    """Return whether a schema or any schema below it has rules.

    >>> has_rules({"properties": {"a": {"x-kubernetes-validations": [{"rule": "true"}]}}})
    True
    """
    if isinstance(schema, dict):
        return RULES in schema or any(has_rules(value) for value in schema.values())
    return isinstance(schema, list) and any(has_rules(value) for value in schema)
