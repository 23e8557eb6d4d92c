"""`pyverno version`: version and origin of this installation."""

from __future__ import annotations

from pyverno.cli.args.flags import value
from pyverno.cli.args.sections import command
from pyverno.cli.terminal import STDOUT
from pyverno.cli.version_info import version_text
from pyverno.errors import UsageError

__all__ = ["version"]


def _version(output: str) -> None:
    text = version_text(output)
    if text is None:
        raise UsageError(f"invalid output format: {output} (supported formats: json, yaml)")
    STDOUT.write(text)


version = command(
    "version",
    "Print the version, and the commit that was installed if it is known.",
    _version,
    {"Options": (value("-o", "--output", help="Format: json or yaml.", metavar="FORMAT"),)},
    examples=(
        "pyverno version",
        "pyverno version --output json",
    ),
)
