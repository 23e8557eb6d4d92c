"""Exceptions follow the policies that they are converted with."""

from __future__ import annotations

from pyverno.compiler.migration.related.convert import convert_related
from pyverno.kube.yaml.documents import load_documents
from pyverno.policy.decode import decode
from tests.support.migrationcases import BOOK
from tests.unit.cli.migrate.test_related import EXCEPTION, GENERATE, POLICY


def test_only_the_policies_that_an_exception_names_are_judged_with_it() -> None:
    """On both sides."""
    (exception,) = load_documents(EXCEPTION)
    others = load_documents(f"{POLICY}---\n{GENERATE}")
    found = convert_related(exception, decode(exception).policy, BOOK, others)
    assert ["hosts"] == [each["metadata"]["name"] for each in found.old]
    assert ["ValidatingPolicy"] == [each["kind"] for each in found.new]
    assert found.conversion.is_complete


def test_other_kinds_of_documents_are_refused() -> None:
    """With the kind."""
    (document,) = load_documents("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
    (outcome,) = convert_related(document, None, BOOK).conversion.rules
    assert outcome.refused is not None
    assert "documents of kind ConfigMap are not converted" == outcome.refused.reason
