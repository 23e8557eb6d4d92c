"""What lies in a judged tree commands nothing: every key of a configuration file that is found, and what is counted."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from pyverno.cli.args.configpath import config_path
from pyverno.cli.args.flags import Flag, switch
from pyverno.cli.config.roles import ROLES
from pyverno.cli.config.settings import SECTIONS, check_settings, section_flags, settings_for
from pyverno.cli.root import COMMANDS, run
from pyverno.cluster.access import load_kubeconfig
from pyverno.engine.imagesource import ImageAccess
from pyverno.errors import UsageError
from pyverno.kube.yaml.documents import load_documents
from pyverno.offline.adoption.changes import changes_since
from pyverno.registry.credentialhelpers import CredentialHelpers
from pyverno.registry.dockerconfig import DockerConfig
from tests.support import documents

ROOT = Path(__file__).parents[2]
_FOUND = {
    "apply": """policies resource resources json http-payload envoy-payload include exclude no-lint no-suppressions
        require-reason validate-schemas policy-report output-format table detailed-results format stdin
        generate-exceptions generated-exception-ttl warn-exit-code warn-no-pass remove-color v quiet max-results
        continue-on-fail""",
    "lint": "policies select ignore format output quiet",
    "test": """sources file-name test-case-selector strict require-tests coverage mutate fail-under output-format
        detailed-results fail-only remove-color""",
}
"""The keys that a found file may have. A new flag is one of them only after it was thought about, here too."""

_KEYS = [(section, key) for section in SECTIONS for key in section_flags(section)]
_PATHS = [
    ("apply", "policies"),
    *(("apply", key) for key in ("resource", "resources", "json", "http-payload", "envoy-payload")),
    ("lint", "policies"),
    ("test", "sources"),
]


def _value(flag: Flag) -> Any:
    """Return a value that the flag takes."""
    if flag.kind in ("switch", "number"):
        return True if flag.kind == "switch" else 1
    text = next((each for each in flag.choices if each), "10h" if flag.kind == "duration" else "PV1")
    return [text] if flag.kind in ("list", "repeated") else text


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a policy and two pods; one of them fails."""
    found = tmp_path / "repository"
    (found / ".git").mkdir(parents=True)
    (found / "pods").mkdir()
    (found / "policy.yaml").write_text(documents.LATEST)
    (found / "pods/good.yaml").write_text(documents.GOOD)
    (found / "pods/bad.yaml").write_text(documents.BAD)
    (tmp_path / "outside.yaml").write_text(documents.BAD)
    monkeypatch.chdir(found)
    return found


def _refusal() -> str:
    with pytest.raises(UsageError) as caught:
        check_settings(settings_for([]))
    return str(caught.value)


# ------------------------------------------------------------------------------------------------------------- roles


def test_every_flag_of_a_configuration_has_a_role() -> None:
    """Without one, no file may set it, so that its author has to decide."""
    flags = [(section, key, flag) for section in SECTIONS for key, flag in section_flags(section, every=True).items()]
    assert [] == [(section, key) for section, key, flag in flags if not flag.role]


def test_a_flag_without_a_role_is_in_no_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default is the safest one."""
    from pyverno.cli.lint import command

    groups = {**command.SECTIONS, "Newest": (switch("--newest", help=""),)}
    monkeypatch.setattr(command, "SECTIONS", groups)
    (folder / ".pyverno.yaml").write_text("lint:\n  newest: true\n")
    for words in ([], ["--config", ".pyverno.yaml"]):
        with pytest.raises(UsageError, match="`newest` has no role: it cannot be a setting"):
            settings_for(words)


@pytest.mark.parametrize(("section", "key"), _KEYS)
def test_a_found_file_selects_and_formats_only(folder: Path, section: str, key: str) -> None:
    """Every key that a file may have: what does more is one error with place, key and advice, in both files."""
    value = _value(section_flags(section)[key])
    for name, text, place in (
        (".pyverno.yaml", json.dumps({section: {key: value}}), "1:"),
        ("pyproject.toml", f"[tool.pyverno.{section}]\n{key} = {json.dumps(value)}\n", "2:1: "),
    ):
        (folder / name).write_text(text)
        if key in _FOUND[section].split():
            check_settings(settings_for([]))
        else:
            message = _refusal()
            assert message.startswith(f"{name}:{place}"), message
            assert f"`{key}` of `{section}` " in message
            assert message.endswith("give it on the command line, or name a file that you trust with --config FILE")
        (folder / name).unlink()


@pytest.mark.parametrize(("section", "key"), _KEYS)
def test_a_named_file_sets_the_same_keys(folder: Path, section: str, key: str) -> None:
    """The twin: whoever names a file trusts it."""
    flag = section_flags(section)[key]
    (folder / "ci.yaml").write_text(json.dumps({section: {key: _value(flag)}}))
    settings = settings_for(["--config", "ci.yaml"])
    check_settings(settings)
    assert [(key, "")] == [(each.key, each.refusal) for each in settings]


def test_a_refusal_names_every_setting_at_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever the command, the file is refused as a whole, and `config show` says why."""
    (folder / ".pyverno.yaml").write_text("apply:\n  cluster: true\n  quiet: true\ntest:\n  report: a.md\n")
    for words in (["apply", "policy.yaml", "-r", "pods"], ["lint", "policy.yaml"], ["--v=1", "test", "."]):
        assert 1 == run(words)
        error = capsys.readouterr().err
        assert error.startswith("Error: .pyverno.yaml:2:3: `cluster` of `apply` reaches a cluster: "), error
        assert "(this also refuses `report` (5:3))" in error
    assert 0 == run(["config", "show"])
    assert (
        "  cluster: true  # .pyverno.yaml:2, refused without --config: it reaches a cluster\n"
        in capsys.readouterr().out
    )


# ------------------------------------------------------------------------------------------------------------- paths


@pytest.mark.parametrize(("section", "key"), _PATHS)
def test_a_found_file_names_no_path_outside(folder: Path, section: str, key: str) -> None:
    """By dots, by an absolute path, by a link, and by patterns that climb or go through links."""
    (folder / "link").symlink_to(folder.parent)
    (folder / "file.yaml").symlink_to(folder.parent / "outside.yaml")
    for text in (
        *("../outside.yaml", str(folder.parent), "link/outside.yaml", "file.yaml", "pods/../../outside.yaml"),
        *("lin*/outside.yaml", "**/../../outside.yaml", "*.yaml", "link/../outside.yaml", "//host/share"),
    ):
        (folder / ".pyverno.yaml").write_text(json.dumps({section: {key: ["policy.yaml", text]}}))
        assert "leads out of the repository" in _refusal(), text


@pytest.mark.parametrize(("section", "key"), _PATHS)
def test_a_found_file_names_no_address(folder: Path, section: str, key: str) -> None:
    """Neither a download nor a repository."""
    for text in ("https://example.org/p.yaml", "http://169.254.169.254/a", "ssh://a/b", "file:///etc/passwd"):
        (folder / ".pyverno.yaml").write_text(json.dumps({section: {key: text}}))
        assert "reaches the network" in _refusal(), text


@pytest.mark.parametrize(("section", "key"), _PATHS)
def test_a_found_file_names_paths_of_its_repository(
    folder: Path, section: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: from a folder below, by patterns, and by links that stay inside."""
    (folder / "link").symlink_to("pods")
    (folder / "a").mkdir()
    (folder / "a/.pyverno.yaml").write_text(json.dumps({section: {key: ["../pods", "../p*/*.yaml", "../link", "@x"]}}))
    monkeypatch.chdir(folder / "a")
    check_settings(settings_for([]))


def test_a_found_file_is_no_link_out(folder: Path) -> None:
    """The content of another file would be in errors; a link inside is a file as any other."""
    (folder.parent / "secret").write_text("password-of-the-user")
    (folder / ".pyverno.yaml").symlink_to("../secret")
    assert "is a link to" in _refusal()
    assert "password-of-the-user" not in _refusal()
    (folder / "settings.yaml").write_text("apply: {quiet: true}\n")
    (folder / ".pyverno.yaml").unlink()
    (folder / ".pyverno.yaml").symlink_to("settings.yaml")
    assert ["quiet"] == [each.key for each in settings_for([])]


@pytest.mark.parametrize("words", [["--config", ""], ["--config="], ["--config-revision", ""], ["--config-revision="]])
@pytest.mark.parametrize("command", ["apply", "lint", "test"])
def test_an_empty_variable_selects_no_configuration(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str, words: list[str]
) -> None:
    """`--config-revision "$BASE"` without a base would take the file that the pull request brings."""
    (folder / ".pyverno.yaml").write_text('apply: {exclude: ["pods/bad.yaml"]}\n')
    given = {"apply": ["policy.yaml", "--resource", "pods"], "lint": ["policy.yaml"], "test": ["."]}[command]
    assert 0 != run([command, *given, *words])
    captured = capsys.readouterr()
    assert f"`{words[0].rstrip('=')}` has an empty value" in captured.err
    assert "" == captured.out


@pytest.mark.parametrize("value", ["[" * 20_000, "{a=" * 20_000])
def test_a_configuration_is_not_nested_without_end(folder: Path, value: str) -> None:
    """Python's reader of TOML has no limit of its own."""
    (folder / "pyproject.toml").write_text(f"[tool.pyverno]\nlint = {value}\n")
    with pytest.raises(UsageError, match="values are nested too deeply"):
        settings_for([])


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_new_link_to_an_old_file_is_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_folder: bool
) -> None:
    """A link brings what was an example, and left out, among the manifests; an old link is no change."""
    monkeypatch.chdir(tmp_path)
    git = ("git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    (tmp_path / "examples").mkdir()
    (tmp_path / "pods").mkdir()
    (tmp_path / "examples/bad.yaml").write_text(documents.BAD)
    (tmp_path / "pods/old.yaml").symlink_to("../examples/bad.yaml")
    (tmp_path / "pods/other.yaml").symlink_to("old.yaml")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "base")):
        subprocess.run([*git, *words], check=True, capture_output=True)
    new = "pods/new/bad.yaml" if is_folder else "pods/new.yaml"
    link = tmp_path / ("pods/new" if is_folder else new)
    link.symlink_to("../examples" if is_folder else "old.yaml")
    with changes_since("HEAD") as changes:
        for name, expected in ((new, True), ("pods/old.yaml", False), ("pods/other.yaml", False)):
            [document] = load_documents((tmp_path / name).read_text(), file=name)
            assert (name, expected) == (name, changes.is_changed(document))
            assert (name, expected) == (name, changes.names(name))


@pytest.mark.parametrize("name", ["--config=evil.yaml", "--config-revision=HEAD"])
def test_words_after_two_hyphens_are_names_of_files(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """`pyverno lint -- *` in a folder with a file of such a name reads no configuration by it."""
    (folder / "evil.yaml").write_text("lint: {select: [PV0]}\n")
    (folder / name).write_text(documents.LATEST)
    assert 0 == run(["lint", "--", name])
    assert "leave out" not in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root makes files of other users")
@pytest.mark.parametrize("name", [".pyverno.yaml", "pyproject.toml", ".git"])
def test_a_file_of_another_user_configures_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """In a folder that many may write, one of them does not decide for the others."""
    below = folder / "work"
    below.mkdir()
    monkeypatch.chdir(below)
    file = ".pyverno.yaml" if name == ".git" else name
    (folder / file).write_text("[tool.pyverno.apply]\n" if name.endswith("toml") else "apply: {}\n")
    assert str(folder / file) == config_path([])
    os.chown(folder / name, 54321, -1)
    assert "" == config_path([])


# ------------------------------------------------------------------------------------------------------------ counts

_APPLY = ("apply", "policy.yaml", "--resource", "pods")
_SUITE = """\
apiVersion: cli.kyverno.io/v1alpha1
kind: Test
metadata: {name: a}
policies: [policy.yaml]
resources: [pods/good.yaml, pods/bad.yaml]
results:
- {policy: no-latest, rule: tag, kind: Pod, resources: [good], result: pass}
- {policy: no-latest, rule: tag, kind: Pod, resources: [bad], result: pass}
"""
_LEFT_OUT = {
    "exclude": (_APPLY, {".pyverno.yaml": "apply: {exclude: ['bad*']}"}, "left out 1 file: 1 by --exclude"),
    "include": (_APPLY, {".pyverno.yaml": "apply: {include: ['good*']}"}, "left out 1 file: 1 by --include"),
    "ignore file": (_APPLY, {"pods/.pyvernoignore": "bad.*"}, "left out 1 file: 1 by pods/.pyvernoignore"),
    "folder": (
        ("apply", "policy.yaml", "--resource", "."),
        {".pyverno.yaml": "apply: {exclude: [pods]}", "good.yaml": documents.GOOD.replace("good", "other")},
        "left out 1 folder: 1 by --exclude",
    ),
    "leading dot": (
        ("apply", "policy.yaml", "--resource", "."),
        {
            ".pyverno.yaml": "apply: {exclude: [pods]}",
            "good.yaml": documents.GOOD.replace("good", "other"),
            ".bad.yaml": documents.BAD,
        },
        "left out 1 file and 1 folder: 1 by a leading dot, 1 by --exclude",
    ),
    "suppression": (
        _APPLY,
        {"pods/bad.yaml": "# pyverno: ignore[no-latest] mine\n" + documents.BAD},
        "1 failure is suppressed in manifests",
    ),
    "policies": (
        ("apply", ".", "--resource", "pods/good.yaml"),
        {".pyvernoignore": "policy.yaml\npods\n", "other.yaml": documents.LATEST.replace("no-latest", "other")},
        "left out 1 file and 1 folder: 2 by .pyvernoignore",
    ),
}


@pytest.mark.parametrize("name", _LEFT_OUT)
@pytest.mark.parametrize("words", [(), ("--quiet",), ("--format", "json"), ("--format", "sarif"), ("--format", "csv")])
def test_what_apply_leaves_out_is_counted(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, words: tuple[str, ...]
) -> None:
    """On stderr, whatever the output is."""
    command, files, note = _LEFT_OUT[name]
    for path, text in files.items():
        (folder / path).write_text(text)
    assert 0 == run([*command, *words])
    assert f"note: {note}\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("files", "note"),
    [
        ({".pyverno.yaml": "lint: {ignore: [PV101]}"}, "--select and --ignore leave out 1 of "),
        ({".pyverno.yaml": "lint: {ignore: [PV002]}", "a.yaml": documents.INVALID}, "leave out 1 error of policies"),
        ({"a.yaml": documents.INVALID.replace("\n", " # pyverno: ignore\n")}, "comments suppress "),
        ({".pyvernoignore": "a.yaml", "a.yaml": documents.INVALID}, "left out 1 file: 1 by .pyvernoignore"),
    ],
)
def test_what_lint_leaves_out_is_counted(
    folder: Path, capsys: pytest.CaptureFixture[str], files: dict[str, str], note: str
) -> None:
    """Checks, findings and files, also with `--quiet` and in a format for machines."""
    for path, text in files.items():
        (folder / path).write_text(text)
    for words in ((), ("--quiet",), ("--format", "json")):
        run(["lint", ".", *words])
        assert note in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "note"),
    [
        ("test-case-selector: resource=good", "--test-case-selector leaves out 1 of 2 rows"),
        ("file-name: other.yaml", "--file-name leaves out 1 file named `kyverno-test.yaml`"),
    ],
)
def test_what_test_leaves_out_is_counted(
    folder: Path, capsys: pytest.CaptureFixture[str], settings: str, note: str
) -> None:
    """Rows and whole suites that fail."""
    (folder / "kyverno-test.yaml").write_text(_SUITE)
    (folder / "other.yaml").write_text(_SUITE.rpartition("- ")[0])
    assert 1 == run(["test", "."])
    (folder / ".pyverno.yaml").write_text(f"test:\n  {settings}\n")
    for words in ((), ("--fail-only",), ("--output-format", "json")):
        capsys.readouterr()
        assert 0 == run(["test", ".", *words])
        assert f"note: {note}\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    "files",
    [
        {".pyverno.yaml": "apply: {exclude: ['*']}"},
        {".pyverno.yaml": "apply: {include: ['none*']}"},
        {"pods/.pyvernoignore": "*"},
    ],
)
@pytest.mark.parametrize("words", [(), ("--quiet",), ("--format", "sarif")])
def test_a_run_without_anything_left_is_an_error(
    folder: Path, capsys: pytest.CaptureFixture[str], files: dict[str, str], words: tuple[str, ...]
) -> None:
    """As one that found nothing; only the command line accepts it."""
    for path, text in files.items():
        (folder / path).write_text(text)
    assert 1 == run([*_APPLY, *words])
    error = capsys.readouterr().err
    assert ("left out 2 files: 2 by " in error, "there is no resource" in error) == (True, True)
    assert 0 == run([*_APPLY, *words, "--allow-empty"])
    assert "left out 2 files: 2 by " in capsys.readouterr().err


def test_patterns_come_from_no_file_outside(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A link would make any file of the machine a list of patterns."""
    (folder.parent / "patterns").write_text("bad.yaml\n")
    (folder / "pods/.pyvernoignore").symlink_to("../../patterns")
    assert 1 == run(_APPLY)
    assert "Error: `pods/.pyvernoignore` is a link that leads out of `pods`\n" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------------------- facts

_ALLOWED = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: allowed, namespace: default}\ndata: {who: %s}\n"
_ENTRY = """\
apiVersion: kyverno.io/v2alpha1
kind: GlobalContextEntry
metadata: {name: entry}
spec: {kubernetesResource: {group: "", version: v1, resource: configmaps, namespace: %s}}
"""
_READS = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: reads}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    context: [%s]
    validate:
      message: "{{ found }}"
      deny: {conditions: {all: [{key: "{{ found }}", operator: NotEquals, value: user}]}}
"""


def test_objects_of_the_user_replace_those_that_are_judged(folder: Path) -> None:
    """A ConfigMap beside the manifests does not answer for the one of `--context-file`."""
    read = (
        "{name: map, configMap: {name: allowed, namespace: default}}, {name: found, variable: {jmesPath: map.data.who}}"
    )
    (folder / "policy.yaml").write_text(_READS % read)
    (folder / "pods/map.yaml").write_text(_ALLOWED % "stranger")
    context = {"apiVersion": "cli.kyverno.io/v1alpha1", "kind": "Context", "metadata": {"name": "a"}}
    objects = [yaml.safe_load(_ALLOWED % "user")]
    (folder / "context.yaml").write_text(json.dumps({**context, "spec": {"resources": objects}}))
    assert 0 == run([*_APPLY, "--context-file", "context.yaml"])
    assert 1 == run(_APPLY)


def test_global_entries_of_the_policies_win(folder: Path) -> None:
    """One beside the manifests has no other data for a name of theirs."""
    read = "{name: maps, globalReference: {name: entry}}, {name: found, variable: {jmesPath: 'maps[0].data.who'}}"
    (folder / "policy.yaml").write_text(_READS % read + "---\n" + _ENTRY % "default")
    (folder / "pods/maps.yaml").write_text(f"{_ALLOWED % 'user'}---\n{(_ALLOWED % 'x').replace('default', 'other')}")
    (folder / "pods/entry.yaml").write_text(_ENTRY % "other")
    assert 0 == run(_APPLY)


# ------------------------------------------------------------------------------------------------------------- tests


def test_the_name_of_test_files_is_no_path(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With `--write` it would be a place to write."""
    (folder / ".pyverno.yaml").write_text("test: {file-name: ../written.yaml}\n")
    assert 1 == run(["test", ".", "--write"])
    assert "--file-name takes a name without folders" in capsys.readouterr().err
    assert not (folder.parent / "written.yaml").exists()


def test_tests_that_are_found_stay_in_their_tree(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is their repository, else the working folder around them, else the folder that was given; links count."""
    (folder / "cases").mkdir()
    suite = folder / "cases/kyverno-test.yaml"
    inside = _SUITE.replace("[policy.yaml]", "[../policy.yaml]").replace("pods/", "../pods/").rpartition("- ")[0]
    (folder / "link.yaml").symlink_to("../outside.yaml")
    for name in ("../../outside.yaml", str(folder.parent / "outside.yaml"), "../link.yaml", "../*k.yaml"):
        suite.write_text(inside.replace("../pods/bad.yaml", name))
        assert 1 == run(["test", "cases"])
        assert "is outside of the tree of the test" in capsys.readouterr().err, name
    suite.write_text(inside)
    assert 0 == run(["test", "cases"])
    (folder / ".git").rmdir()
    assert 0 == run(["test", "cases"])
    (folder.parent / "elsewhere").mkdir()
    monkeypatch.chdir(folder.parent / "elsewhere")
    assert 1 == run(["test", str(folder / "cases")])
    assert "is outside of the tree of the test" in capsys.readouterr().err
    assert 0 == run(["test", str(folder)])


def test_a_collected_test_stays_in_the_root_of_pytest(folder: Path) -> None:
    """The plugin collects every test file below it."""
    words = ("-p", "pyverno.pytest_plugin", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", ".")
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}

    def collected() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pytest", *words], env=environment, capture_output=True, text=True, check=False
        )

    (folder / "cases").mkdir()
    (folder / "kyverno-test.yaml").write_text(_SUITE.rpartition("- ")[0])
    assert 0 == collected().returncode
    (folder / "kyverno-test.yaml").write_text(_SUITE.replace("pods/bad.yaml", "../outside.yaml"))
    (folder / ".git").rmdir()
    (folder.parent / ".git").mkdir()  # pytest's root is nearer than the repository
    ran = collected()
    assert (1, True) == (ran.returncode, "is outside of the tree of the test" in ran.stdout), ran.stdout


# ----------------------------------------------------------------------------------------------------------- clusters

_KUBECONFIG = json.dumps({
    "current-context": "a",
    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "a", "user": {"exec": {"command": "true"}}}],
})  # fmt: skip


@pytest.mark.parametrize("home", ["", ".", "home", "~nobody-here"])
def test_no_kubeconfig_is_searched_in_the_working_folder(folder: Path, home: str) -> None:
    """A home that is no absolute path would be a folder of the judged tree."""
    for place in (folder, folder / "home"):
        (place / ".kube").mkdir(parents=True)
        (place / ".kube/config").write_text(_KUBECONFIG)
    with pytest.raises(UsageError, match="HOME is no absolute path"):
        load_kubeconfig(environment={"HOME": home})
    assert load_kubeconfig(environment={"HOME": str(folder)}).exec_plugin
    assert load_kubeconfig(environment={"HOME": home, "KUBECONFIG": ".kube/config"}).exec_plugin


def test_every_kubeconfig_comes_from_the_command_line_or_the_environment() -> None:
    """All calls in the source, by enumeration: none takes a path that a file holds."""
    calls = set()
    for path in sorted((ROOT / "src/pyverno").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            named = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            if isinstance(node, ast.Call) and named in ("load_kubeconfig", "find_access", "read_cluster"):
                calls.add((named, ast.unparse(node.args[0]) if node.args else ""))
    assert {
        ("load_kubeconfig", "path"),
        ("load_kubeconfig", "kubeconfig"),
        ("load_kubeconfig", "options.kubeconfig"),
        ("load_kubeconfig", "given.kubeconfig"),
        ("load_kubeconfig", "self.sandbox.kubeconfig"),
        ("find_access", "options.kubeconfig"),
        ("read_cluster", "options.kubeconfig"),
    } == calls


@pytest.mark.parametrize(
    ("name", "file"), [("HOME", ".docker/config.json"), ("XDG_RUNTIME_DIR", "containers/auth.json")]
)
def test_no_credentials_are_searched_in_the_working_folder(folder: Path, name: str, file: str) -> None:
    """A relative folder would let the judged tree choose a helper program and credentials."""
    path = folder / file
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"auths": {"registry.example": {"auth": "dTpw"}}}))

    def sources(value: str) -> list[str]:
        config = DockerConfig({name: value}, helpers=CredentialHelpers("/nowhere"))
        return [each.name for each in asyncio.run(config.sources(ImageAccess(), "registry.example"))]

    assert [] == sources(".")
    assert [f"file {path}"] == sources(str(folder))


def test_the_roles_that_a_found_file_may_have_are_three() -> None:
    """A further one needs a reason here."""
    assert {"selection", "form", "strictness"} == {role for role, rights in ROLES.items() if rights.in_found}


def test_only_these_commands_read_a_configuration() -> None:
    """A further command that declares the flag has a section with roles."""
    commands = {name: row.load() for name, row in COMMANDS.items()}
    assert {*SECTIONS} == {
        name
        for name, each in commands.items()
        if any("--config" in part.opts for part in each.params if isinstance(part, click.Option))
    }
