"""Policies out of git repositories."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pyverno.errors import UsageError
from pyverno.offline.git import Credentials, GitSource, cloned, is_git_url, parse_git_url
from pyverno.offline.policies import load_policy_documents

POLICY = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec: {rules: []}\n"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a policy, a link out of it, and two branches; https://git.example leads to its folder."""
    home = tmp_path / "owner" / "policies"
    (home / "best").mkdir(parents=True)
    (home / "best" / "p.yaml").write_text(POLICY)
    (tmp_path / "secret.yaml").write_text("secret: 1\n")
    (home / "best" / "link.yaml").symlink_to(tmp_path / "secret.yaml")

    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *identity, *arguments], cwd=home, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    git("branch", "release")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.file://{tmp_path}/.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "https://git.example/")
    return home


@pytest.mark.parametrize(
    ("text", "branch", "expected"),
    [
        ("https://h/o/r", "", GitSource("https://h/o/r", "main", "")),
        ("https://h/o/r/", "", GitSource("https://h/o/r", "main", "")),
        ("https://h/o/r/a/b", "", GitSource("https://h/o/r", "a/b", "")),
        ("https://h/o/r/a/b", "dev", GitSource("https://h/o/r", "dev", "a/b")),
        ("http://h:1/o/r?x=y", "dev", GitSource("http://h:1/o/r", "dev", "")),
    ],
)
def test_addresses(text: str, branch: str, expected: GitSource) -> None:
    """What follows the repository is the branch, or a folder where the branch is given."""
    assert expected == parse_git_url(text, branch)
    assert is_git_url(text)


@pytest.mark.parametrize("text", ["https://h/o", "https://h", "https:///o/r", "https://h/o/r/../x", "http://[::1/o/r"])
def test_addresses_without_repository_are_refused(text: str) -> None:
    """With the text of upstream."""
    with pytest.raises(UsageError, match="failed to parse URL"):
        parse_git_url(text)


def test_a_clone_is_gone_afterwards_and_has_no_links(repository: Path) -> None:
    """A link in a repository never shows a file of this machine."""
    with cloned(GitSource("https://git.example/owner/policies", "main", "best")) as folder:
        assert POLICY == (folder / "p.yaml").read_text()
        assert not (folder / "link.yaml").is_symlink()
    assert not folder.exists()


def test_branches_are_found_and_reused(repository: Path) -> None:
    """The branch of the first address holds for the second one, whose rest is then a folder."""
    url = "https://git.example/owner/policies"
    loaded = load_policy_documents([f"{url}/release", f"{url}/best"])
    assert ([], 2) == (loaded.errors, len(loaded.documents))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (GitSource("https://git.example/owner/policies", "nope"), "failed to clone repository"),
        (GitSource("https://git.example/owner/missing"), "failed to clone repository"),
        (GitSource("https://git.example/owner/policies", "main", "nope"), "failed to list YAMLs in repository"),
        (GitSource("https://git.example/owner/policies", "--upload-pack=x"), "failed to clone repository"),
    ],
)
def test_what_is_missing_is_an_error(repository: Path, source: GitSource, message: str) -> None:
    """Repository, branch, folder."""
    with pytest.raises(UsageError, match=message), cloned(source):
        pass


def test_secrets_are_never_shown(repository: Path) -> None:
    """Neither those of the address nor those of the flags."""
    credentials = Credentials("me", "hunter2")
    source = GitSource("https://me:tok3n@git.example/owner/missing")
    with pytest.raises(UsageError) as caught, cloned(source, credentials):
        pass
    for secret in ("hunter2", "tok3n"):
        assert secret not in str(caught.value)
        assert secret not in repr(credentials)
