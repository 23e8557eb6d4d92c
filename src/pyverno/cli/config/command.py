"""`pyverno config show`: the settings of a run with their file and line."""

from __future__ import annotations

import os
from collections.abc import Iterator

from pyverno.cli.args.configpath import config_path
from pyverno.cli.args.flags import switch, value
from pyverno.cli.args.groups import group
from pyverno.cli.args.sections import command
from pyverno.cli.config.settings import SECTIONS, Setting, read_settings, section_flags
from pyverno.cli.terminal import STDOUT
from pyverno.kube.json import encode

__all__ = ["config"]


def _show(config: str, all_flags: bool) -> None:
    path = config_path(["--config", config] if config else [])
    settings = read_settings(path) if path else ()
    if not path:
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
        yield f"{each.key}: {encode(each.value)}  # {place}"
    if not all_flags:
        return
    shown = set(own)
    for key, flag in section_flags(section).items():
        if flag.field not in shown and not flag.is_hidden:
            shown.add(flag.field)
            yield f"{key}: {encode(flag.default)}  # default"


_SHOW = command(
    "show",
    "Show the settings of the configuration file, with the line of each.\n\n"
    "The file is the nearest `.pyverno.yaml`, or `pyproject.toml` with a table `tool.pyverno.apply`, from the working "
    "folder up to the root of the repository. Paths are shown relative to the working folder.",
    _show,
    {
        "Options": (
            value("--config", help="Configuration file, or `none`.", metavar="FILE"),
            switch("-a", "--all", help="Also show the defaults of all other flags.", key="all_flags"),
        )
    },
    examples=("pyverno config show", "pyverno config show --all"),
)

config = group(
    "config",
    "Show the settings of the configuration file.",
    _SHOW,
    examples=("pyverno config show",),
)
