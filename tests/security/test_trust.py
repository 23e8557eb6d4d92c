"""The trust table (`docs/contributing/trust.tsv`): each source that is read, who may write it, and what stands between.

A module that reads something names the rows by a comment `# trust rows: ROW, ROW`. The places where modules read are
found by their syntax, so that a new one without a row fails; each kind of place belongs to certain rows.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

_ROOT: Final = Path(__file__).parents[2]
_SOURCE: Final = _ROOT / "src" / "pyverno"
_TABLE: Final = _ROOT / "docs" / "contributing" / "trust.tsv"
_MARK: Final = re.compile(r"^# trust rows: ([\w, -]+)$", re.MULTILINE)


class Row(NamedTuple):
    """A row of the table; `check` is a function or class as `module.py:name`, `test` a node id of pytest."""

    id: str
    source: str
    written_by: str
    influences: str
    check: str
    test: str


HEADER: Final = Row("id", "source", "written by", "may influence", "check", "test")
FILES: Final = frozenset(
    {
        *("chart", "docker-configuration", "found-configuration", "git-clone", "git-repository", "ignore-file"),
        *("judged-file", "judged-name", "kubeconfig", "named-configuration", "named-file", "notification-settings"),
        *("output-file", "own-file", "own-process", "package", "program-output", "recorded-requests", "test-suite"),
        *("cloud-metadata", "trust-root"),
    }
)
PEERS: Final = frozenset(
    {
        *("api-answer", "browser", "cloud-metadata", "download", "git-clone", "name-server", "notification-target"),
        *("own-process", "registry-answer", "service-answer", "token-claim", "tuf-repository"),
    }
)
ROWS_OF: Final = {
    "environment": frozenset({"environment"}),
    "words": frozenset({"command-line"}),
    "standard input": frozenset({"standard-input", "own-process"}),
    "file": FILES,
    "program": frozenset({"docker-configuration", "kubeconfig", "own-process", "program-output"}),
    "peer": PEERS,
    "request": frozenset({"admission-review", "browser", "probe", "proxy-header", "session", "service-answer"}),
    "database": frozenset({"store"}),
}
"""The rows that a kind of place may belong to."""

_FILE_NAMES: Final = frozenset({"read_text", "read_bytes", "rglob", "iglob", "iterdir", "scandir", "fwalk", "listdir"})
_REQUEST_PARTS: Final = frozenset(
    {"query", "query_string", "rel_url", "path", "match_info", "headers", "cookies", "content", "read", "json", "post"}
)


def rows() -> tuple[Row, ...]:
    """Return the rows of the table, its header first."""
    lines = _TABLE.read_text(encoding="utf-8").splitlines()
    return tuple(Row(*line.split("\t")) for line in lines)


def places(text: str) -> Iterator[str]:
    """Yield the kind of each place in a module that reads something from outside."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            yield from _of_call(node)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            match node.value.id, node.attr:
                case "os", "environ" | "environb":
                    yield "environment"
                case "sys", "argv":
                    yield "words"
                case "sys", "stdin":
                    yield "standard input"
                case "request", part if part in _REQUEST_PARTS:
                    yield "request"


def _of_call(node: ast.Call) -> Iterator[str]:
    match node.func:
        case ast.Name(id="open"):
            yield "file"
        case (
            ast.Attribute(value=ast.Name(id="os"), attr="open" | "walk" | "fdopen")
            | ast.Attribute(value=ast.Name(id="glob"), attr="glob")
        ):
            yield "file"
        case ast.Attribute(value=ast.Name(id="os"), attr="getenv"):
            yield "environment"
        case ast.Attribute(attr="open") if _has_mode(node):
            yield "file"
        case ast.Attribute(attr=name) if name in _FILE_NAMES:
            yield "file"
        case (
            ast.Attribute(value=ast.Name(id="subprocess"))
            | ast.Attribute(attr="create_subprocess_exec" | "create_subprocess_shell")
        ):
            yield "program"
        case (
            ast.Attribute(attr="ClientSession")
            | ast.Attribute(value=ast.Name(id="asyncio"), attr="open_connection" | "open_unix_connection")
            | ast.Attribute(value=ast.Name(id="socket"), attr="socket" | "create_connection" | "getaddrinfo")
        ):
            yield "peer"
        case ast.Attribute(value=ast.Name(id="sqlite3" | "psycopg"), attr="connect"):
            yield "database"


def _has_mode(node: ast.Call) -> bool:
    """Return whether a method `open` opens a file: it has no argument, a mode, or an encoding."""
    first = node.args[0] if node.args else None
    is_mode = isinstance(first, ast.Constant) and isinstance(first.value, str) and set(first.value) <= set("rwabx+t")
    return is_mode or any(each.arg == "encoding" for each in node.keywords)


def _modules() -> Iterator[tuple[str, str]]:
    return (
        (path.relative_to(_SOURCE).as_posix(), path.read_text(encoding="utf-8"))
        for path in sorted(_SOURCE.rglob("*.py"))
    )


def _marked(text: str) -> frozenset[str]:
    return frozenset(name.strip() for found in _MARK.findall(text) for name in found.split(","))


def test_every_reader_names_its_rows() -> None:
    """A module that reads from a new kind of place names a row for it; one that reads no more names none."""
    missing = [
        f"{module}: {kind}, one of {', '.join(sorted(ROWS_OF[kind]))}"
        for module, text in _modules()
        for kind in sorted({*places(text)})
        if not ROWS_OF[kind] & _marked(text)
    ]
    assert [] == missing


def test_every_row_is_read_and_every_mark_is_a_row() -> None:
    """A row that nothing reads is a claim about nothing."""
    known = [row.id for row in rows()[1:]]
    named = {name for _, text in _modules() for name in _marked(text)}
    assert len(known) == len({*known})
    assert {*known} == named


def test_every_row_says_who_writes_and_what_stands_between() -> None:
    """The table is whole: the check is in the source, and the test exists."""
    header, *found = rows()
    assert HEADER == header
    assert found
    assert [] == [row.id for row in found if not all(row)]
    assert [] == [row.id for row in found if not _has_definition(row)]
    assert [] == [row.id for row in found if not _has_test(row)]


def _has_definition(row: Row) -> bool:
    module, _, name = row.check.partition(":")
    return name in _definitions(_SOURCE / module)


def _has_test(row: Row) -> bool:
    module, _, name = row.test.partition("::")
    return name.startswith("test_") and name in _definitions(_ROOT / module)


def _definitions(path: Path) -> set[str]:
    if not path.is_file():
        return set()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, kinds)}


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("open(x)", "file"),
        ("path.read_bytes()", "file"),
        ("path.open('rb')", "file"),
        ("path.open(encoding='utf-8')", "file"),
        ("os.walk(x)", "file"),
        ("glob.glob(x)", "file"),
        ("os.environ['X']", "environment"),
        ("os.getenv('X')", "environment"),
        ("sys.argv", "words"),
        ("sys.stdin.read()", "standard input"),
        ("subprocess.run(x)", "program"),
        ("await asyncio.create_subprocess_exec(x)", "program"),
        ("aiohttp.ClientSession()", "peer"),
        ("socket.create_connection(x)", "peer"),
        ("request.query", "request"),
        ("await request.read()", "request"),
        ("sqlite3.connect(x)", "database"),
    ],
)
def test_the_check_sees_each_kind_of_place(line: str, kind: str) -> None:
    """A new way to read belongs here."""
    assert [kind] == [*places(f"async def f():\n    {line}\n")]
