"""Bucket `conversions`: rules of ClusterPolicies that people converted by hand; ours must decide alike or be refused.

A row is refused by a code that names the feature. A difference that only the comparison finds is a failure.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from pyverno.cli.equivalent.admission import admission_of
from pyverno.cli.migrate.certificate import Settings
from pyverno.cli.migrate.conversion import convert_document
from pyverno.compiler.migration.schema import SchemaBook
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import load_documents
from pyverno.kube.yaml.writer import dump_yaml
from tests.conformance.outcome import Case, Claim

__all__ = ["PLACE", "claim", "find"]

PLACE = "../reference/conversions.yaml"
"""The file, seen from the folder of a corpus."""

_OBJECTS = 600
_WITHOUT_AUTOGEN = {"pod-policies.kyverno.io/autogen-controllers": "none"}
_GOOD = "converted and equal, or refused with its reason"


@cache
def _settings() -> tuple[SchemaBook, Settings]:
    return SchemaBook(), Settings(_OBJECTS, 1, "1.35", admission_of("1.35"))


def find(root: Path) -> Iterator[Case]:
    """Yield a case for each row: `form` names it, `legacy` is the rule."""
    for row in load_documents((root / PLACE).read_bytes())[0].value:
        yield Case("conversions", "rules", f"conversions/{row['form']}", row)


def claim(case: Case, root: Path) -> Claim:
    """Convert the rule and judge generated objects by both sides."""
    book, settings = _settings()
    spec: JSONObject = {"background": False, "rules": [case.data["legacy"]]}
    metadata: JSONObject = {"name": "p", "annotations": _WITHOUT_AUTOGEN}
    policy: JSONObject = {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": metadata, "spec": spec}
    document = load_documents(dump_yaml(policy))[0]
    (line,) = convert_document(document, book, settings, selected=lambda _: True, text="").lines
    if line.refused is not None:
        return Claim(_GOOD, line.reason if line.refused.code == "differs" else _GOOD)
    vacuous = (line.reason,) if line.state == "converted, not tested" else ()
    return Claim(_GOOD, _GOOD if line.state.startswith("converted") else line.state, vacuous)
