"""Commands made of tables of flags; the help shows the flags in sections."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import click

from pyverno.cli.args.flags import Flag
from pyverno.cli.args.options import Command, inherited_options, option

__all__ = ["SectionedCommand", "command", "examples_text"]

Sections = Mapping[str, Sequence[Flag]]


class SectionedCommand(Command):
    """Shows its options under the titles of `sections`."""

    sections: Mapping[str, Sequence[click.Option]]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one list per section, `--help` in the last."""
        last = [*self.sections][-1]
        for title, options in self.sections.items():
            shown = list(options)
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
    examples: Sequence[str] = (),
    kind: type[SectionedCommand] = SectionedCommand,
) -> SectionedCommand:
    """Return a command with its flags in sections, and those that every command inherits."""
    options = {title: [option(flag) for flag in flags] for title, flags in sections.items()}
    own = [flag for flags in sections.values() for flag in flags]
    made = kind(
        name=name,
        help=help,
        epilog=examples_text(examples),
        callback=callback,
        params=[*arguments, *(each for group in options.values() for each in group), *inherited_options(own)],
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.sections = options or {"Options": []}
    return made


def examples_text(examples: Sequence[str]) -> str:
    """Return command lines as the end of a help text.

    >>> print(examples_text(["pyverno version"]).replace(chr(8), "^H"))
    ^H
    Examples:
      pyverno version
    """
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in examples) if examples else ""
