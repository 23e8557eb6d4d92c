"""Kustomizations and charts, inspected before they are rendered."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyverno.errors import UsageError
from pyverno.offline.adoption.inspection import check_chart, check_kustomization


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a base and an overlay."""
    for name, text in {
        "base/kustomization.yaml": "resources: [pod.yaml]\n",
        "base/pod.yaml": "kind: Pod\n",
        "prod/kustomization.yml": "resources: [../base]\n",
        "chart/Chart.yaml": "name: a\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_is_in_the_tree_is_fine(folder: Path) -> None:
    """The working folder is the tree where there is no repository."""
    check_kustomization(Path("prod"))
    check_kustomization(folder / "prod")
    check_chart(Path("chart"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("resources:\n- none.yaml\n", "prod/kustomization.yml:2:3: `none.yaml` does not exist"),
        ("resources: [https://a.example/x]\n", "prod/kustomization.yml:1:13: `https://a.example/x` is on another"),
        ("resources: [../../x]\n", r"prod/kustomization.yml:1:13: `\.\./\.\./x` is outside of `"),
        ("helmCharts: [{name: a}]\n", "prod/kustomization.yml:1:13: `helmCharts` fetches and runs charts"),
        ("resources: [../base/.]\nresources: []\n", "prod/kustomization.yml"),
    ],
)
def test_the_first_thing_that_is_refused_has_its_place(folder: Path, text: str, expected: str) -> None:
    """Paths are as the command line writes them."""
    (folder / "prod" / "kustomization.yml").write_text(text)
    with pytest.raises(Exception, match=f"^{expected}"):
        check_kustomization(Path("prod"))


def test_without_a_tree_a_kustomization_is_for_itself(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a repository nor the working folder is above it."""
    monkeypatch.chdir(folder / "chart")
    with pytest.raises(UsageError, match="is outside of"):
        check_kustomization(folder / "prod")
    (folder / ".git").mkdir()
    check_kustomization(folder / "prod")
