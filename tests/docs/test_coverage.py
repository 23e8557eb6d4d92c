"""The page about coverage and its data."""

from __future__ import annotations

from pathlib import Path

CASES = Path(__file__).parents[1] / "cases"
FOLDER = Path(__file__).parents[2] / "docs" / "contributing"


def test_the_coverage_page_and_its_data_have_the_same_rows() -> None:
    """Every fact that is different or missing is in both, with a state and a reason."""
    data = [line.split("\t") for line in (FOLDER / "coverage.tsv").read_text().splitlines()[1:]]
    page = (FOLDER / "coverage.md").read_text().partition("| id | state | what and why |")[2].splitlines()

    rows = [line.strip("| ").split(" | ") for line in page if line.startswith("|") and "---" not in line]

    assert rows == data
    assert {(state, bool(reason)) for _, state, reason in data} == {("different", True), ("missing", True)}


def test_every_test_that_shows_a_fact_exists() -> None:
    """A name of the data is that of a test or the folder of a case; other facts were tried by a command."""
    rows = [line.split("\t") for line in (FOLDER / "coverage-tests.tsv").read_text().splitlines()[1:]]
    tests = "\n".join(path.read_text(encoding="utf-8") for path in (FOLDER.parents[1] / "tests").rglob("test_*.py"))
    cases = [shown.removeprefix("case: ") for _, shown in rows if shown.startswith("case: ")]
    assert [] == [each for each in cases if not (CASES / each / "policy.yaml").is_file()]
    assert [] == [shown for _, shown in rows if ": " not in shown and f"def {shown}(" not in tests]
