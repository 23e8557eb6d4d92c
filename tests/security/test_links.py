"""Links in a tree lead to nothing outside: what a scan leaves out is named, and never read.

A file that the command line names may be a link: the user chose it.
"""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

import pyverno
from pyverno.cli.root import run

_ROOT = Path(pyverno.__file__).parent

_POLICY = """apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: %s}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {message: m, pattern: {metadata: {name: '?*'}}}
"""
_POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: default}\n"
_REPORT = """apiVersion: wgpolicyk8s.io/v1alpha2
kind: PolicyReport
metadata: {name: %s, namespace: default}
results: [{policy: p, rule: r, result: fail, message: %s}]
"""
_SUITE = """apiVersion: cli.kyverno.io/v1alpha1
kind: Test
metadata: {name: %s}
policies: [../policies/p.yaml]
resources: [../objects/pod.yaml]
results: [{policy: p, rule: r, resources: [pod], kind: Pod, result: pass}]
"""
_EXCEPTION = """apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: %s, namespace: default}
spec: {exceptions: [{policyName: p, ruleNames: [r]}], match: {any: [{resources: {kinds: [Pod]}}]}}
"""
_RECORD = '{"kind": "Event", "apiVersion": "audit.k8s.io/v1", "note": "%s"}\n'

_FOLDERS = {
    "policies": ("p.yaml", _POLICY % "p", _POLICY % "canary"),
    "objects": ("pod.yaml", _POD % "pod", _POD % "canary"),
    "reports": ("report.yaml", _REPORT % ("a", "b"), _REPORT % ("canary", "canary")),
    "suites": ("kyverno-test.yaml", _SUITE % "a", _SUITE % "canary"),
    "exceptions": ("e.yaml", _EXCEPTION % "a", _EXCEPTION % "canary"),
    "records": ("a.jsonl", _RECORD % "a", _RECORD % "canary"),
}

_LINES = {
    "apply policies -r objects/pod.yaml": "policies",
    "apply policies/p.yaml -r objects": "objects",
    "apply policies/p.yaml -r objects/*.yaml": "objects",
    "apply policies/p.yaml -r objects/pod.yaml -e exceptions": "exceptions",
    "apply policies/p.yaml -r objects --compat kyverno": "objects",
    "apply policies -r objects/pod.yaml --compat kyverno": "policies",
    "lint policies": "policies",
    "explain policies -r objects/pod.yaml": "policies",
    "explain policies/p.yaml -r objects": "objects",
    "impact --to policies -r objects/pod.yaml": "policies",
    "impact --to policies/p.yaml -r objects": "objects",
    "impact --to policies/p.yaml --recorded records": "records",
    "analyze policies --objects 20": "policies",
    "equivalent policies policies/p.yaml --objects 20": "policies",
    "migrate policies --objects 20": "policies",
    "report reports": "reports",
    "test suites": "suites",
    "fix policy policies": "policies",
    "fix test suites": "suites",
}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders with one file each, and the same beside the tree with a canary."""
    for folder, (name, text, canary) in _FOLDERS.items():
        for parent, content in (("tree", text), ("outside", canary)):
            (tmp_path / parent / folder).mkdir(parents=True)
            (tmp_path / parent / folder / name).write_text(content)
    monkeypatch.chdir(tmp_path / "tree")
    return tmp_path / "tree"


def _link(tree: Path, folder: str, *, is_file: bool) -> str:
    name = _FOLDERS[folder][0]
    place = tree / folder / (f"x{Path(name).suffix}" if is_file else "x")
    if is_file and folder == "suites":
        (tree / folder / "below").mkdir()
        place = tree / folder / "below" / name
    target = tree.parent / "outside" / folder
    place.symlink_to(target / name if is_file else target)
    return place.relative_to(tree).as_posix()


@pytest.mark.parametrize("is_file", [True, False], ids=["file", "folder"])
@pytest.mark.parametrize("line", _LINES)
def test_no_scan_follows_a_link_out_of_its_folder(
    tree: Path, line: str, is_file: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is there is not shown and does not count; the link is named."""
    place = _link(tree, _LINES[line], is_file=is_file)
    run(line.split())
    printed = capsys.readouterr()
    assert "canary" not in printed.out + printed.err
    # these take no links to folders, whatever is there
    assert place in printed.out + printed.err or (not is_file and any(each in line for each in _WITHOUT_FOLDERS))


_WITHOUT_FOLDERS = ("objects", "suites", "records", "*")


@pytest.mark.parametrize("line", _LINES)
def test_links_within_a_folder_are_followed(tree: Path, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The twin: they say nothing new, so that outputs differ by names at most."""
    folder = _LINES[line]
    name = _FOLDERS[folder][0]
    (tree / folder / "inside").mkdir()
    (tree / folder / "inside" / name).symlink_to(tree / folder / name)
    run(line.split())
    printed = capsys.readouterr()
    assert "a link to a place outside" not in printed.out + printed.err


def test_a_link_that_the_command_line_names_is_read(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files and folders; a link is the user's choice there."""
    (tree / "link.yaml").symlink_to(tree.parent / "outside" / "objects" / "pod.yaml")
    (tree / "linked").symlink_to(tree.parent / "outside" / "policies")
    assert 0 == run(("apply", "linked", "-r", "link.yaml", "-v"))
    assert 2 <= capsys.readouterr().out.count("canary")


@pytest.mark.parametrize("name", ["../../outside/policies/p.yaml", "link/p.yaml", "/etc/hostname"])
def test_a_suite_names_files_of_its_tree(tree: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Its errors would quote what is there; by its name or through a link."""
    (tree / "suites" / "link").symlink_to(tree.parent / "outside" / "policies")
    (tree / "suites" / "kyverno-test.yaml").write_text((_SUITE % "a").replace("../policies/p.yaml", name))
    assert 1 == run(("test", "suites"))
    assert f"`{name}` is outside of the tree of the test" in capsys.readouterr().err
    (tree / "suites" / "kyverno-test.yaml").write_text(_SUITE % "a")
    assert 0 == run(("test", "suites"))


@pytest.mark.parametrize("kind", ["loop", "broken", "pipe", "chain", "many"])
def test_other_links_end_no_scan(tree: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Those that lead to themselves, to nothing, to a pipe, or through others; and a thousand of them."""
    folder = tree / "objects"
    if kind == "loop":
        (folder / "x.yaml").symlink_to("x.yaml")
        (folder / "y").symlink_to(".")
    elif kind == "broken":
        (folder / "x.yaml").symlink_to(tree.parent / "nothing")
    elif kind == "pipe":
        os.mkfifo(tree.parent / "pipe")
        (folder / "x.yaml").symlink_to(tree.parent / "pipe")
    elif kind == "chain":
        (folder / "x.yaml").symlink_to("y")
        (folder / "y").symlink_to(tree.parent / "outside" / "objects" / "pod.yaml")
    else:
        for number in range(1000):
            (folder / f"x{number:03}.yaml").symlink_to(tree.parent / "outside" / "objects" / "pod.yaml")
    run(("apply", "policies/p.yaml", "-r", "objects"))
    printed = capsys.readouterr()
    assert "canary" not in printed.out
    assert "pass: 1" in printed.out
    assert "objects/x" in printed.err


_SCANNING = {
    "cli/bounds.py": "refuses paths out of the repository",
    "cli/fix/command.py": "FollowedLinks",
    "cli/impact/recorded.py": "FollowedLinks",
    "cli/test/find.py": "FollowedLinks",
    "offline/files.py": "FollowedLinks",
    "offline/folderrules.py": "lists one folder for those with FollowedLinks",
    "offline/adoption/inspection.py": "refuses links out of the tree",
    "cli/policies/run.py": "files of the package",
    "offline/policylibrary.py": "files of the package",
    "ui/server/playground.py": "files of the package",
    "ui/server/staticfiles.py": "files of the package",
    "cli/watch.py": "times and sizes of files",
    "offline/git/process.py": "sizes of a temporary folder",
    "offline/git/repository.py": "copies references, no links among them",
    "telemetry/recording.py": "files of its own",
}
"""The modules that list folders, and what keeps them from following links."""
_LISTING = frozenset({"rglob", "glob", "iglob", "iterdir", "walk", "fwalk", "listdir", "scandir"})


def test_every_scan_knows_about_links() -> None:
    """A new one belongs to the table; `walk` and `glob` of other things than folders are told by their receivers."""
    found = set()
    for path in _ROOT.rglob("*.py"):
        name = path.relative_to(_ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _LISTING:
                receiver = ast.unparse(node.func.value)
                if node.func.attr not in {"walk", "glob"} or receiver in {"os", "glob"} or "older" in receiver:
                    found.add(name)
    assert _SCANNING.keys() == found
    for name, reason in _SCANNING.items():
        assert reason != "FollowedLinks" or "FollowedLinks(" in (_ROOT / name).read_text("utf-8")


def test_every_command_with_folders_names_what_it_leaves_out() -> None:
    """Those that read folders by rules, which leave links out instead of refusing them."""
    for path in sorted((_ROOT / "cli").rglob("*.py")):
        text = path.read_text("utf-8")
        name = path.relative_to(_ROOT).as_posix()
        if ("FolderRules(" in text or "= load_inputs(" in text) and name != "cli/apply/load.py":
            assert (name, True) == (name, "report_skipped(" in text or "report_links(" in text)
