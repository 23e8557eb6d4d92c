"""The features of ClusterPolicies, and the tests that show their conversion or refusal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from tests.support.migrationcases import rows_of

ROOT: Final = Path(__file__).parents[2]
LIBRARY: Final = ROOT / "tests" / "cases" / "migration" / "library"
TABLE: Final = (ROOT / "docs" / "contributing" / "migration.tsv").read_text(encoding="utf-8").splitlines()[1:]
TESTS: Final = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
ROWS: Final = {
    f"{name}: {row['claim']}": "refused" in row
    for name in ("rules", "mutations", "generations", "cleanups")
    for row in rows_of(f"{name}.yaml")
}
SECTIONS: Final = ("2.1", "2.2", "2.3", "2.4", "2.5", "2.6")


def _meanings(shown: str) -> set[str]:
    """Return whether an entry shows a conversion or a refusal, a test by its name."""
    if shown in ROWS:
        return {"refused" if ROWS[shown] else "converted"}
    if shown.startswith("library: "):
        record = json.loads((LIBRARY / f"{shown.removeprefix('library: ')}.certificate.json").read_bytes())
        assert ("no difference found", []) == (record["result"], record["saysNothingBecause"])
        return {"converted"}
    assert f"def {shown}(" in TESTS, shown
    return {"refused" if "refused" in shown or shown.endswith("has_no_equal") else "converted"}


@pytest.mark.parametrize("line", TABLE, ids=lambda line: line.partition("\t")[0])
def test_a_feature_is_converted_or_refused_by_a_test(line: str) -> None:
    """Rows of the worked conversions run in their tests; each answer of the table has an entry that shows it."""
    _, answer, shown = line.split("\t")
    found = {word for each in shown.split("; ") for word in _meanings(each)}
    match answer:
        case "both":
            assert {"converted", "refused"} == found
        case "same":
            assert shown
        case _:
            assert {answer} == found


def test_all_sections_are_there_and_no_feature_twice() -> None:
    """Scope, frame, checks, other rules, functions, kinds of Kubernetes."""
    features = [line.partition("\t")[0] for line in TABLE]
    assert SECTIONS == tuple(dict.fromkeys(each.partition(" ")[0] for each in features))
    assert len(features) == len(set(features))
