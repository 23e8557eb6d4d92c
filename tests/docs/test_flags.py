"""Commands and flags in README, guide and differences are those of the command line."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "docs/differences.md", *sorted((ROOT / "docs/guide").rglob("*.md")))
REFERENCE = ROOT / "docs/reference"

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([^`\n]+)`")
_SECTION = re.compile(r"^## pyverno ?(.*)$", re.MULTILINE)
_FLAG = re.compile(r"(?<![\w=-])--?[A-Za-z][\w-]*")
_COMMAND = re.compile(r"^(?:uvx --from \. |\S*bin/)?pyverno((?: [a-z][a-z-]*)*)((?: [^\s|]+)*)")
_OTHERS = {"--admission-control-config-file", "--flag"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_flags_of_a_page_exist(page: Path) -> None:
    """Every flag in code type is one of some command, and each flag of a command is one of that command."""
    text = page.read_text(encoding="utf-8")
    lines = [code for code in _INLINE.findall(_FENCE.sub("", text)) if code.startswith(("--", "pyverno "))]
    for language, body in _FENCE.findall(text):
        if language in ("", "sh", "console"):
            written = body.replace("\\\n", " ").splitlines()
            lines += [line.removeprefix("$ ") for line in written if language != "console" or line.startswith("$ ")]
    assert [] == [line for line in lines if _unknown_flags(line)]


def _unknown_flags(line: str) -> set[str]:
    if line.startswith("--"):
        return {re.split("[ =]", line, maxsplit=1)[0]} - set().union(*_flags().values()) - _OTHERS
    found = _COMMAND.match(line.partition(" --exec ")[0])
    if found is None:
        return set()
    words = found[1].split()
    name = next((" ".join(words[:size]) for size in (2, 1) if " ".join(words[:size]) in _flags()), "")
    return set(_FLAG.findall(found[2])) - _flags()[name] - {"-h", "--help"}


@cache
def _flags() -> dict[str, set[str]]:
    """Return the flags of each command, from the generated reference."""
    flags: dict[str, set[str]] = {}
    for page in ("command-line.md", "controllers.md"):
        _, *parts = _SECTION.split((REFERENCE / page).read_text(encoding="utf-8"))
        for name, body in zip(parts[::2], parts[1::2], strict=True):
            rows = "".join(row.split(" | ")[0] for row in body.splitlines() if row.startswith("| `-"))
            flags.setdefault(name, set()).update(_FLAG.findall(rows))
    return flags
