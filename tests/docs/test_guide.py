"""The guide is correct: its files and commands give the output that it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.guide import page_files, page_steps, run

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page for page in (ROOT / "README.md", *(ROOT / "docs/guide").glob("*.md")) if page_steps(page.read_text())
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_of_a_page_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    """Every `console` block of the page gives the shown output, with the files that the page shows."""
    text = page.read_text(encoding="utf-8")
    for name, content in page_files(text).items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(content, encoding="utf-8")
    (tmp_path / "policies").symlink_to(ROOT / "policies")
    steps = page_steps(text)
    assert steps == run(steps, tmp_path)
