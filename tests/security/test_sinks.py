"""I22: names are data in every sink, all output leaves through one, and no file is made of a name but by one."""

from __future__ import annotations

import ast
import json
import logging
import os
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

import pyverno
from pyverno.cli.apply.options import FORMATS as APPLY_FORMATS
from pyverno.cli.lint.command import FORMATS as LINT_FORMATS
from pyverno.cli.root import run
from pyverno.errors import UsageError
from pyverno.kube.yaml.documents import load_documents
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.sinks.cells import csv_cell
from pyverno.sinks.characters import block, one_line, visible
from pyverno.sinks.filenames import MOST_BYTES, file_name, file_names, inside
from pyverno.sinks.markdown import markdown_cell, markdown_code, markdown_text
from pyverno.sinks.markup import html_text, sarif_text, xml_attribute, xml_text
from pyverno.sinks.records import event_text, json_text, label_value
from pyverno.sinks.runners import (
    azure_data,
    azure_property,
    github_data,
    github_property,
    tap_text,
    teamcity_value,
)
from pyverno.sinks.terminal import PALETTE, terminal_text
from pyverno.telemetry.logs import JsonFormatter, TextFormatter
from tests.security.strangers.hostilenames import HOSTILE, commands_of_runners, controls
from tests.support import documents

SOURCE: Final = Path(pyverno.__file__).parent

TEXTS: Final[Mapping[str, Callable[[str], str]]] = {
    "visible": visible,
    "one_line": one_line,
    "block": lambda text: block(text, "  "),
    "terminal": terminal_text,
    "github": github_data,
    "github property": github_property,
    "azure": azure_data,
    "azure property": azure_property,
    "teamcity": teamcity_value,
    "tap": tap_text,
    "markdown": markdown_text,
    "markdown cell": markdown_cell,
    "markdown code": markdown_code,
    "html": html_text,
    "sarif": sarif_text,
    "xml": xml_text,
    "xml attribute": xml_attribute,
    "csv": csv_cell,
    "label": label_value,
    "event": lambda text: event_text(text, 1024),
    "file": file_name,
}
"""Every sink of text by name."""

_LINES: Final = frozenset(
    ("one_line", "github", "github property", "azure", "azure property", "teamcity", "tap", "label", "file")
)
"""Sinks that make one line of a text."""

_BARE: Final = frozenset(("visible", "one_line", "block", "tap", "label", "sarif"))
"""Sinks whose text is within a line or a document of ours: what is around them keeps commands away."""

_PLAIN: Final = "Grüße 日本語 ñ é 한국어 عربى \N{WOMAN}\u200d\N{PERSONAL COMPUTER}"


@pytest.mark.parametrize("sink", TEXTS)
def test_no_sink_lets_a_control_character_through(sink: str) -> None:
    """Each character that a terminal obeys or hides becomes a visible escape; lines only where a text has lines."""
    every = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) in ("Cc", "Cs", "Zl", "Zp")]
    wrong = [*controls(TEXTS[sink](f"a{''.join(every)}b"))]
    shown = {name: TEXTS[sink](text) for name, text in HOSTILE.items()}
    assert ([], {}) == (wrong, {name: text for name, text in shown.items() if controls(text)})
    if sink in _LINES:
        assert {} == {name: text for name, text in shown.items() if "\n" in text or "\t" in text}


@pytest.mark.parametrize("sink", [each for each in TEXTS if each not in _BARE])
def test_no_sink_lets_a_command_through(sink: str) -> None:
    """A text alone in a line, as the widest case."""
    shown = {name: TEXTS[sink](text) for name, text in HOSTILE.items()}
    if sink not in ("github", "github property", "azure", "azure property", "teamcity", "file"):
        assert {} == {name: text for name, text in shown.items() if commands_of_runners(text)}
    # a value of one of our commands is behind `::` or `##vso[…]` of ours
    assert {} == {name: text for name, text in shown.items() if commands_of_runners(f"a {text}")}


@pytest.mark.parametrize("sink", [each for each in TEXTS if each not in ("teamcity", "file")])
def test_text_of_people_stays(sink: str) -> None:
    """Umlauts, other scripts, and pictures of several characters are no attack."""
    assert _PLAIN in TEXTS[sink](_PLAIN)


def test_a_message_of_several_lines_stays_readable() -> None:
    """Its lines are indented, and none of them is a command."""
    text = "first\n::error::second\n  third\r\n"
    assert "first\n    ::error::second\n      third" == block(text, "    ")
    assert "first\n    \\::error::second\n      third" == terminal_text(block(text, "    "))


def test_a_block_of_code_ends_where_it_should() -> None:
    """Its fence is longer than any in its text."""
    assert "`````\na\n````\n# b\n`````" == markdown_code("a\n````\n# b")


def test_a_terminal_gets_our_own_colours_only() -> None:
    """They are a short list, and only for a terminal."""
    ours = "".join(f"{each}a" for each in PALETTE)
    assert ours == terminal_text(ours, is_coloured=True)
    assert not controls(terminal_text(ours))
    assert r"\x1b[2J\x1b[38;5;1m" == terminal_text("\x1b[2J\x1b[38;5;1m", is_coloured=True)


def test_documents_keep_their_data() -> None:
    """JSON and YAML are as exact as they are harmless."""
    for name in HOSTILE.values():
        value = {name: [name, {"a": name}], "text": f"{name}\n"}
        text = dump_yaml(value)
        assert value == load_documents(text.encode(), file="a")[0].value
        assert ([], set()) == (commands_of_runners(text), controls(text))
    value = {name: name for name in HOSTILE.values()}
    text = json_text(json.dumps(value, ensure_ascii=False))
    assert value == json.loads(text)
    assert ([], set()) == (commands_of_runners(text), controls(text))


@pytest.mark.parametrize("form", [JsonFormatter, TextFormatter])
def test_an_event_of_the_log_is_one_line(form: type[logging.Formatter]) -> None:
    """Its text, its fields and its error are data in both forms."""
    for name in HOSTILE.values():
        error = UsageError(name)
        record = logging.LogRecord("pyverno", 20, "", 0, name, (), (UsageError, error, None))
        record.fields = {"policy": name, "rules": [name]}
        lines = form().format(record).split("\n")
        assert ([], set()) == (commands_of_runners("\n".join(lines)), controls("".join(lines)))
        assert len(lines) <= 2


# ------------------------------------------------------------------------------------------------------------ files

_NAMES: Final = (
    *HOSTILE.values(),
    *("..", ".", "", "/", "a/b", "a\\b", "C:\\x", "C:x", "~", "-rf", ".hidden", "a\0b", "x" * 5000, "é" * 300),
    *("con", "CON", "nul.txt", "com1", "LPT9.yaml", "a.", "a ", "a:stream", "\ud800", "\u202egnp", "a*b?", "conin$"),
)


def test_no_name_of_a_file_leaves_its_folder(tmp_path: Path) -> None:
    """Each is one part of a path, fit for every file system, and different from the others."""
    names = file_names(_NAMES)
    for text, name in zip(_NAMES, names, strict=True):
        path = inside(tmp_path, f"{name}.yaml")
        path.write_text(text.encode("utf-8", "replace").decode(), encoding="utf-8")
        assert tmp_path == path.resolve().parent
        assert (True, False) == (len(path.name.encode()) <= MOST_BYTES + 60, path.name.startswith((".", "-", " ")))
        assert path.stem.split(".")[0].casefold() not in ("con", "nul", "com1", "lpt9", "conin$", "")
        assert not set(name) & set('/\\:*?"<>|\0')
    assert len(_NAMES) == len({each.casefold() for each in names}) == len([*tmp_path.iterdir()])


def test_names_that_are_alike_are_different_files() -> None:
    """What a name loses comes back as a digest; names that differ in case, and equal ones, are told apart."""
    assert 5 == len({file_name(each) for each in ("a/b", "a:b", "a\0b", "a b", "a_b")})
    alike = ["a/b", "a_b", "a:b", "A_B", "a_b", file_name("a/b")]
    assert len(alike) == len({each.casefold() for each in file_names(alike)})
    assert ["require-labels", "v1.2_x"] == file_names(["require-labels", "v1.2_x"])


def test_no_file_is_written_through_a_link(tmp_path: Path) -> None:
    """Neither a link in the place of the file, nor one in the place of its folder."""
    folder, other = tmp_path / "out", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    (folder / "a.yaml").symlink_to(other / "a.yaml")
    (folder / "deep").symlink_to(other)
    for name in ("a.yaml", "deep/a.yaml", "../other/a.yaml", str(other / "a.yaml"), ""):
        with pytest.raises(UsageError, match="cannot write to"):
            inside(folder, name)
    assert folder / "b.yaml" == inside(folder, "b.yaml")


# ----------------------------------------------------------------------------------------------------- all sites

_STREAMS: Final[Mapping[tuple[str, str], str]] = {
    ("__main__.py", "sys.stdout"): "prints our own version, before anything is imported",
    ("__main__.py", "getattr(sys)"): "sets the encoding of the streams",
    ("cli/terminal.py", "getattr(sys)"): "the sink",
    ("cli/terminal.py", "sys.stderr"): "one sentence of ours, where the sink itself fails",
    ("cli/progress.py", "STDERR.raw"): "numbers, and the escapes that erase them, on a terminal only",
    ("cli/errors.py", "STDOUT.raw"): "sets the encoding, and closes the stream",
    ("cli/trust/run.py", "STDOUT.raw"): "writes bytes of a verified file, for a pipe",
    ("cli/sandbox/run.py", "sys.stderr"): "the log, whose formatter is a sink",
    ("telemetry/logs.py", "sys.stderr"): "the log, whose formatter is a sink",
    ("ui/playground/worker.py", "sys.stdout"): "messages to the process that started it",
    ("ui/playground/worker.py", "sys.stderr"): "output of libraries",
}
"""Who touches a stream of the process, and why that is no text of others."""

_FILES: Final[Mapping[tuple[str, str], str]] = {
    ("cli/apply/files.py", "os.open"): "`inside`, or the file that the user named",
    ("cli/create/command.py", "write_text"): "the file that the user named",
    ("cli/docs.py", "write_text"): "names of our own commands",
    ("cli/equivalent/run.py", "write_text"): "the file that the user named",
    ("cli/errors.py", "os.open"): "the null device",
    ("cli/fix/command.py", "os.open"): "the copy beside the file that is rewritten, which must not exist",
    ("cli/fix/command.py", "replace_file"): "the file that is rewritten",
    ("cli/fix/command.py", "with_name"): "the copy beside the file that is rewritten",
    ("cli/lint/run.py", "replace_file"): "the file that is rewritten",
    ("cli/migrate/output.py", "replace_file"): "`inside`, or the file that is rewritten",
    ("cli/migrate/suites.py", "copyfile"): "`inside`",
    ("cli/migrate/suites.py", "replace_file"): "`inside`, or the file that is rewritten",
    ("cli/oci/run.py", "write_text"): "`inside`",
    ("cli/policies/run.py", "write_bytes"): "names of our own library",
    ("cli/report/run.py", "open"): "the file that the user named",
    ("cli/test/measures.py", "write_text"): "the file that the user named",
    ("cli/test/newsuite.py", "os.open"): "the file that the user named, which must not exist",
    ("cli/test/run.py", "replace_file"): "the suite that is rewritten",
    ("cluster/sockets.py", "write_bytes"): "a name of ours in a folder of ours",
    ("offline/adoption/baseline.py", "replace_file"): "the file that the user named",
    ("offline/adoption/process.py", "write_bytes"): "a numbered copy in a temporary folder",
    ("offline/git/repository.py", "open"): "a copy of a reference, by the parts of its name that a folder lists",
    ("offline/git/repository.py", "os.open"): "a file that is read",
    ("offline/git/repository.py", "write_text"): "the configuration of a temporary repository",
    ("programs.py", "open"): "output of a program, in a temporary folder",
    ("offline/rewriting.py", "os.open"): "beside the file that is rewritten",
    ("offline/rewriting.py", "with_name"): "beside the file that is rewritten",
    ("telemetry/recording.py", "os.open"): "time and process",
    ("ui/store/sqlite.py", "os.open"): "the file that the operator named",
    ("webhook/tls.py", "write_bytes"): "a name of ours in a folder of ours",
}
"""Who writes a file, and where its name comes from."""

_WRITERS: Final = frozenset(
    ("write_text", "write_bytes", "replace_file", "copyfile", "copytree", "with_name", "symlink_to")
)
_ENCODERS: Final = ("html.escape", "xml.sax.saxutils", "unicode_escape", "string_escape")


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for module, text in _texts():
        yield module, ast.parse(text)


def _texts() -> Iterator[tuple[str, str]]:
    for folder, _, files in os.walk(SOURCE, followlinks=True):
        for path in (Path(folder, file) for file in sorted(files) if file.endswith(".py")):
            yield path.relative_to(SOURCE).as_posix(), path.read_text(encoding="utf-8")


def _stream_uses(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(
                value=ast.Name(id="sys"), attr="stdout" | "stderr" | "__stdout__" | "__stderr__" as name
            ):
                yield f"sys.{name}"
            case ast.Attribute(value=ast.Name(id="STDOUT" | "STDERR" as name), attr="raw"):
                yield f"{name}.raw"
            case ast.Call(func=ast.Name(id="getattr"), args=[ast.Name(id="sys"), ast.Attribute() | ast.Name(), *_]):
                yield "getattr(sys)"
            case ast.Call(func=ast.Name(id="print" | "input" as name)):
                yield name
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="click"), attr="echo" | "secho" | "echo_via_pager" as name)
            ):
                yield f"click.{name}"
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="os"), attr="write"), args=[ast.Constant(value=1 | 2), *_]
            ):
                yield "os.write"
            case ast.ImportFrom(module="sys", names=names):
                yield from (f"sys.{each.name}" for each in names if each.name in ("stdout", "stderr"))


def _file_uses(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="os"), attr="open")):
                yield "os.open"
            case ast.Call(func=ast.Attribute(attr="open") | ast.Name(id="open"), args=args):
                modes = [each.value for each in args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
                if any(set(mode) & set("wax") and len(mode) <= 3 for mode in modes):
                    yield "open"
            case ast.Call(func=ast.Attribute(attr=name)) if name in _WRITERS:
                yield name
            case ast.Call(func=ast.Name(id="replace_file" | "copyfile" as name)):
                yield name


def test_all_output_leaves_through_a_terminal() -> None:
    """Nothing prints but `STDOUT` and `STDERR` of `cli.terminal`; who touches a stream itself says why."""
    found = {(module, use) for module, tree in _modules() for use in _stream_uses(tree)}
    assert set(_STREAMS) == found


def test_who_writes_a_file_says_where_its_name_is_from() -> None:
    """A name that is made of a document goes through `file_name` and `inside`."""
    found = {(module, use) for module, tree in _modules() for use in _file_uses(tree)}
    assert set(_FILES) == found
    claimed = {module for (module, _), reason in _FILES.items() if reason.startswith("`inside`")}
    assert [] == [each for each in claimed if "inside(" not in (SOURCE / each).read_text(encoding="utf-8")]


def test_no_other_module_encodes_for_a_sink() -> None:
    """Escapes of HTML, XML and controls are made in `sinks` alone."""
    texts = {module: text for module, text in _texts() if not module.startswith("sinks/")}
    parts = ("from html import escape", "import html\n", *_ENCODERS)
    assert [] == [(module, part) for module, text in texts.items() for part in parts if part in text]


@pytest.mark.parametrize(
    ("command", "form"),
    [*(("apply", each) for each in APPLY_FORMATS if each), *(("lint", each) for each in LINT_FORMATS if each)],
)
def test_a_file_name_that_is_no_text_ends_no_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str, form: str
) -> None:
    """Git carries names that are not UTF-8; one of them would take all other findings out of a report."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "files").mkdir()
    wrong = documents.LATEST.replace("rules:", "rulez:")
    (tmp_path / "files/a.yaml").write_text(documents.BAD if command == "apply" else wrong)
    try:
        Path(os.fsdecode(b"files/\xe9.yaml")).write_text((tmp_path / "files/a.yaml").read_text())
    except OSError:
        pytest.skip("this file system has no such names")
    (tmp_path / "policy.yaml").write_text(documents.LATEST)
    words = {"apply": ["policy.yaml", "--resource", "files"], "lint": ["files"]}[command]
    run([command, *words, "--format", form])
    captured = capsys.readouterr()
    assert "internal error" not in captured.err
    assert "" != captured.out
