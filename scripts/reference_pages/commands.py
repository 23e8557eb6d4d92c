"""The page of the command line, read from its commands."""

from __future__ import annotations

import click

from pyverno.cli.root import root
from scripts.reference_pages.markdown import anchor, cell, code, page, table

__all__ = ["commands", "flag_row"]

_CONTROLLERS = "pyverno controller "


def commands() -> str:
    """Return one section per command that is part of this installation: usage, help and options."""
    context = click.Context(root, info_name="pyverno", **root.context_settings)
    return page(
        "Command line",
        "A LIST is one value, several separated by commas, or the flag given several times.",
        *_sections(root, context),
    )


def _sections(command: click.Command, context: click.Context) -> list[str]:
    blocks = [_section(command, context)]
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None and not child.hidden:
                blocks += _sections(child, click.Context(child, info_name=name, parent=context))
    return blocks


def _section(command: click.Command, context: click.Context) -> str:
    usage = " ".join((context.command_path, *command.collect_usage_pieces(context)))
    parts = [f"## {context.command_path}", f"```\n{usage}\n```", _help(command)]
    rows = [row for parameter in command.get_params(context) if (row := flag_row(parameter, context))]
    if context.command_path.startswith(_CONTROLLERS):
        parts.append(f"Flags: [flags of the controllers](controllers.md#{anchor(context.command_path)}).")
    elif rows:
        parts.append(table(("flag", "value", "what it does"), rows))
    if command.epilog:
        _, *examples = command.epilog.replace("\b\n", "").splitlines()
        parts.append("```\n" + "\n".join(line.strip() for line in examples) + "\n```")
    return "\n\n".join(part for part in parts if part)


def _help(command: click.Command) -> str:
    text = (command.help or "").replace("\b", "").strip()
    return "\n".join(line.strip() for line in text.splitlines())


def flag_row(parameter: click.Parameter, context: click.Context) -> tuple[str, str, str] | None:
    """Return the cells of a flag: its names, the form of its value and its help; None for what the help omits."""
    if not isinstance(parameter, click.Option) or parameter.hidden:
        return None
    record = parameter.get_help_record(context)
    if record is None:
        return None
    flags = ", ".join(code(flag) for flag in sorted(parameter.opts, key=len))
    value = "" if parameter.is_flag or parameter.count else code(parameter.make_metavar(context).strip("[]"))
    return flags, value, cell(record[1])
