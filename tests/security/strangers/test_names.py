"""A stranger who chooses names: no command of theirs runs in a log, and no file is written elsewhere, in any format.

Every command of the table runs in every format on documents whose names, messages and files are hostile. A command or a
format that is new needs a line here.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import click
import pytest

from pyverno.cli.root import root, run
from tests.security.strangers.hostilenames import HOSTILE, READERS, commands_of_runners, controls, plant

_FORMS: Final = {"--format", "-o", "--output", "--output-format", "--report", "--compat"}
"""Flags whose value, one of a list, is a form of the output."""

RUNS: Final[Mapping[str, tuple[str, ...]]] = {
    "apply": (
        "apply policy.yaml error.yaml passes.yaml -r pod.yaml --format FORM",
        "apply policy.yaml error.yaml passes.yaml -r pod.yaml -v",
        "apply policy.yaml error.yaml passes.yaml -r pod.yaml -t --detailed-results",
        "apply policy.yaml error.yaml passes.yaml -r pod.yaml --compat FORM",
        "apply policy.yaml error.yaml passes.yaml -r pod.yaml -p --output-format FORM",
        "apply policy.yaml -r pod.yaml -e exception.yaml --userinfo user.yaml -f values.yaml -v",
        "apply policy.yaml -r pod.yaml --generate-exceptions",
        "apply mutate.yaml generate.yaml -r pod.yaml",
        "apply mutate.yaml generate.yaml -r pod.yaml --compat FORM",
        "apply mutate.yaml generate.yaml -r pod.yaml -o out",
        "apply policy.yaml -r object.yaml -v",
        "apply tree -r tree",
        "apply values.yaml exception.yaml -r reports.yaml",
    ),
    "policies apply": (
        "policies apply disallow-latest-tag -r pod.yaml --format FORM",
        "policies apply disallow-latest-tag -r pod.yaml -p --output-format FORM",
        "policies apply disallow-latest-tag -r pod.yaml --compat FORM",
    ),
    "lint": (
        "lint policy.yaml error.yaml --format FORM",
        "lint policy.yaml -o FORM",
        "lint tree",
        "lint exception.yaml",
    ),
    "test": (
        "test . -o FORM",
        "test .",
        "test . --detailed-results -o FORM",
        "test . --coverage --report out.md",
        "test . --coverage --report out.html",
        "test tree",
    ),
    "explain": ("explain policy.yaml error.yaml -r pod.yaml --all -o FORM", "explain tree -r tree --all"),
    "equivalent": ("equivalent policy.yaml passes.yaml -n 20 -o FORM --certificate out.json",),
    "analyze": ("analyze policy.yaml passes.yaml --select PA201 -n 1 -o FORM",),
    "impact": ("impact --from passes.yaml --to policy.yaml -r pod.yaml -o FORM",),
    "report": ("report reports.yaml -o FORM", "report reports.yaml -o FORM --by resource --output out"),
    "verify": ("verify NAME --key policy.yaml -o FORM",),
    "jp query": ("jp query -u -i pod.yaml metadata.name", "jp query -i pod.yaml metadata"),
    "jp parse": ("jp parse NAME",),
    "cel eval": ("cel eval -i pod.yaml object.metadata.name", "cel eval --object pod.yaml object NAME"),
    "cel check": ("cel check policy.yaml", "cel check NAME"),
    "create exception": ("create exception NAME --policy-rules NAME,NAME --any kind=Pod,name=NAME",),
    "create test": ("create test --name NAME --policy NAME --resource NAME",),
    "create values": ("create values --policy NAME",),
    "create user-info": ("create user-info --username NAME",),
    "create cluster-role": ("create cluster-role NAME",),
    "create metrics-config": ("create metrics-config --name NAME",),
    "config show": ("config show",),
    "fix policy": ("fix policy .", "fix policy tree", "fix policy . --save"),
    "fix test": ("fix test .", "fix test tree", "fix test . --save"),
    "migrate": (
        "migrate policy.yaml passes.yaml -n 10 --report FORM",
        "migrate policy.yaml passes.yaml -n 10 --write out",
        "migrate policy.yaml -n 10 --diff",
        "migrate policy.yaml -n 10 --plan",
        "migrate tree -n 10",
        "migrate . -n 10 --write out",
    ),
}
"""Runs by command; FORM is each of the formats of the flag before it, NAME the hostile name."""

OTHERS: Final[Mapping[str, str]] = {
    "ui": "a server: its pages and its log have tests of their own",
    "trust": "reads a TUF repository whose files it verifies",
    "sandbox": "a server: its log is that of `telemetry.logs`",
    "jp function": "prints our own documentation",
    "cel functions": "prints our own documentation",
    "policies list": "shows our own library",
    "policies show": "shows our own library",
    "policies copy": "copies our own library",
    "controller admission": "a server: its log is that of `telemetry.logs`",
    "controller background": "a server",
    "controller cleanup": "a server",
    "controller reports": "a server",
    "controller release": "prints the name of its own deployment",
    "install": "prints our own manifests",
    "version": "prints the version",
    "completion": "prints our own script",
    "docs": "prints our own documentation",
    "oci push": "its policies have names that Kubernetes allows, tested with a registry",
    "oci pull": "its policies have names that Kubernetes allows, tested with a registry",
}
"""Commands that show no name of a stranger, with the reason."""


def _leaves(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from _leaves(found, f"{path} {name}".strip())
    else:
        yield path, command


_COMMANDS: Final = dict(_leaves(root, ""))


def _forms(command: str) -> dict[str, tuple[str, ...]]:
    """Return the formats of a command by each spelling of their flag."""
    return {
        word: tuple(each for each in option.type.choices if each)
        for option in _COMMANDS[command].params
        if isinstance(option.type, click.Choice) and _FORMS & set(option.opts)
        for word in option.opts
    }


def _calls(command: str) -> Iterator[tuple[list[str], str]]:
    for line in RUNS[command]:
        words = line.split()
        if "FORM" not in words:
            yield words, ""
            continue
        at = words.index("FORM")
        for form in _forms(command).get(words[at - 1], ("text", "json", "yaml")):
            yield [*words[:at], form, *words[at + 1 :]], form


def test_every_command_and_every_format_is_tried() -> None:
    """A new command is in one of the tables, and a flag for a format in a line of its command."""
    assert set(_COMMANDS) == {*RUNS, *OTHERS}
    tried = {command: " ".join(RUNS[command]) for command in RUNS}
    missing = [
        f"{command} {flags[0]}"
        for command in RUNS
        for flags in {
            forms: [word for word, own in _forms(command).items() if own == forms] for forms in _forms(command).values()
        }.values()
        if not any(f"{word} FORM" in tried[command] for word in flags)
    ]
    assert [] == missing


def _wrong(text: str, form: str) -> Iterator[str]:
    if found := controls(text, form):
        yield f"characters {sorted(found)}"
    yield from (f"command {each!r}" for each in commands_of_runners(text, form))


def _of_run(place: Path, words: list[str], form: str, capsys: pytest.CaptureFixture[str]) -> Iterator[str]:
    """Yield what is wrong with the outputs and the files of one run."""
    before = {*place.parent.parent.rglob("*")}
    run(words)
    shown = capsys.readouterr()
    yield from _wrong(shown.out, form)
    yield from _wrong(shown.err, "")
    if "internal error" in shown.err:
        yield f"internal error {shown.err}"
    is_report = "--report" in words and form
    read = shown.err if is_report else shown.out
    if form in READERS and read.strip() and not (is_report and read.startswith("Error")):
        yield from READERS[form](read)
    for path in {*place.parent.parent.rglob("*")} - before:
        if not path.is_relative_to(place):
            yield f"file {path}"
        if path.is_file() and path.suffix != ".bak":
            own = form or {".md": "markdown", ".html": "html"}.get(path.suffix, "")
            text = path.read_bytes().decode()
            yield from _wrong(text, own)
            yield from READERS.get(own, lambda _: iter(()))(text)


@pytest.mark.parametrize("command", RUNS)
def test_names_are_data_in_every_output(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No raw control, no command of a runner that is not ours, no link, element or formula, and no file elsewhere."""
    wrong = []
    for title, name in HOSTILE.items():
        for number, (words, form) in enumerate(_calls(command)):
            place = tmp_path / title / str(number) / "a"
            plant(place, name)
            monkeypatch.chdir(place)
            (place / ".pyverno.yaml").rename(place / "own.yaml") if command != "config show" else None
            call = [each.replace("NAME", name) for each in words]
            wrong += [f"{title}: {' '.join(words)}: {each}" for each in _of_run(place, call, form, capsys)]
    assert not wrong, "\n".join(wrong)


_LINES: Final = (
    "apply policy.yaml error.yaml -r pod.yaml --compat kyverno",
    "lint policy.yaml",
    "explain policy.yaml -r pod.yaml",
)


@pytest.mark.parametrize("line", _LINES, ids=["apply", "lint", "explain"])
def test_a_process_prints_names_as_data(line: str, tmp_path: Path) -> None:
    """Plain command lines run without click, and write bytes."""
    wrong = []
    for title, name in HOSTILE.items():
        place = tmp_path / title / "a"
        plant(place, name)
        (place / ".pyverno.yaml").unlink()
        done = subprocess.run(
            [sys.executable, "-m", "pyverno", *line.split()], cwd=place, capture_output=True, check=False, timeout=120
        )
        assert done.stdout + done.stderr
        for text in (done.stdout.decode(), done.stderr.decode()):
            wrong += [f"{title}: {each}" for each in _wrong(text, "")]
    assert [] == wrong
