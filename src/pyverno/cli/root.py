"""The root of the command line: a table of commands, each imported only when it is called.

This module must never import a command, nor anything of the engine, before its command is asked for.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from pyverno.cli.args.errors import run_command
from pyverno.cli.args.options import LOGGING_OPTIONS, Command, rewritten
from pyverno.cli.errors import guarded, unknown_command
from pyverno.value import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["COMMANDS", "Row", "root", "run"]


@dataclass(frozen=True, slots=True)
class Row:
    """One command: the module that has it (and its name there), and its line in the help."""

    module: str
    attribute: str
    help: str

    @property
    def exists(self) -> bool:
        """Tell whether the module is part of this installation."""
        return importlib.util.find_spec(self.module) is not None


COMMANDS: Mapping[str, Row] = {
    "apply": Row("pyverno.cli.apply.command", "apply", "Apply policies on resources."),
    "test": Row("pyverno.cli.test.command", "test", "Run tests from a local filesystem or a remote git repository."),
    "sandbox": Row(
        "pyverno.cli.sandbox.command", "sandbox", "Run a Kubernetes API server in this process, for kubectl."
    ),
    "jp": Row("pyverno.cli.jp", "jp", "Work with JMESPath expressions: query, parse, function."),
    "cel": Row("pyverno.cli.cel.command", "cel", "Work with CEL expressions: eval, check, functions."),
    "create": Row("pyverno.cli.create.command", "create", "Create files of Kyverno's command line from templates."),
    "controller": Row("pyverno.cli.controller.command", "controller", "Run a controller in, or beside, a cluster."),
    "install": Row("pyverno.cli.install", "install", "Print the manifests that install the controllers."),
    "version": Row("pyverno.cli.version", "version", "Print the version."),
    "completion": Row("pyverno.cli.completion", "completion", "Print a completion script for a shell."),
    "docs": Row("pyverno.cli.docs", "docs", "Write the reference of the command line as Markdown."),
    "fix": Row("pyverno.cli.fix.command", "fix", "Rewrite policies and tests to the current schema."),
    "oci": Row("pyverno.cli.oci", "oci", "Push and pull policies as OCI artifacts."),
    "migrate": Row("pyverno.cli.migrate", "migrate", "Store objects again at a new version."),
}
"""Every command of the command line; a row whose module is not installed is left out."""


class _Root(click.Group):
    """Commands out of the table; without arguments it prints its help and ends with 0."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name, row in COMMANDS.items() if row.exists]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        row = COMMANDS.get(cmd_name)
        if row is None or not row.exists:
            return None
        command = getattr(importlib.import_module(row.module), row.attribute)
        return command if isinstance(command, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and self.get_command(ctx, args[0]) is None:
            raise unknown_command(args[0], ctx.command_path)
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # the words after the command are its own
        own = next((position for position, word in enumerate(args) if word in COMMANDS), len(args))
        return super().parse_args(ctx, [*rewritten(self.params, args[:own]), *args[own:]])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, COMMANDS[name].help) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from pyverno.version import __version__

        click.echo(f"pyverno {__version__}")
        ctx.exit()


root = _Root(
    name="pyverno",
    help="Policy for Kubernetes: judge, change and generate resources with Kyverno policies.",
    invoke_without_command=True,
    callback=lambda **_: None,
    params=[
        click.Option(
            ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version."
        ),
        *(option() for option in LOGGING_OPTIONS),
    ],
    context_settings={"help_option_names": ["-h", "--help"]},
)


@click.pass_context
def _show_help(ctx: click.Context, /, **_: object) -> None:
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


root.callback = _show_help


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; errors are on stderr, nothing is raised.

    >>> run(["--version"])
    pyverno 0.1.0
    0
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    command: click.Command = root
    name = "pyverno"
    if words and words[0] in COMMANDS and COMMANDS[words[0]].exists:
        # the direct way to a command: the group has nothing to add
        found = root.get_command(click.Context(root, info_name=name), words[0])
        if isinstance(found, Command):
            command, name, words = found, f"{name} {words[0]}", words[1:]
    return guarded(lambda: run_command(command, words, name))
