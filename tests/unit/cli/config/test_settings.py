"""Settings of a configuration file: where it is found, what it may hold, and that flags win."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pyverno.cli.args.configpath import config_path

if TYPE_CHECKING:
    from tests.support.commandline import Run

YAML = """\
apply:
  policies: [latest.yaml]
  resources: bad.yaml
  format: json
  max-results: 1
lint:
  ignore: [PV104]
test:
  strict: true
"""


def test_settings_are_defaults_of_flags_and_arguments(cli: Run, folder: Path) -> None:
    """The command line needs no word more."""
    (folder / ".pyverno.yaml").write_text(YAML)
    for words in (["apply"], ["--v=1", "apply"]):
        ran = cli(*words)
        assert (1, "fail") == (ran.code, json.loads(ran.out)["results"][0]["status"])


def test_flags_and_arguments_win(cli: Run, folder: Path) -> None:
    """A list on the command line replaces the one of the file; `--config none` reads no file."""
    (folder / ".pyverno.yaml").write_text(YAML)
    ran = cli("apply", "label.yaml", "latest.yaml", "-r", "good.yaml", "--format=yaml")
    assert "bad" not in ran.out
    assert ran.out.startswith("errors:")
    assert "Error: require policy\n" == cli("apply", "--config", "none").err


def test_pyproject_has_a_table_for_it(cli: Run, folder: Path) -> None:
    """Of the same keys."""
    (folder / "pyproject.toml").write_text(
        '[tool.pyverno.apply]\npolicies = ["latest.yaml"]\nresources = ["bad.yaml"]\nmax-results = 3\n'
    )
    assert 1 == cli("apply").code
    (folder / ".pyverno.yaml").write_text(YAML)
    assert cli("apply").out.startswith("{"), "the own file goes first"


def test_paths_are_relative_to_the_file(cli: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is found from the working folder upwards, to the root of the repository and no further."""
    (folder / ".pyverno.yaml").write_text(YAML.replace("json", "github"))
    below = folder / "a/b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert "" == config_path([]), "outside a repository folders above count for nothing"
    (folder / ".git").mkdir()
    ran = cli("apply")
    assert (1, True) == (ran.code, ran.out.startswith("::error file=../../bad.yaml,line=9"))
    (folder / "a/.git").mkdir()
    assert "" == config_path([])


def test_kyvernos_name_reads_no_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository cannot change what Kyverno's command does."""
    (folder / ".pyverno.yaml").write_text(YAML)
    monkeypatch.setattr("sys.argv", ["/usr/bin/kyverno", "apply"])
    assert "" == config_path([])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("apply:\n  formt: json\n", ".pyverno.yaml:2:3: unknown setting `formt` of `apply`: did you mean `format`?"),
        ("aply: {}\n", ".pyverno.yaml:1:1: unknown section `aply`: did you mean `apply`?"),
        ("apply:\n  format: jsn\n", ".pyverno.yaml:2:3: `format` cannot be `jsn`: did you mean `json`?"),
        ("apply:\n  workers: two\n", ".pyverno.yaml:2:3: `workers` must be a whole number"),
        ("apply:\n  quiet: 'yes'\n", ".pyverno.yaml:2:3: `quiet` must be true or false"),
        ("apply:\n  resources: [1]\n", ".pyverno.yaml:2:3: `resources` must be a text or a list of texts"),
        ("apply:\n  password: x\n", ".pyverno.yaml:2:3: `password` is a secret: it cannot be a setting"),
        ("- a\n", ".pyverno.yaml:1:1: the configuration must be a map of commands"),
        ("apply: [\n", "the configuration cannot be used: "),
    ],
)
def test_a_wrong_setting_is_an_error_at_its_line(cli: Run, folder: Path, text: str, message: str) -> None:
    """Nothing is left out in silence, in whatever command."""
    (folder / ".pyverno.yaml").write_text(text)
    for command in (("apply", "latest.yaml", "-r", "good.yaml"), ("lint", "latest.yaml"), ("config", "show")):
        ran = cli(*command)
        assert 1 == ran.code
        assert message in ran.err


def test_show_names_the_line_of_each_setting(cli: Run, folder: Path) -> None:
    """And the defaults with `--all`."""
    (folder / ".pyverno.yaml").write_text(YAML)
    shown = cli("config", "show").out.replace(f"{Path.cwd()}/", "")
    expected = """\
apply:
  policies: ["latest.yaml"]  # .pyverno.yaml:2
  resources: ["bad.yaml"]  # .pyverno.yaml:3
  format: "json"  # .pyverno.yaml:4
  max-results: 1  # .pyverno.yaml:5
lint:
  ignore: ["PV104"]  # .pyverno.yaml:7
test:
  strict: true  # .pyverno.yaml:9
"""
    assert expected == shown
    assert "  warn-exit-code: 0  # default\n" in cli("config", "show", "--all").out
    assert "# no configuration file\n" == cli("config", "show", "--config", "none").out


def test_a_file_that_is_named_must_exist(cli: Run) -> None:
    """It is no wish."""
    assert "cannot read `none.yaml`" in cli("apply", "latest.yaml", "-r", "good.yaml", "--config", "none.yaml").err


def test_a_text_with_commas_stays_one_item(cli: Run, folder: Path) -> None:
    """Lists of the file are lists already."""
    (folder / "a,b.yaml").write_text((folder / "good.yaml").read_text())
    (folder / ".pyverno.yaml").write_text("apply:\n  resources: ['a,b.yaml']\n")
    assert 0 == cli("apply", "latest.yaml").code
