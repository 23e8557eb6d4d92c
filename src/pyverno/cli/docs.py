"""`pyverno docs`: the reference of the command line as Markdown, and the schemas of its JSON documents.

The reference comes from the commands themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from pathlib import Path

import click

from pyverno.cli.args.flags import switch, value
from pyverno.cli.args.sections import command
from pyverno.cli.terminal import STDOUT
from pyverno.errors import UsageError

# trust rows: package

__all__ = ["SCHEMAS", "make_docs", "pages", "schema_text"]

SCHEMAS = ("apply", "explain", "lint", "report", "sarif", "test")
"""The JSON documents with a published schema, by the command that prints them; `sarif` is written by several."""


def schema_text(name: str) -> str:
    """Return the JSON schema of a document.

    >>> schema_text("test").splitlines()[2]
    '  "title": "pyverno test --output-format json",'
    """
    return (files("pyverno.report") / "schemas" / f"{name}.json").read_text(encoding="utf-8")


def pages(root: click.Command, *, markdown_links: bool = True) -> Iterator[tuple[str, str]]:
    """Yield file name and text of every command, parents first."""
    yield from _pages(root, _context(root, "pyverno", None), ".md" if markdown_links else "")


def _pages(command: click.Command, context: click.Context, suffix: str) -> Iterator[tuple[str, str]]:
    below = _below(command, context)
    yield f"{_slug(context.command_path)}.md", _page(command, context, below, suffix)
    for name, child in below:
        yield from _pages(child, _context(child, name, context), suffix)


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    return click.Context(command, info_name=name, parent=parent, **command.context_settings)


def _below(command: click.Command, context: click.Context) -> list[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        return []
    found = ((name, command.get_command(context, name)) for name in command.list_commands(context))
    return [(name, child) for name, child in found if child is not None]


def _slug(path: str) -> str:
    return path.replace(" ", "_")


def _page(command: click.Command, context: click.Context, below: list[tuple[str, click.Command]], suffix: str) -> str:
    path = context.command_path
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    parts = [f"## {path}", _paragraphs(command.help or ""), f"```\n{usage}\n```"]
    if command.epilog:
        lines = command.epilog.replace("\b\n", "").strip().splitlines()
        parts += ["### Examples", "```\n" + "\n".join(line.strip() for line in lines[1:]) + "\n```"]
    records = [
        record
        for parameter in command.get_params(context)
        if (record := parameter.get_help_record(context)) is not None and record[1]
    ]
    if records:
        parts += ["### Options", "| Flag | Meaning |\n|---|---|\n" + "\n".join(map(_row, records))]
    also = [
        f"* [{path} {name}]({_slug(f'{path} {name}')}{suffix}) - {child.get_short_help_str(200)}"
        for name, child in below
    ]
    if context.parent is not None:
        parent = context.parent.command_path
        also.insert(0, f"* [{parent}]({_slug(parent)}{suffix}) - {context.parent.command.get_short_help_str(200)}")
    if also:
        parts += ["### See also", "\n".join(also)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _paragraphs(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.strip().split("\n\n"))


def _row(record: tuple[str, str]) -> str:
    name, text = (part.replace("|", "\\|") for part in record)
    return f"| `{name}` | {' '.join(text.split())} |"


def _docs(root: click.Command, /, *, output: str, website: bool, schema: str, **flags: bool) -> None:
    if schema:
        STDOUT.write(schema_text(schema))
        return
    if not output:
        raise UsageError('required flag(s) "output" not set')
    folder = Path(output)
    links = flags["markdownlinks"] or not website
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in pages(root, markdown_links=links):
            front = _front_matter(name, date=not flags["nodate"]) if website else ""
            note = "<!-- written by `pyverno docs`, do not edit -->\n\n" if flags["autogentag"] else ""
            (folder / name).write_text(f"{front}{note}{text}", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write into `{output}`: {(error.strerror or str(error)).lower()}") from error


def _front_matter(name: str, *, date: bool) -> str:
    title = name.removesuffix(".md").replace("_", " ")
    when = f"date: {datetime.now(UTC):%Y-%m-%d}\n" if date else ""
    return f'---\ntitle: "{title}"\n{when}weight: 35\n---\n\n'


def make_docs(root: click.Command) -> click.Command:
    """Return the command that describes a command and all below it."""
    return command(
        "docs",
        "Write the reference of the command line as Markdown, one file per command.",
        partial(_docs, root),
        {
            "Options": (
                value("-o", "--output", help="Folder for the files; it is created.", metavar="FOLDER"),
                value("--schema", help="Print the JSON schema of a document instead.", choices=SCHEMAS),
                switch("--website", help="Start each file with front matter for a web site."),
                switch("--autogenTag", help="Mark each file as generated.", default=True),
                switch("--noDate", help="Leave the date out of the front matter."),
                switch("--markdownLinks", help="With --website: link to files instead of pages."),
            )
        },
        examples=(
            "pyverno docs --output docs/reference/cli",
            "pyverno docs --output site --website --noDate",
            "pyverno docs --schema apply",
        ),
    )
