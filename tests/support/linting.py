"""Policies for the tests of lints, and the findings of a lint in them."""

from __future__ import annotations

from collections.abc import Sequence

from pyverno.compiler import compile_documents
from pyverno.compiler.lints.fixes import fix_text
from pyverno.compiler.lints.run import lint_documents
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.kube.yaml.documents import load_documents
from pyverno.policy.kinds import KNOWN_KINDS

__all__ = ["cel_policy", "fixed", "found", "policy", "rule"]

_HEAD = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {{name: {name}}}
spec:
  background: false
  rules:
"""
_CEL_HEAD = """\
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {{name: {name}}}
spec:
  matchConstraints:
    resourceRules:
    - {{apiGroups: [{group}], apiVersions: [v1], operations: [CREATE], resources: [{resource}]}}
"""


def policy(*rules: str, name: str = "p") -> str:
    """Return a policy; its first rule begins at line 7."""
    return _HEAD.format(name=name) + "".join(rules)


def rule(body: str, *, name: str = "r", match: str = "{any: [{resources: {kinds: [Pod]}}]}") -> str:
    """Return a rule; its body begins at its third line."""
    return f"  - name: {name}\n    match: {match}\n" + "".join(f"    {line}\n" for line in body.splitlines())


def cel_policy(body: str, *, name: str = "v", group: str = "apps", resource: str = "deployments") -> str:
    """Return a ValidatingPolicy; its body begins at line 8."""
    head = _CEL_HEAD.format(name=name, group=group or '""', resource=resource)
    return head + "".join(f"  {line}\n" for line in body.splitlines())


def found(text: str, code: str, *, kinds: KindTable = KNOWN_KINDS, crds: Sequence[JSONObject] = ()) -> list[str]:
    """Return `line:column message` of each finding of a lint in policies, which must be valid."""
    compilation = compile_documents(load_documents(text))
    assert () == compilation.errors
    diagnostics = lint_documents(compilation.items, kinds=kinds, crds=crds, select=[code])
    return [f"{each.location.line}:{each.location.column} {each.message}" for each in diagnostics]


def fixed(text: str, code: str) -> str:
    """Return policies with the fixes of a lint."""
    compilation = compile_documents(load_documents(text))
    return fix_text(text, lint_documents(compilation.items, select=[code]))[0]
