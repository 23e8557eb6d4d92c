"""The root of the command line: a table of commands, each imported when it is called.

This module must not import commands or the engine at module level.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from pyverno.cli.args.configpath import has_settings
from pyverno.cli.args.errors import run_command
from pyverno.cli.args.options import Command, inherited_options, pflag_words
from pyverno.cli.errors import guarded, unknown_command
from pyverno.cli.terminal import STDOUT
from pyverno.value import dataclass

# trust rows: command-line

__all__ = ["COMMANDS", "Row", "root", "run"]


@dataclass(frozen=True, slots=True)
class Row:
    """One command: the function that imports it, and its line in the help."""

    load: Callable[[], click.Command]
    help: str


def _apply() -> click.Command:
    from pyverno.cli.apply.command import apply

    return apply


def _lint() -> click.Command:
    from pyverno.cli.lint.command import lint

    return lint


def _test() -> click.Command:
    from pyverno.cli.test.command import test

    return test


def _explain() -> click.Command:
    from pyverno.cli.explain.command import explain

    return explain


def _equivalent() -> click.Command:
    from pyverno.cli.equivalent.command import equivalent

    return equivalent


def _analyze() -> click.Command:
    from pyverno.cli.analyze.command import analyze

    return analyze


def _impact() -> click.Command:
    from pyverno.cli.impact.command import impact

    return impact


def _ui() -> click.Command:
    from pyverno.cli.ui.command import ui

    return ui


def _verify() -> click.Command:
    from pyverno.cli.verify.command import verify

    return verify


def _trust() -> click.Command:
    from pyverno.cli.trust.command import trust

    return trust


def _sandbox() -> click.Command:
    from pyverno.cli.sandbox.command import sandbox

    return sandbox


def _jp() -> click.Command:
    from pyverno.cli.jp import jp

    return jp


def _cel() -> click.Command:
    from pyverno.cli.cel.command import cel

    return cel


def _create() -> click.Command:
    from pyverno.cli.create.command import create

    return create


def _report() -> click.Command:
    from pyverno.cli.report.command import report

    return report


def _policies() -> click.Command:
    from pyverno.cli.policies.command import policies

    return policies


def _controller() -> click.Command:
    from pyverno.cli.controller.command import controller

    return controller


def _install() -> click.Command:
    from pyverno.cli.install import install

    return install


def _version() -> click.Command:
    from pyverno.cli.version import version

    return version


def _completion() -> click.Command:
    from pyverno.cli.completion import completion

    return completion


def _docs() -> click.Command:
    from pyverno.cli.docs import make_docs

    return make_docs(root)


def _fix() -> click.Command:
    from pyverno.cli.fix.command import fix

    return fix


def _oci() -> click.Command:
    from pyverno.cli.oci.command import oci

    return oci


def _migrate() -> click.Command:
    from pyverno.cli.migrate.command import migrate

    return migrate


def _config() -> click.Command:
    from pyverno.cli.config.command import config

    return config


_CONFIGURED = ("apply", "lint", "test")

COMMANDS: Mapping[str, Row] = {
    "apply": Row(_apply, "Apply policies on resources."),
    "lint": Row(_lint, "Find mistakes in policies that Kyverno accepts."),
    "test": Row(_test, "Run tests from a local filesystem or a remote git repository."),
    "explain": Row(_explain, "Explain the result of each rule for a resource."),
    "equivalent": Row(_equivalent, "Search for an object on which two sets of policies differ."),
    "analyze": Row(_analyze, "Find what policies do together: conflicts, loops, rules that add nothing."),
    "impact": Row(_impact, "Show what a change of policies would refuse, change, generate and delete."),
    "report": Row(_report, "Show the PolicyReports of a cluster or of files, worst first."),
    "ui": Row(_ui, "Show reports, and a playground for policies, in a browser."),
    "verify": Row(_verify, "Verify the signatures of an image, and show every check."),
    "trust": Row(_trust, "Fetch the trusted root of a TUF repository."),
    "sandbox": Row(_sandbox, "Run a Kubernetes API server in this process, for kubectl."),
    "jp": Row(_jp, "Work with JMESPath expressions: query, parse, function."),
    "cel": Row(_cel, "Work with CEL expressions: eval, check, functions."),
    "policies": Row(_policies, "Find, show, copy and apply policies of the library."),
    "create": Row(_create, "Create files of Kyverno's command line from templates."),
    "controller": Row(_controller, "Run a controller in, or beside, a cluster."),
    "install": Row(_install, "Print the manifests that install the controllers."),
    "config": Row(_config, "Show the settings of the configuration file."),
    "version": Row(_version, "Print the version."),
    "completion": Row(_completion, "Print a completion script for a shell."),
    "docs": Row(_docs, "Write the reference of the command line as Markdown."),
    "fix": Row(_fix, "Rewrite policies and tests to the current schema."),
    "oci": Row(_oci, "Push and pull policies as OCI artifacts."),
    "migrate": Row(_migrate, "Convert policies to CEL, and show that they decide as before."),
}
"""Every command of the command line, in the order of the help."""


class _Root(click.Group):
    """Commands out of the table; without arguments it prints its help and ends with 0."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        row = COMMANDS.get(cmd_name)
        return None if row is None else row.load()

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS:
            raise unknown_command(args[0], ctx.command_path, tuple(COMMANDS))
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # the words after the name of a command are for that command
        own = next((position for position, word in enumerate(args) if word in COMMANDS), len(args))
        return super().parse_args(ctx, [*pflag_words(self.params, args[:own]), *args[own:]])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, row.help) for name, row in COMMANDS.items()])


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from pyverno.version import __version__

        STDOUT.write(f"pyverno {__version__}\n")
        ctx.exit()


@click.pass_context
def _show_help(ctx: click.Context, /, **_: object) -> None:
    if ctx.invoked_subcommand is None:
        STDOUT.write(f"{ctx.get_help()}\n")


root = _Root(
    name="pyverno",
    help="Policy for Kubernetes: validate, mutate and generate resources with Kyverno policies.",
    invoke_without_command=True,
    callback=_show_help,
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_print_version,
            help="Print the version.",
        ),
        *inherited_options(),
    ],
    context_settings={"help_option_names": ["-h", "--help"]},
)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; errors are on stderr, nothing is raised.

    >>> run(["--version"])
    pyverno 0.1.0
    0
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    return guarded(lambda: _run(words))


def _run(words: list[str]) -> object:
    command: click.Command = root
    name = "pyverno"
    if words and words[0] in COMMANDS:
        # the direct way to a command: the group has nothing to add
        found = COMMANDS[words[0]].load()
        if isinstance(found, Command):
            command, name, words = found, f"{name} {words[0]}", words[1:]
    return run_command(command, words, name, _defaults(name.partition(" ")[2], words))


def _defaults(command: str, words: Sequence[str]) -> Mapping[str, Any] | None:
    """Return the settings of a command in the configuration file, None where it takes none."""
    # flags before the name of a command lead through the root, which hands on the settings of each command
    is_root = not command and any(word in _CONFIGURED for word in words)
    if (command not in _CONFIGURED and not is_root) or not has_settings(words):
        return None
    from pyverno.cli.config.settings import defaults_for

    found = defaults_for(words)
    return found if is_root else found.get(command)
