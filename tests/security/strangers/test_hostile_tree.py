"""The owner of a hostile repository: what lies in the tree, or in its `.git`, starts no program and hides no change.

The tree's programs write down that they ran; the first test shows that they do run when git reads the repository.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pyverno.cli.root import run
from pyverno.cluster.access import Access, ExecPlugin
from pyverno.cluster.credentials import Credentials
from pyverno.errors import HostError, UsageError
from pyverno.kube.yaml.documents import load_documents
from pyverno.offline.adoption.changes import changes_since
from pyverno.offline.adoption.rendering import load_charts, load_kustomizations
from pyverno.offline.git.clone import GitSource, cloned
from pyverno.offline.git.process import closed_environment, run_git
from pyverno.programs import find_program
from pyverno.registry.credentialhelpers import CredentialHelpers
from tests.support.hostiletrees import ATTRIBUTES, POD, SETTINGS, Tree, make_tree, run_raw_git

_POLICY = """apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {message: m, pattern: {spec: {a: b}}}
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """The working folder is the tree; the user's home is empty."""
    for name in [each for each in os.environ if each.startswith(("GIT_", "XDG_"))]:
        monkeypatch.delenv(name)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    made = make_tree(tmp_path)
    monkeypatch.chdir(made.path)
    return made


def _changed(revision: str = "HEAD", name: str = "pods.yaml") -> list[bool]:
    with changes_since(revision) as changes:
        return [changes.is_changed(each) for each in load_documents(Path(name).read_bytes(), file=name)]


# --------------------------------------------------------------------------------------------------------- programs


@pytest.mark.parametrize("setting", [key for key, (_, words) in SETTINGS.items() if words])
def test_git_itself_runs_the_programs_of_the_tree(tree: Tree, setting: str) -> None:
    """The canaries sing: what the other tests show is due to us, not to git."""
    text, words = SETTINGS[setting]
    shutil.rmtree(tree.path / ".git" / "hooks")  # those would run in any case
    tree.configure(text)
    if setting == "core.gitProxy":
        shutil.copy(tree.program, tree.folder / "git-proxy")
    run_raw_git(tree.path, *tree.filled(words).split(), check=False)
    assert tree.ran.exists()


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_setting_of_the_tree_runs_a_program(tree: Tree, setting: str) -> None:
    """The changes are found nevertheless, and what is not there is not fetched."""
    old = run_raw_git(tree.path, "rev-parse", "HEAD:pods.yaml")
    tree.configure(SETTINGS[setting][0])
    assert [False, True] == _changed()
    (tree.path / ".git" / "objects" / old[:2] / old[2:]).unlink()
    with pytest.raises(UsageError, match=r"--changed-since: `pods\.yaml` cannot be read"):
        _changed()
    assert not tree.ran.exists()


def test_all_settings_of_the_tree_at_once_run_no_program(
    tree: Tree, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command line as a job runs it, with hooks and attributes."""
    for text, _ in SETTINGS.values():
        tree.configure(text)
    (tmp_path / "policy.yaml").write_text(_POLICY)
    assert 1 == run(("apply", str(tmp_path / "policy.yaml"), "-r", "pods.yaml", "--changed-since", "HEAD"))
    printed = capsys.readouterr()
    assert "1 of 2 resources changed since `HEAD`" in printed.err
    shutil.rmtree(tree.path / ".git" / "objects")
    (tree.path / ".git" / "objects").mkdir()
    assert 1 == run(("apply", str(tmp_path / "policy.yaml"), "-r", "pods.yaml", "--changed-since", "1234" * 10))
    assert "git knows no revision `1234" in capsys.readouterr().err
    assert not tree.ran.exists()


def test_an_included_file_of_the_tree_is_not_read(tree: Tree) -> None:
    """It could be any file of this machine, and git quotes what it cannot read."""
    os.mkfifo(tree.folder / "pipe")
    (tree.folder / "included").write_text("root:x:0:0\n")
    tree.configure("[include]\n\tpath = {folder}/included\n")
    (tree.path / ".git" / "config.worktree").symlink_to(tree.folder / "pipe")
    assert [False, True] == _changed()


def test_a_folder_that_looks_like_a_repository_is_none(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit may hold a bare repository with settings of its own; git takes the working folder for one."""
    bare = tree.path / "bare"
    run_raw_git(tree.path, "init", "-q", "--bare", str(bare))
    (bare / "config").write_text(
        f"[core]\n\trepositoryformatversion = 0\n\tworktree = {tree.path}\n\tfsmonitor = {tree.program}\n"
    )
    shutil.copy(tree.path / "pods.yaml", bare / "pods.yaml")
    monkeypatch.chdir(bare)
    assert [True, True] == _changed()  # the files of the folder are new in the repository around it
    assert [False, True] == _changed(name="../pods.yaml")
    assert not tree.ran.exists()
    run_raw_git(bare, "status", check=False)
    assert tree.ran.exists()


def test_a_git_file_leads_to_no_program(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive may hold `.git` as a file, which names a folder of its own with settings."""
    shutil.copytree(tree.path / ".git", tree.path / "other", symlinks=True)
    (tree.path / "below").mkdir()
    (tree.path / "below" / ".git").write_text("gitdir: ../other\n")
    shutil.copy(tree.path / "pods.yaml", tree.path / "below" / "pods.yaml")
    with (tree.path / "other" / "config").open("a") as file:
        file.write(f"[core]\n\tfsmonitor = {tree.program}\n\tworktree = {tree.folder}\n")
    monkeypatch.chdir(tree.path / "below")
    assert [False, True] == _changed()
    assert not tree.ran.exists()
    (tree.path / "below" / ".git").write_text("gitdir: nowhere\n")
    with pytest.raises(UsageError, match="is not a git repository"):
        _changed()
    (tree.path / "below" / ".git").write_text("somewhere\n")
    with pytest.raises(UsageError, match="names no git repository"):
        _changed()


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root can give a folder away")
def test_a_repository_of_another_user_decides_nothing(tree: Tree, tmp_path: Path) -> None:
    """Its owner would say what has changed; the user may trust it, as git wants it."""
    os.chown(tree.path / ".git", 12345, 12345)
    with pytest.raises(UsageError, match=f"belongs to another user; .* --add safe.directory {tree.path}"):
        _changed()
    tree.configure(f"[safe]\n\tdirectory = {tree.path}\n")
    with pytest.raises(UsageError, match="belongs to another user"):
        _changed()
    (tmp_path / "home" / ".gitconfig").write_text(f"[safe]\n\tdirectory = {tree.path}\n")
    assert [False, True] == _changed()


def _replace_commit(tree: Tree) -> None:
    old = run_raw_git(tree.path, "rev-parse", "HEAD")
    run_raw_git(tree.path, "config", "core.hooksPath", "/dev/null")
    blob = run_raw_git(tree.path, "hash-object", "-w", "--no-filters", "pods.yaml")
    (tree.path / "list").write_text(f"100644 blob {blob}\tpods.yaml\n")
    run_raw_git(tree.path, "update-index", "--add", "--cacheinfo", f"100644,{blob},pods.yaml")
    new = run_raw_git(tree.path, "commit-tree", "-m", "x", run_raw_git(tree.path, "write-tree"))
    run_raw_git(tree.path, "replace", old, new)


_HIDING: dict[str, Callable[[Tree], object]] = {
    "assume-unchanged": lambda tree: run_raw_git(tree.path, "update-index", "--assume-unchanged", "pods.yaml"),
    "skip-worktree": lambda tree: run_raw_git(tree.path, "update-index", "--skip-worktree", "pods.yaml"),
    "sparse checkout": lambda tree: run_raw_git(tree.path, "sparse-checkout", "set", "--no-cone", "/nothing"),
    "replaced commit": _replace_commit,
    "an index that is no index": lambda tree: (tree.path / ".git" / "index").write_bytes(b"x"),
    "attributes": lambda tree: (tree.path / ".gitattributes").write_text("* -diff -text binary ident\n"),
    "an ignore file": lambda tree: (tree.path / ".gitignore").write_text("*\n"),
    "a working folder elsewhere": lambda tree: tree.configure("[core]\n\tworktree = {folder}\n"),
    "a graft": lambda tree: (tree.path / ".git" / "info" / "grafts").write_text(
        run_raw_git(tree.path, "rev-parse", "HEAD") + "\n"
    ),
    "stat checks": lambda tree: tree.configure("[core]\n\tcheckStat = minimal\n\tignoreStat = true\n"),
}


@pytest.mark.parametrize("way", _HIDING, ids=lambda way: way.replace(" ", "-"))
def test_the_tree_hides_no_change(tree: Tree, way: str) -> None:
    """Contents are compared, whatever index, ignore files, attributes and replaced objects say."""
    content = (tree.path / "pods.yaml").read_text()
    _HIDING[way](tree)
    (tree.path / "pods.yaml").write_text(content)
    (tree.path / "new.yaml").write_text(POD)
    assert [False, True] == _changed()
    assert [True, True] == _changed(name="new.yaml")


_CHOSEN = {"git": "git", "helm": "helm", "kustomize": "kustomize", "kubectl": "kubectl"}


@pytest.mark.parametrize("path", ["", ".", "bin", "./bin", "bin:."])
@pytest.mark.parametrize("name", [*_CHOSEN, "docker-credential-x", "an-exec-plugin"])
def test_a_program_is_never_one_of_the_tree(tree: Tree, name: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative folder of the search path is one of the tree that is judged."""
    (tree.path / "bin").mkdir()
    for folder in (tree.path, tree.path / "bin"):
        shutil.copy(tree.program, folder / name)
    monkeypatch.setenv("PATH", path)
    assert None is find_program(name)
    monkeypatch.setenv("PATH", os.pathsep.join((path, str(tree.folder))))
    shutil.copy(tree.program, tree.folder / name)
    assert str(tree.folder / name) == find_program(name)


def test_doors_look_programs_up_in_absolute_folders(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git, renderers, credential helpers and plugins of a kubeconfig: none of the tree is run."""
    for name in (*_CHOSEN, "docker-credential-x", "plugin"):
        shutil.copy(tree.program, tree.path / name)
    (tree.path / "kustomization.yaml").write_text("resources: []\n")
    monkeypatch.setenv("PATH", os.pathsep.join(("", ".", str(tree.path.parent / "home"))))
    with pytest.raises(UsageError, match="the program `git` is not installed"):
        _changed()
    for loaded in (load_charts(["."]), load_kustomizations(["."])):
        assert 1 == len(loaded.errors)
    with pytest.raises(HostError, match="is not installed"):
        asyncio.run(CredentialHelpers(os.environ["PATH"]).sources(b'{"credsStore": "x"}', "example.org"))
    plugin = ExecPlugin("plugin")
    with pytest.raises(HostError, match="the credential plugin `plugin` cannot be run"):
        asyncio.run(Credentials(Access("https://127.0.0.1:1", exec_plugin=plugin)).identity())
    assert not tree.ran.exists()


# ------------------------------------------------------------------------------------------------------------ twins


def _branch(tree: Tree) -> None:
    shutil.rmtree(tree.path / ".git" / "hooks")
    (tree.path / ".git" / "info" / "attributes").unlink()
    (tree.path / ".gitattributes").unlink()


def test_a_worktree_is_read(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its `.git` is a file, and its repository is shared."""
    _branch(tree)
    run_raw_git(tree.path, "worktree", "add", "-q", "-b", "topic", "../work")
    work = tree.path.parent / "work"
    monkeypatch.chdir(work)
    assert [False, False] == _changed("main")
    (work / "pods.yaml").write_text(f"{POD}a: b\n")
    run_raw_git(work, "commit", "-qam", "second")
    assert ([False, False], [False, True], [False, True]) == (_changed("HEAD"), _changed("main"), _changed("HEAD~1"))


def test_files_of_a_submodule_count_as_new(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """The repository around it holds its commit only; within the submodule its own commits count."""
    _branch(tree)
    run_raw_git(tree.path, "clone", "-q", ".", "../other")
    run_raw_git(tree.path, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../other", "sub")
    run_raw_git(tree.path, "commit", "-qm", "second", "--", "sub", ".gitmodules")
    assert ([False, True], [True, True]) == (_changed(), _changed(name="sub/pods.yaml"))
    monkeypatch.chdir(tree.path / "sub")
    assert [False, False] == _changed()


def test_ends_of_lines_are_no_change(tree: Tree) -> None:
    """Git writes them as the platform wants them; a policy whose ends of lines differ is no other policy."""
    _branch(tree)
    run_raw_git(tree.path, "config", "core.autocrlf", "true")
    (tree.path / "pods.yaml").write_bytes(POD.replace("\n", "\r\n").encode())
    with changes_since("HEAD") as changes:
        assert not changes.names("pods.yaml")
    assert [False, False] == _changed()


@pytest.mark.parametrize(
    "words", ["pack-refs --all", "gc -q", "repack -adq --write-bitmap-index"], ids=["references", "all", "objects"]
)
def test_packed_repositories_are_read(tree: Tree, words: str) -> None:
    """Branches and tags are in one file then, objects in packs."""
    _branch(tree)
    run_raw_git(tree.path, "tag", "-a", "v1", "-m", "x")
    run_raw_git(tree.path, *words.split())
    assert [[False, True]] * 4 == [_changed(each) for each in ("main", "v1", "HEAD", "refs/heads/main")]


def test_other_names_of_commits_are_understood(tree: Tree) -> None:
    """Those that need the log of a reference, and the branch that a branch follows."""
    _branch(tree)
    run_raw_git(tree.path, "switch", "-q", "-c", "feature/x")
    run_raw_git(tree.path, "branch", "-q", "--set-upstream-to=main")
    run_raw_git(tree.path, "commit", "-qam", "second")
    names = {
        "@{upstream}": [False, True],
        "main@{0}": [False, True],
        "HEAD@{0}": [False, False],
        "HEAD^{/first}": [False, True],
    }
    assert names == {each: _changed(each) for each in names}
    assert [False, False] == _changed(run_raw_git(tree.path, "rev-parse", "--short", "HEAD"))


def test_a_shallow_clone_is_read(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs of CI fetch some commits only."""
    _branch(tree)
    run_raw_git(tree.path, "commit", "-qam", "second")
    (tree.path / "pods.yaml").write_text(f"{POD}spec: {{a: b}}\n")
    run_raw_git(tree.path, "commit", "-qam", "third")
    run_raw_git(tree.path.parent, "clone", "-q", "--depth", "2", f"file://{tree.path}", "shallow")
    monkeypatch.chdir(tree.path.parent / "shallow")
    assert [False, True] == _changed("HEAD~1")
    run_raw_git(tree.path.parent / "shallow", "switch", "-q", "-c", "topic", "HEAD~1")
    run_raw_git(tree.path.parent / "shallow", "commit", "-qm", "fourth", "--allow-empty")
    assert ([False, False], [False, False]) == (_changed("main"), _changed("HEAD~1"))
    with pytest.raises(UsageError, match="knows no revision `HEAD~2`"):
        _changed("HEAD~2")


@pytest.mark.parametrize("omitted", ["blob:none", "tree:0"])
def test_a_partial_clone_is_one_clear_error(tree: Tree, omitted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is fetched: the error says what to do, and that helps."""
    _branch(tree)
    run_raw_git(tree.path, "config", "uploadpack.allowFilter", "true")
    run_raw_git(
        tree.path.parent, "clone", "-q", f"--filter={omitted}", "--no-checkout", f"file://{tree.path}", "partial"
    )
    partial = tree.path.parent / "partial"
    monkeypatch.chdir(partial)
    shutil.copy(tree.path / "pods.yaml", partial / "pods.yaml")
    with pytest.raises(UsageError, match=r"--changed-since: .* \(this is a partial clone: run `git fetch --refetch"):
        _changed()
    run_raw_git(partial, "fetch", "-q", "--refetch", "--no-filter")
    assert [False, True] == _changed()


@pytest.mark.parametrize(
    "words", ["init -q --object-format=sha256 -b main", "init -q --separate-git-dir=../apart -b main"]
)
def test_other_kinds_of_repositories_are_read(tree: Tree, words: str) -> None:
    """Those with longer ids, and those that are elsewhere."""
    shutil.rmtree(tree.path / ".git")
    run_raw_git(tree.path, *words.split())
    (tree.path / ".gitattributes").unlink()
    (tree.path / "pods.yaml").write_text(POD)
    run_raw_git(tree.path, "add", ".")
    run_raw_git(tree.path, "commit", "-qm", "first")
    assert [False, False] == _changed()
    (tree.path / "pods.yaml").write_text(f"{POD}a: b\n")
    assert [False, True] == _changed()


def test_the_repository_of_the_environment_is_read(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git tells its hooks by variables where it is; they are the user's, not the tree's."""
    (tree.path / "below").mkdir()
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/index")
    assert [False, True] == _changed()
    monkeypatch.chdir(tree.path.parent)
    monkeypatch.setenv("GIT_DIR", "tree/.git")
    monkeypatch.setenv("GIT_WORK_TREE", "tree")
    assert [False, True] == _changed(name="tree/pods.yaml")


def test_a_damaged_repository_is_an_error(tree: Tree) -> None:
    """A configuration that git cannot read, and objects that are not there."""
    tree.configure("[core\n")
    with pytest.raises(UsageError, match=r"--changed-since: `.*/\.git/config` cannot be read \(.*bad config line"):
        _changed()
    (tree.path / ".git" / "config").unlink()
    assert [False, True] == _changed()
    shutil.rmtree(tree.path / ".git" / "objects")
    (tree.path / ".git" / "objects").mkdir()
    with pytest.raises(UsageError, match="--changed-since: "):
        _changed()


# ----------------------------------------------------------------------------------------------------------- clones


def test_a_clone_runs_no_filter_of_the_user_for_a_stranger(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attributes of a repository choose among the filters of the user; its templates and hooks are not ours."""
    run_raw_git(tree.path, "-c", f"core.hooksPath={os.devnull}", "add", ".")
    run_raw_git(tree.path, "-c", f"core.hooksPath={os.devnull}", "commit", "-qm", "second", "--no-verify")
    origin = tmp_path / "origin" / "owner" / "pods"
    run_raw_git(tmp_path, "clone", "-q", "--bare", str(tree.path), str(origin))
    names = ("filter.clean", "filter.process", "core.hooksPath", "core.fsmonitor", "diff.external", "merge.driver")
    settings = "".join(tree.filled(SETTINGS[each][0]) for each in names).replace("required = true", "required = false")
    own = f'{settings}[init]\n\ttemplateDir = {tree.folder}/template\n[url "file://{tmp_path}/origin/"]\n'
    (tmp_path / "home" / ".gitconfig").write_text(f"{own}\tinsteadOf = https://git.example/\n")
    shutil.copytree(tree.folder / "hooks", tree.folder / "template" / "hooks")
    (tree.path / "raw").mkdir()
    run_raw_git(tree.path / "raw", "clone", "-q", "https://git.example/owner/pods", check=False)
    assert tree.ran.exists()
    tree.ran.unlink()
    with cloned(GitSource("https://git.example/owner/pods")) as folder:
        assert ATTRIBUTES == (folder / ".gitattributes").read_text()
        assert f"{POD}spec: {{}}\n" == (folder / "pods.yaml").read_text()
    assert not tree.ran.exists()


def test_git_has_no_way_to_a_server_where_it_reads_a_tree(tree: Tree, tmp_path: Path) -> None:
    """Neither user, machine nor environment configure it; no protocol is allowed, and nothing is fetched."""
    (tmp_path / "home" / ".gitconfig").write_text(f"[alias]\n\tst = !{tree.program}\n")
    environment = closed_environment(tmp_path)
    for words in (("st",), ("ls-remote", f"file://{tree.path}"), ("ls-remote", "https://127.0.0.1:1/x")):
        code, _, said = run_git(words, folder=tmp_path, environment=environment, deadline=_soon())
        assert (True, True) == (code != 0, "not allowed" in said or "not a git command" in said)
    assert not tree.ran.exists()


def _soon() -> float:
    return time.monotonic() + 60
