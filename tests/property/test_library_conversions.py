"""Every ClusterPolicy of the library converts; the nightly run holds both sides together on thousands of objects."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pyverno.cli.equivalent.admission import admission_of
from pyverno.cli.migrate.certificate import Settings
from pyverno.cli.migrate.conversion import Conversion, convert_document
from pyverno.compiler.migration.schema import SchemaBook
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import expand_lists, load_documents

LIBRARY = Path(__file__).parents[2] / "policies"
POLICIES = sorted(path for path in LIBRARY.rglob("clusterpolicy.yaml") if "cel" not in path.parts)
VOID = {
    "namespaces/disallow-public-objects": "it refuses all that it matches",
    "networking/require-policy-types": "the API server fills in what it wants",
}
"""Policies of which no object that an API server admits shows two verdicts."""

OBJECTS = 2000
BOOK = SchemaBook()
ADMIT = admission_of("1.35")


def cases_of(policy: Path) -> tuple[JSONObject, ...]:
    """Return the objects of the cases of a policy."""
    files = [path for path in sorted((policy.parent / "cases").glob("*.yaml")) if path.name != "kyverno-test.yaml"]
    documents = [document for path in files for document in load_documents(path.read_bytes(), file=str(path))]
    return tuple(
        each.value for each in expand_lists(documents) if isinstance(each.value, dict) and "kind" in each.value
    )


def conversions(policy: Path, *, is_tested: bool) -> list[Conversion]:
    """Convert the documents of a file; the objects of its cases come first."""
    settings = Settings(OBJECTS, 1, "1.35", ADMIT, cases_of(policy))
    documents = load_documents(policy.read_bytes(), file=str(policy))
    return [convert_document(each, BOOK, settings, selected=lambda _: True, is_tested=is_tested) for each in documents]


def test_every_policy_of_the_library_converts() -> None:
    """No rule stays behind, those of custom kinds included."""
    left = [
        f"{path.parent.relative_to(LIBRARY)}/{line.rule}: {line.refused}"
        for path in POLICIES
        for found in conversions(path, is_tested=False)
        for line in found.lines
        if line.refused is not None
    ]
    assert [] == left


@pytest.mark.skipif(not os.environ.get("PYVERNO_NIGHTLY"), reason="takes minutes")
@pytest.mark.parametrize("policy", POLICIES, ids=lambda path: str(path.parent.relative_to(LIBRARY)))
def test_a_policy_of_the_library_decides_as_before(policy: Path) -> None:
    """On its cases and on 2,000 generated objects; both sides refuse some of them and allow some."""
    lines = [line for found in conversions(policy, is_tested=True) for line in found.lines]
    state = "converted, not tested" if str(policy.parent.relative_to(LIBRARY)) in VOID else "converted (tested)"
    assert [state] * len(lines) == [line.state for line in lines], [line.reason for line in lines]
