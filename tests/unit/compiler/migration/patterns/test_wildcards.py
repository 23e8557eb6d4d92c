"""Tests of `migration.patterns.wildcards`."""

from __future__ import annotations

import pytest

from pyverno.compiler.migration.patterns.wildcards import text_matches
from pyverno.compiler.migration.text import Cel
from pyverno.kube.wildcard import match
from pyverno.lang.cel import types
from pyverno.lang.cel.presets import kubernetes_environment

CEL = kubernetes_environment().with_variables({"x": types.DYN})
TEXTS = ["", "a", "ab", "aba", "abba", "a.b", "axb", "a\nb", "(a)", "é", "a*b", "a?b", "\\d"]


@pytest.mark.parametrize(
    "pattern", ["*", "?", "?*", "a*", "*a", "*b*", "a*a", "a?b", "a.b", "?b*", "(*)", "**", "\\d", "a**b"]
)
def test_wildcards_match_as_in_policies(pattern: str) -> None:
    """Line breaks, special characters of expressions and overlapping ends included."""
    program = CEL.compile(text_matches(Cel("x"), pattern).text)
    assert [match(pattern, text) for text in TEXTS] == [program.evaluate({"x": text}) for text in TEXTS]
