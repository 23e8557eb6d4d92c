"""The page of the controllers' flags, read from their commands."""

from __future__ import annotations

from collections.abc import Iterator

import click

from pyverno.cli.args.sections import SectionedCommand
from pyverno.cli.controller.command import controller
from scripts.reference_pages.commands import flag_row
from scripts.reference_pages.markdown import page, table

__all__ = ["controller_flags"]


def controller_flags() -> str:
    """Return a section for each controller, with a table for each group of its flags."""
    return page(
        "Flags of the controllers",
        "Names and defaults are Kyverno's. The syntax is Go's: `--flag=value`, `--flag value`, `-flag value`; switches "
        "take `=true` and `=false`. A flag takes precedence over its environment variable.",
        *(block for command in controller.commands.values() for block in _sections(command)),
    )


def _sections(command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=command.name)
    yield f"## pyverno controller {command.name}"
    yield command.help or ""
    if isinstance(command, SectionedCommand):
        for title, options in command.sections.items():
            rows = [row for option in options if (row := flag_row(option, context))]
            yield f"### {title}\n\n{table(('flag', 'value', 'what it does'), rows)}"
