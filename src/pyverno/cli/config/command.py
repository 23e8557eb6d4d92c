"""`pyverno config show`: the settings of a run with their file and line."""

from __future__ import annotations

import os
from collections.abc import Iterator

from pyverno.cli.args.flags import CONFIG, switch
from pyverno.cli.args.groups import group
from pyverno.cli.args.sections import command
from pyverno.cli.config.roles import ROLES
from pyverno.cli.config.settings import SECTIONS, Setting, section_flags, settings_for
from pyverno.cli.terminal import STDOUT
from pyverno.kube.json import encode

__all__ = ["config"]


def _show(config: str, config_revision: str, all_flags: bool) -> None:
    words = (("--config", config), ("--config-revision", config_revision))
    settings = settings_for([word for flag, given in words if given for word in (flag, given)])
    if not settings:
        STDOUT.write("# no configuration file\n")
    for section in SECTIONS:
        lines = [*_lines(section, settings, all_flags=all_flags)]
        if lines:
            STDOUT.write(f"{section}:\n" + "".join(f"  {line}\n" for line in lines))


def _lines(section: str, settings: tuple[Setting, ...], *, all_flags: bool) -> Iterator[str]:
    own = {each.flag.field: each for each in settings if each.section == section}
    for each in own.values():
        where = each.location
        place = f"{os.path.relpath(where.file)}:{where.line}" if where.line else os.path.relpath(where.file)
        refused = f", refused without --config: it {each.refusal}" if each.refusal else ""
        yield f"{each.key}: {encode(each.value)}  # {place}{refused}"
    if not all_flags:
        return
    shown = set(own)
    for key, flag in section_flags(section).items():
        if flag.field not in shown and not flag.is_hidden:
            shown.add(flag.field)
            rights = ROLES[flag.role]
            named = "" if rights.in_found else f", set only with --config: it {rights.reason}"
            yield f"{key}: {encode(flag.default)}  # default{named}"


_SHOW = command(
    "show",
    "Show the settings of the configuration file, with the line of each.\n\n"
    "The file is the nearest `.pyverno.yaml`, or `pyproject.toml` with a table `tool.pyverno.apply`, from the working "
    "folder up to the root of the repository. Such a file selects and formats; other settings are refused unless "
    "--config names the file, and are shown with the reason. Paths are shown relative to the working folder.",
    _show,
    {
        "Options": (
            *CONFIG,
            switch("-a", "--all", help="Also show the defaults of all other flags.", key="all_flags"),
        )
    },
    examples=("pyverno config show", "pyverno config show --all", "pyverno config show --config-revision main"),
)

config = group(
    "config",
    "Show the settings of the configuration file.",
    _SHOW,
    examples=("pyverno config show",),
)
