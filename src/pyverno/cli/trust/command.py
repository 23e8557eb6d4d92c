"""`pyverno trust`: the flags of the command."""

from __future__ import annotations

import click

from pyverno.cli.args.flags import value
from pyverno.cli.args.sections import command

__all__ = ["trust"]

_HELP = """Fetch the trusted root of a TUF repository, for --trust-root and --trustedRoot.

MIRROR is the address of the repository. Its metadata must lead to the root metadata of --root, which you got in a way
that you trust. What was fetched last is kept, so that an older state is refused later. The trusted root goes to the
standard output, or replaces --output at once. Needs the extra `tuf`.
"""

_SECTIONS = {
    "Repository": (
        value("--root", help="File with root metadata of the repository (`root.json`).", metavar="FILE"),
        value(
            "--target",
            help="Name of the trusted root in the repository.",
            default="trusted_root.json",
            metavar="NAME",
        ),
        value("--cache", help="Folder for what was fetched last; ~/.cache/pyverno/tuf if empty.", metavar="DIR"),
    ),
    "Output": (value("-o", "--output", help="File to write; the standard output if empty.", metavar="FILE"),),
}


def _trust(mirror: str, *, root: str, target: str, cache: str, output: str) -> None:
    from pyverno.cli.trust.run import run_trust

    run_trust(mirror, root=root, target=target, cache=cache, output=output)


trust = command(
    "trust",
    _HELP,
    _trust,
    _SECTIONS,
    click.Argument(["mirror"], metavar="MIRROR"),
    examples=(
        "pyverno trust https://tuf.example.org --root root.json -o trusted_root.json",
        "pyverno trust https://tuf.example.org --root root.json --cache /var/lib/pyverno/tuf -o trusted_root.json",
    ),
)
