"""What a search of folders leaves out, and says."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyverno.offline.folderrules import LEADING_DOT, FolderRules, Skipped
from pyverno.offline.folders import find_files

_MANIFEST = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


@pytest.mark.parametrize(
    ("name", "text", "is_named"),
    [
        (".a.yaml", _MANIFEST, True),
        (".hidden/a.yaml", _MANIFEST, True),
        ("below/.github/a.yaml", _MANIFEST, True),
        (".pre-commit-config.yaml", "repos: []\n", False),
        (".github/workflows/a.yaml", "on: push\n", False),
        (".venv/a.yaml", _MANIFEST, False),
        (".git/a.yaml", _MANIFEST, False),
        (".a.txt", _MANIFEST, False),
    ],
)
def test_a_leading_dot_is_named_where_it_may_hide_a_manifest(
    tmp_path: Path, name: str, text: str, is_named: bool
) -> None:
    """Other tools apply such files; a note about the folders of tools at the top would be in every run."""
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(text)
    skipped: list[Skipped] = []
    assert [] == [*find_files(tmp_path, FolderRules(), skipped)]
    assert is_named == any(each.left_out_by == LEADING_DOT for each in skipped)
