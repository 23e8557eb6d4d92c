"""Legacy policies for tests of the converter, and a comparison of both dialects on generated objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyverno.cli.equivalent.admission import admission_of
from pyverno.compiler.compile import compile_documents
from pyverno.compiler.equivalence.compare import Pair, compare
from pyverno.compiler.equivalence.vocabulary import vocabulary_of
from pyverno.compiler.migration.policy import PolicyConversion, convert_policy
from pyverno.compiler.migration.printer import print_policy
from pyverno.compiler.migration.schema import SchemaBook
from pyverno.engine.engine import Engine
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Operation
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import load_documents
from pyverno.offline.host import OfflineHost
from pyverno.policy.clusterpolicy import ClusterPolicy

__all__ = ["BOOK", "convert", "differences", "policy", "rule"]

BOOK = SchemaBook()
_ADMIT = admission_of("1.35")


def rule(name: str, pattern: Any, *, kinds: Sequence[str] = ("Pod",), action: str = "Audit", **more: Any) -> Any:
    """Return a validate rule; with a pattern of None the caller adds the check."""
    validate: JSONObject = {"failureAction": action, "message": f"{name} is wrong"}
    if pattern is not None:
        validate["pattern"] = pattern
    kept = {key: value for key, value in more.items() if value is not None}
    return {"name": name, "match": {"any": [{"resources": {"kinds": [*kinds]}}]}, "validate": validate, **kept}


def policy(*rules: JSONObject, annotations: JSONObject | None = None) -> Any:
    """Return a ClusterPolicy with these rules."""
    metadata: JSONObject = {"name": "demo"}
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": metadata, "spec": {"rules": [*rules]}}


def convert(written: JSONObject, book: SchemaBook = BOOK) -> PolicyConversion:
    """Convert a policy."""
    compilation = compile_documents(load_documents(print_policy(written)))
    decoded = compilation.items[0].written
    assert isinstance(decoded, ClusterPolicy)
    return convert_policy(decoded, book)


def differences(written: JSONObject, documents: Sequence[JSONObject], *, count: int = 60, seed: int = 7) -> list[str]:
    """Compare both dialects on generated objects: return differences, and reasons why an object was not compared."""
    pair = Pair(_engine([written]), _engine(documents), _ADMIT)
    vocabulary = vocabulary_of([written, *documents])
    operations = (Operation.CREATE, Operation.UPDATE, Operation.DELETE)
    found = compare(pair, vocabulary, count=count, seed=seed, operations=operations)
    if found.counterexample is not None:
        return [str(found.counterexample)]
    return list(found.blind)


def _engine(documents: Sequence[JSONObject]) -> Engine:
    compilation = compile_documents(load_documents("---\n".join(map(print_policy, documents))))
    assert () == compilation.errors
    return Engine(PolicySet(compilation.policies, compilation.exceptions, asks_all=True), OfflineHost())
