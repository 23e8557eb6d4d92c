"""Changes since a commit, document by document."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pyverno.errors import UsageError
from pyverno.kube.yaml.documents import load_documents
from pyverno.offline.adoption.changes import changes_since

if TYPE_CHECKING:
    from pyverno.kube.yaml.documents import Document

ONE, TWO = "kind: Pod\nname: one\n", "kind: Pod\nname: two\n"


def _git(*words: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *words], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit of a file with two documents."""
    monkeypatch.chdir(tmp_path)
    _git("init", "-q", "-b", "main")
    (tmp_path / "pods.yaml").write_text(f"{ONE}---\n{TWO}")
    _git("add", ".")
    _git("commit", "-qm", "first")
    return tmp_path


def _documents(name: str) -> tuple[Document, ...]:
    return load_documents(Path(name).read_text(), file=name)


def _changed(revision: str, name: str) -> list[bool]:
    with changes_since(revision) as changes:
        return [changes.is_changed(each) for each in _documents(name)]


def test_only_documents_with_another_text_are_changed(repository: Path) -> None:
    """Adding or removing documents before them does not change them; blank lines do not count."""
    (repository / "pods.yaml").write_text(f"kind: New\n---\n{ONE}\n---\n{TWO}more: 1\n")
    assert [True, False, True] == _changed("HEAD", "pods.yaml")


def test_a_comment_is_a_change(repository: Path) -> None:
    """The comment may be a suppression that was removed."""
    (repository / "pods.yaml").write_text(f"# why\n{ONE}---\n{TWO}")
    assert [True, False] == _changed("HEAD", "pods.yaml")


def test_new_files_are_changed_and_others_are_not(repository: Path) -> None:
    """New files count as changed even when git does not track them, and so does standard input."""
    (repository / "new file.yaml").write_text(ONE)
    with changes_since("HEAD") as changes:
        assert [True] == [changes.is_changed(each) for each in _documents("new file.yaml")]
        assert [False, False] == [changes.is_changed(each) for each in _documents("pods.yaml")]
        assert changes.is_changed(load_documents(ONE, file="-")[0])
        assert (True, False) == (changes.names("new file.yaml"), changes.names("pods.yaml"))


def test_only_what_a_branch_did_counts(repository: Path) -> None:
    """Later commits of the base branch do not count as changes."""
    _git("switch", "-qc", "topic")
    _git("switch", "-q", "main")
    (repository / "pods.yaml").write_text(TWO)
    _git("commit", "-qam", "second")
    _git("switch", "-q", "topic")
    assert [False, False] == _changed("main", "pods.yaml")


@pytest.mark.parametrize("revision", ["nothing", "--output=x", "HEAD:pods.yaml"])
def test_what_is_no_revision_is_an_error(repository: Path, revision: str) -> None:
    """Such a text is never passed to git as a flag."""
    with pytest.raises(UsageError, match="revision"), changes_since(revision):
        pass
    assert not (repository / "x").exists()


def test_a_folder_without_repository_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has git's text."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(UsageError, match="not a git repository"), changes_since("HEAD"):
        pass
