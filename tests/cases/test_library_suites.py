"""The suites of the policy library, in both dialects: every row passes, and none proves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyverno.cli.root import run

LIBRARY = Path(__file__).parents[2] / "policies"
CATEGORIES = sorted(
    str(each.relative_to(LIBRARY))
    for folder in (LIBRARY, LIBRARY / "cel")
    for each in folder.iterdir()
    if each.is_dir() and each.name != "cel"
)


@pytest.mark.parametrize("category", CATEGORIES)
def test_every_suite_of_a_category_passes(category: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With --strict, which also refuses rows for what no rule judges."""
    code = run(("test", str(LIBRARY / category), "--strict", "--fail-only"))
    printed = capsys.readouterr()
    assert (0, "") == (code, printed.err), printed.out
