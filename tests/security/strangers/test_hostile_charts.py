"""The author of a chart or a kustomization: nothing is fetched or run, and no file outside of the tree is printed.

Stand-ins for helm, kustomize and kubectl write down how they were started; real ones are used where they are there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from pyverno.cli.root import run
from pyverno.errors import PyvernoError, UsageError
from pyverno.offline.adoption.process import render
from pyverno.offline.adoption.rendering import load_charts, load_kustomizations

_POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"
_PROGRAM = """#!/bin/sh
echo "$@" > {log}/words
env > {log}/environment
ls -A "$HOME" "$XDG_CONFIG_HOME" "$HELM_PLUGINS" "$KUSTOMIZE_PLUGIN_HOME" > {log}/folders
pwd > {log}/place
printf 'apiVersion: v1\\nkind: Pod\\nmetadata: {{name: made}}\\n'
"""
_SECRETS = {
    "AWS_SECRET_ACCESS_KEY": "canary",
    "GITHUB_TOKEN": "canary",
    "SSH_AUTH_SOCK": "/canary",
    "KUBECONFIG": "/canary",
    "HELM_PLUGINS": "/canary",
    "HELM_KUBETOKEN": "canary",
    "GIT_SSH_COMMAND": "canary",
    "KUSTOMIZE_PLUGIN_HOME": "/canary",
    "HTTPS_PROXY": "http://canary",
}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with an overlay of a base and a chart, in a machine with the stand-ins and with secrets."""
    made = tmp_path / "tree"
    for name, text in {
        ".git/HEAD": "ref: refs/heads/main\n",
        "base/pod.yaml": _POD,
        "base/kustomization.yaml": "resources: [pod.yaml]\n",
        "overlay/kustomization.yaml": "resources: [../base]\n",
        "overlay/patch.yaml": _POD,
        "chart/Chart.yaml": "apiVersion: v2\nname: a\nversion: 0.1.0\n",
        "chart/templates/pod.yaml": _POD,
    }.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.yaml").write_text(_POD.replace("name: a", "name: canary"))
    (tmp_path / "bin").mkdir()
    for name in ("helm", "kustomize"):
        program = tmp_path / "bin" / name
        program.write_text(_PROGRAM.format(log=tmp_path))
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    for key, value in _SECRETS.items():
        monkeypatch.setenv(key, value)
    monkeypatch.chdir(made)
    return made


def _built(tree: Path, **flags: bool) -> str:
    """Return the error of a build, "" if the program was started."""
    started = tree.parent / "words"
    started.unlink(missing_ok=True)
    loaded = load_kustomizations(["overlay"], **flags)
    assert bool(loaded.errors) != started.exists()
    return str(loaded.errors[0]) if loaded.errors else ""


_ADDRESSES = (
    *("https://host.example/a.yaml", "HTTP://host.example/a", "http:a", "github.com/o/r", "GitHub.com/o/r//a?ref=b"),
    *("github.com:o/r", "gh:o/r", "git@host.example:o/r", "user@host.example/o/r", "ssh://host.example/o/r"),
    *("git::https://host.example/o/r", "file:///tmp", "host.example/o/r.git", "host.example/o/r.git//a", "../base.git"),
    *("dev.azure.com/o/p/_git/r", "s3::x", "../base?ref=main", "www.github.com/o/r", "C:\\a", "a.yaml?x"),
)
_FIELDS = {
    "resources: [{}]": 13,
    "bases: [{}]": 9,
    "components: [{}]": 14,
    "crds: [{}]": 8,
    "configurations: [{}]": 18,
    "generators: [{}]": 14,
    "transformers: [{}]": 16,
    "validators: [{}]": 14,
    "patchesStrategicMerge: [{}]": 25,
    "patches: [{{path: {}}}]": 18,
    "patchesJson6902: [{{path: {}}}]": 26,
    "replacements: [{{path: {}}}]": 23,
    "openapi: {{path: {}}}": 17,
    "configMapGenerator: [{{name: a, files: [{}]}}]": 40,
    "configMapGenerator: [{{name: a, files: [k={}]}}]": 0,
    "configMapGenerator: [{{name: a, env: {}}}]": 37,
    "secretGenerator: [{{name: a, envs: [{}]}}]": 36,
    "Resources: [{}]": 13,
    "re\u017fources: [{}]": 13,
    "<<: {{resources: [{}]}}": 0,
    "x: &x [{}]\nresources: *x": 0,
    "resources: {}": 12,
}


@pytest.mark.parametrize("address", _ADDRESSES)
def test_no_base_is_on_another_machine(tree: Path, address: str) -> None:
    """The place is that of the address, and the text says which flag allows it."""
    file = tree / "overlay" / "kustomization.yaml"
    file.write_text(f"namePrefix: a\nresources:\n- '{address}'\n")
    expected = f"overlay/kustomization.yaml:3:3: `{address}` is on another machine, from which nothing is fetched"
    assert f"{expected} (`--remote-bases` allows it)" == _built(tree)
    assert "" == _built(tree, allows_remote=True)


@pytest.mark.parametrize("written", _FIELDS)
def test_no_field_names_another_machine(tree: Path, written: str) -> None:
    """Kustomize fetches files of every field, and reads names of fields without case."""
    (tree / "overlay" / "kustomization.yaml").write_text(
        written.format("'https://host.example/x'").replace("k='", "'k=")
    )
    column = _FIELDS[written]
    error = _built(tree)
    assert error.startswith(f"overlay/kustomization.yaml:1:{column or ''}")
    assert "is on another machine" in error


@pytest.mark.parametrize("written", ["!!binary aHR0cHM6Ly9ob3N0LmV4YW1wbGUveA==", '"https\\x3a//host.example/x"'])
def test_no_spelling_of_yaml_hides_an_address(tree: Path, written: str) -> None:
    """Kustomize decodes binary texts and escapes."""
    (tree / "overlay" / "kustomization.yaml").write_text(f"resources: [{written}]\n")
    assert "`https://host.example/x` is on another machine" in _built(tree)


def test_a_base_of_a_base_is_inspected(tree: Path) -> None:
    """However deep, and also in circles."""
    (tree / "base" / "kustomization.yaml").write_text("resources: [pod.yaml, ../overlay, https://host.example/x]\n")
    assert _built(tree).startswith("base/kustomization.yaml:1:35: `https://host.example/x` is on another machine")


_OUTSIDE = (
    "../../outside",
    "../../outside/secret.yaml",
    "../link",
    "../link/secret.yaml",
    "/etc/hostname",
    "link.yaml",
)


@pytest.mark.parametrize("name", _OUTSIDE)
@pytest.mark.parametrize("field", ["resources: [{}]", "configMapGenerator: [{{name: a, files: [{}]}}]"])
def test_no_base_is_outside_of_the_tree(tree: Path, name: str, field: str) -> None:
    """By its name or through a link; one within the tree may be anywhere."""
    (tree / "link").symlink_to(tree.parent / "outside")
    (tree / "overlay" / "link.yaml").symlink_to(tree.parent / "outside" / "secret.yaml")
    (tree / "overlay" / "kustomization.yaml").write_text(field.format(name) + "\n")
    assert f"`{name}` is outside of `{tree}` (`--remote-bases` allows it)" in _built(tree)
    assert "" == _built(tree, allows_remote=True)


def test_a_kustomization_that_is_a_link_out_is_refused(tree: Path) -> None:
    """The file itself is what is read first."""
    (tree / "overlay" / "kustomization.yaml").unlink()
    (tree / "overlay" / "kustomization.yaml").symlink_to(tree.parent / "outside" / "secret.yaml")
    assert "is outside of" in _built(tree)


_FUNCTION = """apiVersion: example.org/v1
kind: Evil
metadata:
  name: a
  annotations:
    config.kubernetes.io/function: |
      exec: {path: ./evil.sh}
"""
_BUILTIN = "apiVersion: builtin\nkind: {}\nmetadata: {{name: a}}\n{}\n"
_RUNNING: dict[str, Mapping[str, str]] = {
    "a function": {"kustomization.yaml": "transformers: [x.yaml]", "x.yaml": _FUNCTION},
    "a function as text": {"kustomization.yaml": "generators:\n- |\n  " + _FUNCTION.replace("\n", "\n  ")},
    "a function in a folder": {
        "kustomization.yaml": "validators: [x]",
        "x/kustomization.yaml": "resources: [x.yaml]",
        "x/x.yaml": _FUNCTION,
    },
    "a builtin that is a function": {
        "kustomization.yaml": "transformers: [x.yaml]",
        "x.yaml": _FUNCTION.replace("example.org/v1", "builtin"),
    },
    "a plugin": {"kustomization.yaml": "generators: [x.yaml]", "x.yaml": "apiVersion: a.example/v1\nkind: Exec\n"},
    "a patched configuration": {
        "kustomization.yaml": "transformers: [x]",
        "x/kustomization.yaml": "resources: [x.yaml]\npatches: [{path: p.yaml}]",
        "x/x.yaml": _BUILTIN.format("LabelTransformer", "labels: {a: b}"),
        "x/p.yaml": _POD,
    },
    "charts": {"kustomization.yaml": "helmCharts: [{name: a, repo: 'https://host.example'}]"},
    "a chart of old": {"kustomization.yaml": "helmChartInflationGenerator: [{chartName: a}]"},
    "a chart as a generator": {
        "kustomization.yaml": "generators: [x.yaml]",
        "x.yaml": _BUILTIN.format("HelmChartInflationGenerator", "repo: 'https://host.example'"),
    },
    "a file of a builtin": {
        "kustomization.yaml": "transformers: [x.yaml]",
        "x.yaml": _BUILTIN.format("PatchTransformer", "path: 'https://host.example/x'"),
    },
    "a builtin as text": {
        "kustomization.yaml": """transformers: ["{apiVersion: builtin, kind: PatchTransformer, path: 'http://h/x'}"]""",
    },
}


@pytest.mark.parametrize("way", _RUNNING, ids=lambda way: way.replace(" ", "-"))
def test_a_kustomization_runs_nothing(tree: Path, way: str) -> None:
    """Programs, functions in containers and charts: the error says where it is wanted, and what to do."""
    for name, text in _RUNNING[way].items():
        (tree / "overlay" / name).parent.mkdir(exist_ok=True)
        (tree / "overlay" / name).write_text(f"{text}\n")
    error = _built(tree)
    assert error.startswith("overlay/")
    assert "(render it yourself, and pass the manifests with `-r -`)" in error or "on another machine" in error


_HARMLESS: dict[str, Mapping[str, str]] = {
    "an overlay": {"kustomization.yaml": "resources: [../base]\npatches: [{path: patch.yaml}]"},
    "data that looks like addresses": {
        "kustomization.yaml": (
            "resources: [../base]\n"
            "commonAnnotations: {path: 'https://host.example', resources: github.com/o/r}\n"
            "labels: [{pairs: {files: x}}]\n"
            "images: [{name: ghcr.io/a/b, newName: host.example/a@sha256, newTag: v1}]\n"
            "configMapGenerator: [{name: a, literals: ['URL=https://host.example/?a=b']}]\n"
            "patches:\n- patch: |-\n    - op: add\n      path: /metadata/annotations/a\n      value: https://host.example\n"
            "  target: {kind: Pod, name: a.*}\n"
            "replacements: [{source: {kind: Pod, fieldPath: spec}, targets: [{select: {kind: Pod}, fieldPaths: [a]}]}]"
        )
    },
    "builtin parts": {
        "kustomization.yaml": "resources: [../base]\ntransformers: [x.yaml, y]",
        "x.yaml": _BUILTIN.format("PatchTransformer", "path: patch.yaml\ntarget: {kind: Pod}"),
        "y/kustomization.yaml": "resources: [z.yaml]",
        "y/z.yaml": _BUILTIN.format("LabelTransformer", "labels: {a: b}\nfieldSpecs: [{path: metadata/labels}]"),
    },
    "old fields": {
        "kustomization.yaml": "bases: [../base]\npatchesStrategicMerge:\n- patch.yaml\n- |\n  "
        + _POD.replace("\n", "\n  ")
    },
    "a link within the tree": {"kustomization.yaml": "resources: [../inside]"},
    "nothing": {"kustomization.yaml": ""},
}


@pytest.mark.parametrize("way", _HARMLESS, ids=lambda way: way.replace(" ", "-"))
def test_usual_kustomizations_are_built(tree: Path, way: str) -> None:
    """The twin."""
    (tree / "inside").symlink_to("base")
    for name, text in _HARMLESS[way].items():
        (tree / "overlay" / name).parent.mkdir(exist_ok=True)
        (tree / "overlay" / name).write_text(f"{text}\n")
    assert "" == _built(tree)


@pytest.mark.parametrize("way", ["an overlay", "data that looks like addresses", "a link within the tree"])
@pytest.mark.parametrize("name", ["kustomize", "kubectl"])
def test_the_real_programs_build_in_our_environment(
    tree: Path, name: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty home and no proxy are enough."""
    real = shutil.which(name, path="/usr/local/bin:/usr/bin:/bin")
    if real is None:
        pytest.skip(f"{name} is not installed")
    monkeypatch.setenv("PATH", str(Path(real).parent))
    (tree / "inside").symlink_to("base")
    (tree / "overlay" / "kustomization.yaml").write_text(
        _HARMLESS[way]["kustomization.yaml"].partition("replacements")[0]
    )
    loaded = load_kustomizations(["overlay"])
    assert [] == [str(each) for each in loaded.errors]
    assert "Pod" in {each.value["kind"] for each in loaded.documents}


@pytest.mark.parametrize("address", ["http://host.example/a.yaml", "https://host.example/a", "git@127.0.0.1:a/b"])
@pytest.mark.parametrize("words", ["kustomize build", "kubectl kustomize"])
def test_what_an_inspection_would_miss_is_not_fetched(tree: Path, words: str, address: str) -> None:
    """The environment alone stops git, and the names of other machines, which are not looked up."""
    name, *rest = words.split()
    real = shutil.which(name, path="/usr/local/bin:/usr/bin:/bin")
    if real is None:
        pytest.skip(f"{name} is not installed")
    (tree / "overlay" / "kustomization.yaml").write_text(f"resources: ['{address}']\n")
    with pytest.raises(UsageError, match=r"proxyconnect tcp: dial tcp 127\.0\.0\.1:9|transport 'ssh' not allowed"):
        render([real, *rest, str(tree / "overlay")], "it")


@pytest.mark.parametrize("name", ["helm", "kustomize"])
def test_programs_have_an_environment_of_their_own(tree: Path, name: str) -> None:
    """An empty home, no plugins, no credentials; and they do not run in the tree."""
    (load_charts if name == "helm" else load_kustomizations)(["chart" if name == "helm" else "overlay"])
    environment = (tree.parent / "environment").read_text()
    assert "canary" not in environment
    assert {"KUBECONFIG=/dev/null", "GIT_ALLOW_PROTOCOL="} <= {*environment.splitlines()}
    folders = (tree.parent / "folders").read_text().splitlines()
    assert [] == [each for each in folders if each and not each.startswith("/") and each != "helm"]
    assert not Path((tree.parent / "place").read_text().strip()).is_relative_to(tree)


def test_the_flag_gives_kustomize_the_environment_of_the_user(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Private bases need the user's credentials; helm and its plugins never get them."""
    (tree / "overlay" / "kustomization.yaml").write_text("resources: ['https://host.example/x']\n")
    (tree / "policy.yaml").write_text(
        "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n  rules:\n  - name: r\n"
        "    match: {any: [{resources: {kinds: [Pod]}}]}\n"
        "    validate: {message: m, pattern: {metadata: {name: made}}}\n"
    )
    words = ("apply", "policy.yaml", "--kustomize", "overlay")
    assert 1 == run(words)
    assert "(`--remote-bases` allows it)" in capsys.readouterr().err
    assert 0 == run((*words, "--remote-bases"))
    assert "AWS_SECRET_ACCESS_KEY=canary" in (tree.parent / "environment").read_text()
    assert 1 == run(("apply", "policy.yaml", "-r", "base", "--remote-bases"))
    assert "--remote-bases needs --kustomize FOLDER" in capsys.readouterr().err


# ----------------------------------------------------------------------------------------------------------- charts


def test_a_chart_has_no_link_out_of_its_tree(tree: Path) -> None:
    """Helm follows links, and `.Files.Get` prints what is there; one within the tree is fine."""
    (tree / "chart" / "charts").mkdir()
    (tree / "chart" / "charts" / "base").symlink_to(tree / "base")
    assert [] == load_charts(["chart"]).errors
    (tree / "base" / "secret").symlink_to(tree.parent / "outside" / "secret.yaml")
    (error,) = load_charts(["chart"]).errors
    assert (
        f"`chart/charts/base/secret` is a link to a place outside of `{tree}`: helm would print what is there"
        == str(error)
    )


def test_a_chart_has_no_pipes(tree: Path) -> None:
    """Helm would wait for them."""
    os.mkfifo(tree / "chart" / "templates" / "pipe.yaml")
    (error,) = load_charts(["chart"]).errors
    assert "it is a pipe, a socket or a device" in str(error)


@pytest.mark.parametrize("name", ["oci:/host.example/x", "https:/host.example/x", "--post-renderer", "repository/name"])
def test_the_name_of_a_chart_is_no_address_and_no_flag(tree: Path, name: str) -> None:
    """A folder of the tree may have the name of a repository."""
    shutil.copytree(tree / "chart", tree / name)
    assert [] == load_charts([name.replace(":/", "://")]).errors
    assert f"template release-name {tree}/{name} --include-crds\n" == (tree.parent / "words").read_text()


@pytest.mark.parametrize("name", ["https:/host.example/v.yaml", "secrets:/v.yaml", "a,b.yaml", "--post-renderer=x"])
def test_the_name_of_a_values_file_is_no_address_and_no_flag(tree: Path, name: str) -> None:
    """Helm takes it for the name of a plugin, an address, or for two names: it gets a copy."""
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    (tree / name).write_text("a: 1\n")
    assert [] == load_charts(["chart"], [name.replace(":/", "://")]).errors
    (word,) = (each for each in (tree.parent / "words").read_text().split() if each.startswith("--values"))
    assert (True, True) == (word.startswith("--values=/"), word.endswith("/values-0.yaml"))
    with pytest.raises(PyvernoError, match="cannot read"):
        raise load_charts(["chart"], ["https://host.example/none.yaml"]).errors[0]
