"""JSON patches written as text."""

from __future__ import annotations

import pytest

from pyverno.errors import ExpressionSyntaxError
from pyverno.lang.runtime import Runtime
from pyverno.lang.template.patchtext import compile_patch_text


def test_a_patch_that_is_nested_too_deeply_is_refused_when_it_is_compiled() -> None:
    """Thousands of levels are an error of the policy, with a text of its own."""
    for levels in (1500, 9000):
        text = '[{"op": "add", "path": "/a", "value": ' + "[" * levels + "]" * levels + "}]"
        with pytest.raises(ExpressionSyntaxError, match="invalid patchesJson6902: nested too deeply"):
            compile_patch_text(text)


def test_variables_keep_their_place_at_any_usual_depth() -> None:
    """An unquoted variable that stands alone keeps its type."""
    text = '[{"op": "add", "path": "/a", "value": ' + "[" * 50 + "{{ n }}" + "]" * 50 + "}]"
    [operation] = compile_patch_text(text).render({"n": 5}, Runtime())
    value = operation["value"]
    for _ in range(50):
        [value] = value
    assert 5 == value
