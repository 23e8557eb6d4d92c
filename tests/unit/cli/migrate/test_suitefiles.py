"""Paths of a suite that moves to another folder."""

from __future__ import annotations

from pathlib import Path

from pyverno.cli.migrate.suitefiles import MovedSuite


def test_files_below_the_root_are_copied_and_others_named_from_the_new_place(tmp_path: Path) -> None:
    """Whole folders are named too; addresses, and names that are no files, stay."""
    old, new = tmp_path / "src" / "cases", tmp_path / "new" / "cases"
    (old / "many").mkdir(parents=True)
    for path in (old / "a.yaml", tmp_path / "src" / "b.yaml", tmp_path / "outside.yaml"):
        path.write_text("")
    suite = {
        "metadata": {"name": "a.yaml"},
        "resources": ["a.yaml", "../b.yaml", "../../outside.yaml", "many", "https://example.com/x.yaml"],
        "results": [{"policy": "a.yaml", "patchedResources": "a.yaml", "resources": ["a.yaml"]}],
        "globalContextEntries": [{"name": "a.yaml", "resourceFiles": ["../../outside.yaml"]}],
    }
    copies: dict[Path, Path] = {}
    made = MovedSuite(old, new, tmp_path / "src").document(suite, copies)
    elsewhere = "../../outside.yaml"
    assert {
        **suite,
        "resources": ["a.yaml", "../b.yaml", elsewhere, "../../src/cases/many", "https://example.com/x.yaml"],
    } == made
    assert {old / "a.yaml": new / "a.yaml", old / "../b.yaml": new / "../b.yaml"} == copies
