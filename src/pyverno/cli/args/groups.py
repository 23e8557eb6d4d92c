"""Commands that hold other commands: `jp`, `cel`, `create`, `controller`, `fix`, `oci`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from pyverno.cli.args.options import inherited_options, with_verbosity
from pyverno.cli.args.sections import examples_text
from pyverno.cli.terminal import STDOUT
from pyverno.errors import UsageError
from pyverno.spelling import did_you_mean

__all__ = ["Group", "group"]


class Group(click.Group):
    """Prints its help when no command is named; its errors are those of Kyverno's command line."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Rewrite the verbosity, then parse; the words after the name of a command are for that command."""
        own = next((position for position, word in enumerate(args) if word in self.commands), len(args))
        return super().parse_args(ctx, [*with_verbosity(args[:own]), *args[own:]])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; raises UsageError for an unknown name."""
        if args and self.get_command(ctx, args[0]) is None:
            hint = did_you_mean(args[0], tuple(self.commands))
            raise UsageError(f'unknown command "{args[0]}" for "{ctx.command_path}"{hint}')
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order in which they were added."""
        return list(self.commands)


@click.pass_context
def _show_help(ctx: click.Context, /, **_: object) -> None:
    if ctx.invoked_subcommand is None:
        STDOUT.write(f"{ctx.get_help()}\n")


def group(name: str, help: str, *commands: click.Command, examples: Sequence[str] = ()) -> Group:
    """Return a command that holds others."""
    return Group(
        name=name,
        help=help,
        epilog=examples_text(examples),
        commands=list(commands),
        invoke_without_command=True,
        callback=_show_help,
        params=[*inherited_options()],
        context_settings={"help_option_names": ["-h", "--help"]},
    )
