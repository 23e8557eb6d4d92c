"""Advice about CEL that does not compile, and one error for a rule and its copies."""

from __future__ import annotations

import pytest

from pyverno.compiler.cel.environment import environment_of_kind
from pyverno.compiler.cel.hints import compile_hint
from pyverno.compiler.compile import compile_documents
from pyverno.kube.yaml.documents import load_documents
from pyverno.lang.cel import CompileError

POLICY = """
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: registry}
spec:
  rules:
  - name: own
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      cel:
        variables:
        - name: images
          expression: object.spec.containers.map(c, c.image)
        expressions:
        - expression: variables.imges.all(i, i.startWith('registry.io/'))
"""


@pytest.mark.parametrize(
    ("expression", "hint"),
    [
        ("'a'.startWith('b')", "startWith: did you mean `startsWith`?"),
        ("[1].exist(n, n > 0)", "exist: did you mean `exists`?"),
        ("[1].all(number, numbr > 0)", "numbr: did you mean `number`?"),
        ("xyzzy == 1", ""),
        ("1 + 'a'", ""),
    ],
)
def test_a_name_that_is_almost_another_is_recognised(expression: str, hint: str) -> None:
    """Functions, macros and variables have near names; types that do not fit have none."""
    with pytest.raises(CompileError) as caught:
        environment_of_kind("ValidatingPolicy").compile(expression)
    assert hint == compile_hint(caught.value)


def test_a_rule_and_its_copies_by_autogen_have_one_error() -> None:
    """It is at the character of the policy's text; the copies for templates fail for the same reason."""
    (item,) = compile_documents(load_documents(POLICY.encode(), file="policy.yaml")).items
    (error,) = item.errors
    assert ("policy.yaml", 15, 32) == (error.location.file, error.location.line, error.location.column)
    assert "imges: did you mean `images`?; startWith: did you mean `startsWith`?" == error.hint
