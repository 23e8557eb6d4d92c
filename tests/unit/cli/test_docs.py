"""`pyverno docs`: a page for every command, out of the commands themselves."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import pytest

from pyverno.cli.docs import pages
from pyverno.cli.root import root

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commandline import Run


def test_every_command_has_a_page_with_its_flags(cli: Run, folder: Path) -> None:
    """The folder is made; links lead to files that are there."""
    assert 0 == cli("docs", "--output", "out/cli").code
    names = {path.name for path in (folder / "out/cli").iterdir()}
    assert {"pyverno.md", "pyverno_test.md", "pyverno_jp_query.md", "pyverno_create_user-info.md"} <= names
    text = (folder / "out/cli/pyverno_test.md").read_text()
    assert text.startswith("<!-- written by `pyverno docs`, do not edit -->\n\n## pyverno test\n")
    assert "| `-b, --git-branch BRANCH` | Branch of a git repository. |" in text
    for path in (folder / "out/cli").iterdir():
        for link in re.findall(r"\]\((.*?)\)", path.read_text()):
            assert link in names


def test_website_adds_front_matter(cli: Run, folder: Path) -> None:
    """`--noDate` omits the date and `--markdownLinks` keeps `.md` in links."""
    cli("docs", "-o", "out", "--website", "--noDate", "--autogenTag=false")
    text = (folder / "out/pyverno_jp.md").read_text()
    assert text.startswith('---\ntitle: "pyverno jp"\nweight: 35\n---\n\n## pyverno jp\n')
    assert "(pyverno_jp_query)" in text
    cli("docs", "-o", "dated", "--website", "--markdownLinks")
    text = (folder / "dated/pyverno_jp.md").read_text()
    assert "\ndate: 20" in text
    assert "(pyverno_jp_query.md)" in text


def test_a_folder_is_needed(cli: Run, folder: Path) -> None:
    """And must be one that can be written."""
    assert 'Error: required flag(s) "output" not set\n' == cli("docs").err
    (folder / "file").write_text("")
    assert cli("docs", "-o", "file").err.startswith("Error: cannot write into `file`: ")


EXAMPLES = [
    line
    for _, text in pages(root)
    for block in re.findall(r"### Examples\n\n```\n(.*?)```", text, re.DOTALL)
    for line in block.splitlines()
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_name_only_flags_that_exist(cli: Run, example: str) -> None:
    """Every example of every help is parsed by its own command."""
    for part in re.split(r"\||<\(|\)|;", example):
        words = shlex.split(part.partition(" > ")[0], comments=False) if "pyverno " in part and "'" not in part else []
        if words[:1] != ["pyverno"]:
            continue
        command, rest = root.make_context("pyverno", ["--help"], resilient_parsing=True), words[1:]
        path = [word for word in rest if not word.startswith("-")]
        found = root.get_command(command, path[0])
        assert found is not None, example
        known = {name for parameter in found.params for name in (*parameter.opts, *parameter.secondary_opts)}
        below = getattr(found, "commands", {}).get(path[1]) if len(path) > 1 else None
        if below is not None:
            known |= {name for parameter in below.params for name in parameter.opts}
        for word in rest:
            if word.startswith("-") and len(word) > 1:
                assert word.partition("=")[0] in known, example
