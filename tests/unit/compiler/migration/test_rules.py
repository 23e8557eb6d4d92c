"""Rows of the mapping of rules: the policies that they become, judged beside their sources, or the refusal's code."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import load_documents
from tests.support.conversions import convert, differences

CASES: Final = Path(__file__).parents[3] / "cases" / "migration" / "rules.yaml"
ROWS: Final[list[Any]] = load_documents(CASES.read_bytes(), file=str(CASES))[0].value


def _source(row: JSONObject) -> JSONObject:
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": row["kind"],
        "metadata": row["metadata"],
        "spec": row["spec"],
    }


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['row']}: {row['claim']}")
def test_a_row_is_converted_and_decides_alike_or_is_refused(row: JSONObject) -> None:
    """The specs are those of the file; both sides agree on generated objects."""
    source = _source(row)
    found = convert(source)
    refused = [each.refused.code for each in found.rules if each.refused is not None]
    if "refused" in row:
        assert [row["refused"]] == refused
        return
    assert ([], row["converted"]) == (
        refused,
        [{"name": each["metadata"]["name"], "spec": each["spec"]} for each in found.documents],
    )
    found_differences = differences(source, found.documents, count=24)
    # few objects: some sides never refuse one, which more objects show (`pyverno equivalent -n`)
    assert [] == [each for each in found_differences if "never" not in each]
