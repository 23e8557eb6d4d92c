"""Analysis checks on policies, with generated objects of a fixed seed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from textwrap import dedent, indent

from pyverno.cli.equivalent.admission import admission_of
from pyverno.compiler import compile_documents
from pyverno.compiler.analysis.finding import Finding
from pyverno.compiler.analysis.population import make_population
from pyverno.compiler.analysis.registry import CHECKS
from pyverno.compiler.analysis.run import analyze
from pyverno.compiler.analysis.workspace import Workspace
from pyverno.compiler.equivalence.shrinking import Admit
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import load_documents
from pyverno.offline.host import OfflineHost
from pyverno.offline.objects import ObjectStore

__all__ = ["WITHOUT_LATEST", "analysis", "example_of", "found", "policy"]

_HEAD = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: %s, annotations: {pod-policies.kyverno.io/autogen-controllers: none}}
spec:
  background: false
  rules:
"""
WITHOUT_LATEST = """\
- name: pods
  match: {any: [{resources: {kinds: [Pod]}}]}
  validate: {message: m, pattern: {spec: {containers: [{image: "!*:latest"}]}}}
"""


def policy(rules: str, name: str = "p") -> str:
    """Return a ClusterPolicy of some rules, without copies for workloads."""
    return _HEAD % name + indent(dedent(rules).strip("\n") + "\n", "  ")


def example_of(code: str) -> str:
    """Return the policies of the example in a check's documentation."""
    check = next(each for each in CHECKS if each.code == code)
    example = dedent(check.documentation.partition("Example::\n\n")[2])
    if example.startswith("apiVersion"):
        return f"{example}\n---\n{policy(WITHOUT_LATEST, 'no-latest')}"
    return policy(example)


@cache
def _admit() -> Admit:
    return admission_of("1.35")


def analysis(text: str, *, given: Sequence[JSONObject] = (), count: int = 300) -> Workspace:
    """Return the analysis of policies with generated objects."""
    compilation = compile_documents(load_documents(text))
    assert () == compilation.errors
    documents = [item.document.value for item in compilation.items]
    population = make_population(documents, given, _admit(), count=count, seed=7)
    return Workspace(compilation, population, lambda objects: OfflineHost(objects=ObjectStore(objects)))


def found(text: str, code: str, *, given: Sequence[JSONObject] = (), count: int = 300) -> list[Finding]:
    """Return the findings of one check in policies."""
    return [*analyze(analysis(text, given=given, count=count), select=[code])]
