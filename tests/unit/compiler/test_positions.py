"""Errors of policies point at the character at fault."""

from __future__ import annotations

import pytest

from pyverno.compiler.compile import compile_documents
from pyverno.kube.yaml.documents import load_documents

_HEAD = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
    - name: r
      match: {any: [{resources: {kinds: [Pod]}}]}
"""
_MESSAGE = "      validate:\n        pattern: {metadata: {name: x}}\n        message: "
_PATCH = "      mutate:\n        patchesJson6902: "

_TEXTS = {
    "plain": _MESSAGE + "see {{ a.b }} {{ images.x §||| y }}\n",
    "single quotes": _MESSAGE + "'it''s {{ images.x §||| y }}'\n",
    "double quotes": _MESSAGE + '"\\u0041\\t {{ images.x §||| y }}"\n',
    "literal": _MESSAGE + "|-\n          one\n          two {{ images.x §||| y }}\n",
    "folded": _MESSAGE + ">-\n          one\n          two {{ images.x §||| y }}\n",
    "over lines": _MESSAGE + "|-\n          one {{\n            images.x §||| y\n          }}\n",
    "not allowed": _MESSAGE + ">-\n          one\n          {{ §unknown.x }}\n",
    "patch, value": _PATCH
    + "|-\n          - op: add\n            path: /a\n            value: {{ images.x §||| y }}\n",
    "patch, path": _PATCH + "|-\n          - {op: add, value: '{{ images.x }}', path: §metadata}\n",
    "patch, operation": _PATCH + '"[{op: §addd, path: /metadata, value: 1}]"\n',
    "patch, syntax": _PATCH + "|-\n          - op: add\n            path: §[/a\n",
}


@pytest.mark.parametrize("name", _TEXTS)
def test_an_error_of_an_expression_has_the_place_of_its_character(name: str) -> None:
    """Block, folded and quoted texts are followed to the character, and each error is there once."""
    marked = _HEAD + _TEXTS[name].replace("{{ a.b }} ", "")
    at = marked.index("§")
    text = marked.replace("§", "")
    # JMESPath reads `||` first, and then the `|` that is too many
    at += 2 if text.startswith("|||", at) else 0
    place = (text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))
    errors = compile_documents(load_documents(text, file="p.yaml")).errors
    found = [
        (each.location.line, each.location.column) for each in errors if each.code != "mutate-form" and each.location
    ]
    assert [each for each in found if each[0] == place[0]] == [place]
