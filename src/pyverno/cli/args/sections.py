"""A command whose help shows its flags in sections.

This module must not know any single command.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import click

from pyverno.cli.args.options import LOGGING_OPTIONS, Command

__all__ = ["SectionedCommand", "command"]

Sections = Mapping[str, Sequence[click.Option]]


class SectionedCommand(Command):
    """Shows its options under the titles of `sections`."""

    sections: Sections

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one list per section, `--help` in the last."""
        *first, last = self.sections
        for title in (*first, last):
            shown = list(self.sections[title])
            help_option = self.get_help_option(ctx)
            if title == last and help_option is not None:
                shown.append(help_option)
            records = [record for option in shown if (record := option.get_help_record(ctx)) is not None]
            with formatter.section(title):
                formatter.write_dl(records)


def command(
    name: str,
    help: str,
    callback: Callable[..., object],
    sections: Sections,
    *arguments: click.Argument,
    epilog: str = "",
) -> SectionedCommand:
    """Return a command with its flags in sections, and those that every command inherits."""
    own = [option for options in sections.values() for option in options]
    made = SectionedCommand(
        name=name,
        help=help,
        epilog=epilog,
        callback=callback,
        params=[*arguments, *own, *(option() for option in LOGGING_OPTIONS)],
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.sections = sections
    return made
