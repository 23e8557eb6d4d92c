"""Trees of strangers: repositories whose every setting names a program, which writes down that it ran."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["ATTRIBUTES", "HOOKS", "SETTINGS", "Tree", "make_tree", "run_raw_git"]

POD: Final = "apiVersion: v1\nkind: Pod\nmetadata: {name: one}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: two}\n"

HOOKS: Final = (
    *("applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-applypatch", "post-checkout", "post-commit"),
    *(
        "post-index-change",
        "post-merge",
        "post-receive",
        "post-rewrite",
        "post-update",
        "pre-applypatch",
        "pre-auto-gc",
    ),
    *("pre-commit", "pre-merge-commit", "pre-push", "pre-rebase", "pre-receive", "prepare-commit-msg", "proc-receive"),
    *("push-to-checkout", "reference-transaction", "sendemail-validate", "update"),
)

SETTINGS: Final = {
    "alias": ("[alias]\n\tst = !{run}\n\trev-parse = !{run}\n\tls-tree = !{run}\n", "st"),
    "core.alternateRefsCommand": ("[core]\n\talternateRefsCommand = {run}\n", ""),
    "core.askPass": ("[core]\n\taskPass = {run}\n", ""),
    "core.attributesFile": (
        '[core]\n\tattributesFile = {folder}/attributes\n[filter "own"]\n\tclean = {run}\n',
        "diff",
    ),
    "core.editor": ("[core]\n\teditor = {run}\n[sequence]\n\teditor = {run}\n", "commit --allow-empty"),
    "core.fsmonitor": ("[core]\n\tfsmonitor = {run}\n", "status"),
    "core.gitProxy": ("[core]\n\tgitProxy = {run}\n", "ls-remote git://127.0.0.1/x"),
    "core.hooksPath": ("[core]\n\thooksPath = {folder}/hooks\n", "checkout -f"),
    "core.pager": ("[core]\n\tpager = {run}\n[pager]\n\tdiff = {run}\n\tls-tree = {run}\n\trev-parse = {run}\n", ""),
    "core.sshCommand": (
        "[core]\n\tsshCommand = {run}\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = origin\n"
        '[remote "origin"]\n\turl = ssh://127.0.0.1/x\n\tpromisor = true\n',
        "cat-file -p {missing}",
    ),
    "core.worktree": ("[core]\n\tworktree = {folder}\n", ""),
    "credential.helper": ("[credential]\n\thelper = !{run}\n", "credential fill"),
    "diff.command": ('[diff "own"]\n\tcommand = {run}\n', "diff"),
    "diff.external": ("[diff]\n\texternal = {run}\n", "diff"),
    "diff.textconv": ('[diff "own"]\n\ttextconv = {run}\n\tcachetextconv = true\n', "diff"),
    "extensions.partialClone": (
        "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = origin\n"
        '[remote "origin"]\n\turl = {folder}\n\tuploadpack = {run}\n\tpromisor = true\n',
        "cat-file -p {missing}",
    ),
    "filter.clean": ('[filter "own"]\n\tclean = {run}\n\tsmudge = {run}\n\trequired = true\n', "diff"),
    "filter.process": ('[filter "own"]\n\tprocess = {run}\n\trequired = true\n', "diff"),
    "gpg.program": ("[gpg]\n\tprogram = {run}\n[log]\n\tshowSignature = true\n[commit]\n\tgpgSign = true\n", ""),
    "include.path": ("[include]\n\tpath = {folder}/included\n", "status"),
    "includeIf": ('[includeIf "gitdir:**"]\n\tpath = {folder}/included\n', "status"),
    "merge.driver": ('[merge "own"]\n\tdriver = {run}\n', ""),
    "protocol.ext": (
        '[protocol "ext"]\n\tallow = always\n[core]\n\trepositoryformatversion = 1\n[extensions]\n'
        '\tpartialClone = origin\n[remote "origin"]\n\turl = ext::{run}\n\tpromisor = true\n',
        "cat-file -p {missing}",
    ),
    "remote.vcs": ('[remote "origin"]\n\tvcs = own\n\turl = own::x\n\tproxy = x\n', ""),
    "submodule.update": ('[submodule "sub"]\n\tupdate = !{run}\n\tactive = true\n\turl = .\n', ""),
    "trailer.command": ('[trailer "own"]\n\tcommand = {run}\n\tcmd = {run}\n', ""),
    "uploadpack.packObjectsHook": ("[uploadpack]\n\tpackObjectsHook = {run}\n", ""),
}
"""Sections of a configuration that name a program, and a command of git that runs it ("" where git wants more)."""

ATTRIBUTES: Final = "*.yaml filter=own diff=own merge=own\n"


@dataclass(frozen=True)
class Tree:
    """A repository of a stranger; `pods.yaml` has two documents, of which the second changed since the last commit.

    The programs of the stranger write into `ran`.
    """

    path: Path
    ran: Path
    folder: Path

    @property
    def program(self) -> Path:
        """The program that must never run."""
        return self.folder / "canary"

    def configure(self, text: str) -> None:
        """Add lines to the configuration of the repository."""
        with (self.path / ".git" / "config").open("a") as file:
            file.write(self.filled(text))

    def filled(self, text: str) -> str:
        """Return a text with the paths of the program and of the folder, and the id of an object that is not there."""
        return text.format(run=self.program, folder=self.folder, missing="1234" * 10)


def make_tree(path: Path) -> Tree:
    """Make a tree below a folder, with hooks and attributes that all lead to the program."""
    tree = Tree(path / "tree", path / "ran", path / "strange")
    for each in (tree.path, tree.folder, tree.folder / "hooks"):
        each.mkdir(parents=True)
    tree.program.write_text(f'#!/bin/sh\necho "$0 $@" >> {tree.ran}\nexit 1\n')
    tree.program.chmod(0o755)
    (tree.folder / "included").write_text(f"[core]\n\tfsmonitor = {tree.program}\n")
    (tree.folder / "attributes").write_text(ATTRIBUTES)
    run_raw_git(tree.path, "init", "-q", "-b", "main")
    (tree.path / "pods.yaml").write_text(POD)
    run_raw_git(tree.path, "add", ".")
    run_raw_git(tree.path, "commit", "-qm", "first")
    (tree.path / "pods.yaml").write_text(f"{POD}spec: {{}}\n")
    (tree.path / ".git" / "info").mkdir(exist_ok=True)
    for place in (".gitattributes", ".git/info/attributes"):
        (tree.path / place).write_text(ATTRIBUTES)
    for hook in HOOKS:
        (tree.folder / "hooks" / hook).symlink_to(tree.program)
        (tree.path / ".git" / "hooks").mkdir(exist_ok=True)
        (tree.path / ".git" / "hooks" / hook).symlink_to(tree.program)
    return tree


def run_raw_git(folder: Path, *words: str, check: bool = True) -> str:
    """Run git as a user does, and return its output."""
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *identity, *words],
        cwd=folder,
        check=check,
        capture_output=True,
        text=True,
        input="protocol=https\nhost=x\n\n",
    )
    return done.stdout.strip()
