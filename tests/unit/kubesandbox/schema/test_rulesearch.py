"""Tests of `schema.rulesearch`."""

from __future__ import annotations

from kubesandbox.schema.rulesearch import RULES, has_rules


def test_rules_are_found_at_any_depth() -> None:
    """Rules in lists of schemas are found as well."""
    assert has_rules({"allOf": [{"items": {RULES: []}}]})
    assert not has_rules({"properties": {"a": {"type": "string"}}})
