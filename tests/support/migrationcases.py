"""Whole rules and documents in both dialects: the reference for conversions of mutations, generations and cleanups."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyverno.compiler import compile_documents
from pyverno.compiler.equivalence.compare import Comparison, Pair, compare
from pyverno.compiler.equivalence.vocabulary import vocabulary_of
from pyverno.compiler.migration.outcome import Refused, UnconvertibleError
from pyverno.compiler.migration.policy import convert_policy
from pyverno.compiler.migration.related.cleanups import convert_cleanup
from pyverno.compiler.migration.schema import SchemaBook
from pyverno.engine.engine import Engine
from pyverno.engine.policyset import PolicySet
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import load_documents
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.offline.host import OfflineHost
from pyverno.offline.objects import ObjectStore
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.decode import decode
from pyverno.value import replace
from tests.support.migration import WITHOUT_AUTOGEN, admission, kind_named

__all__ = ["BOOK", "Conversion", "cleanup_of", "convert", "engine_with", "judge", "policy_of", "rows_of"]

BOOK = SchemaBook()
_CASES = Path(__file__).parents[1] / "cases" / "migration"

Conversion = tuple[tuple[JSONObject, ...], tuple[str, ...], Refused | None]
"""Documents, codes of notes, and the reason for refusing a part."""


def rows_of(name: str) -> list[JSONObject]:
    """Return the rows of a table of worked conversions."""
    rows: list[JSONObject] = load_documents((_CASES / name).read_text())[0].value
    return rows


def policy_of(row: JSONObject) -> JSONObject:
    """Return the policy of a row with `kind` and the rest of one rule: a Policy where the row has a `namespace`."""
    info = kind_named(row["kind"])
    resources = {"kinds": [f"{info.api_version}/{info.kind}"], "operations": ["CREATE", "UPDATE"]}
    rule = {name: row[name] for name in ("context", "preconditions", "mutate", "generate") if name in row}
    metadata: JSONObject = {"name": "p", "annotations": WITHOUT_AUTOGEN}
    rules = [{"name": "r", "match": {"any": [{"resources": resources}]}, **rule}]
    kind = "ClusterPolicy"
    if "namespace" in row:
        kind, metadata["namespace"] = "Policy", row["namespace"]
    return {"apiVersion": "kyverno.io/v1", "kind": kind, "metadata": metadata, "spec": {"rules": rules}}


def cleanup_of(row: JSONObject) -> JSONObject:
    """Return the cleanup policy of a row."""
    metadata = {"name": "c", **({"namespace": "team-a"} if row["kind"] == "CleanupPolicy" else {})}
    return {"apiVersion": "kyverno.io/v2", "kind": row["kind"], "metadata": metadata, "spec": row["cleanup"]}


def convert(document: JSONObject) -> Conversion:
    """Convert a policy or cleanup policy."""
    loaded = load_documents(dump_yaml(document))[0]
    policy = decode(loaded).policy
    if not isinstance(policy, ClusterPolicy):
        try:
            cleanup = convert_cleanup(loaded, BOOK)
        except UnconvertibleError as error:
            return (), (), error.refused
        return cleanup.documents, tuple(note.code for note in cleanup.notes), None
    made = convert_policy(policy, BOOK)
    notes = tuple(note.code for each in made.rules for note in each.notes)
    return made.documents, notes, next((each.refused for each in made.rules if each.refused), None)


def engine_with(documents: Sequence[JSONObject], objects: Sequence[JSONObject] = ()) -> Engine:
    """Compile documents without errors, for a cluster with some objects."""
    compilation = compile_documents([each for document in documents for each in load_documents(dump_yaml(document))])
    assert () == compilation.errors
    policies = PolicySet(compilation.policies, compilation.exceptions)
    return Engine(policies, OfflineHost(objects=ObjectStore(objects), targets=ObjectStore(objects)))


def judge(
    old: Sequence[JSONObject],
    new: Sequence[JSONObject],
    *,
    count: int,
    kinds: Sequence[str] = (),
    seeds: Sequence[JSONObject] = (),
    objects: Sequence[JSONObject] = (),
    seed: int = 7,
) -> Comparison:
    """Evaluate generated objects with both sides."""
    vocabulary = vocabulary_of([*old, *new])
    if kinds:
        vocabulary = replace(vocabulary, kinds=tuple(each for each in vocabulary.kinds if each.kind in kinds))
    pair = Pair(engine_with(old, objects), engine_with(new, objects), admission())
    return compare(pair, vocabulary, seeds=seeds, count=count, seed=seed)
