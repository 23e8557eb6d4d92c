"""`pyverno policies`: the flags of its commands."""

from __future__ import annotations

import click

from pyverno.cli.apply import flags as apply_flags
from pyverno.cli.args.flags import comma_list, switch, value
from pyverno.cli.args.groups import group
from pyverno.cli.args.sections import command
from pyverno.cli.args.shared import output_format
from pyverno.cli.errors import Exit

__all__ = ["policies"]

_FORMATS = ("table", "name", "json", "yaml", "markdown", "html")
_DIALECTS = ("kyverno", "cel", "both")
_LIST_HELP = """List the policies of the library.

NAMES are categories, folders or controls, such as `pod-security/restricted`; without names all are listed.
"""


def _list(names: tuple[str, ...], **flags: object) -> None:
    from pyverno.cli.policies.run import ListOptions, list_policies

    given = {key: tuple(each) if isinstance(each, list) else each for key, each in flags.items()}
    list_policies(ListOptions(names=names, **given))  # type: ignore[arg-type]


def _show(names: tuple[str, ...], *, form: str) -> None:
    from pyverno.cli.policies.run import show_policies

    show_policies(names, form=form)


def _copy(names: tuple[str, ...], *, to: str, force: bool) -> None:
    from pyverno.cli.policies.run import copy_policies

    copy_policies(names, to, force=force)


def _apply(names: tuple[str, ...], **flags: object) -> None:
    from pyverno.offline.policylibrary import LIBRARY_SIGN

    raise Exit(apply_flags.apply(tuple(LIBRARY_SIGN + name.removeprefix(LIBRARY_SIGN) for name in names), flags))


_list_command = command(
    "list",
    _LIST_HELP,
    _list,
    {
        "Selection": (
            value(
                "--dialect",
                help="Policies of kind ClusterPolicy (kyverno), of the CEL kinds (cel), or both.",
                default="kyverno",
                choices=_DIALECTS,
                metavar="DIALECT",
            ),
            comma_list("--category", help="Only these categories; `*` and `?` are wildcards.", key="categories"),
            comma_list("--severity", help="Only these severities.", key="severities"),
            comma_list("--kind", help="Only policies for these kinds of resources.", key="kinds"),
            comma_list(
                "--standard", help="Only policies of these standards, such as `CIS*` or `PSS*`.", key="standards"
            ),
            value("--search", help="Only policies with this text in name, title or description.", metavar="TEXT"),
        ),
        "Output": (
            output_format(*_FORMATS),
            switch("--remove-color", help="No colours in tables."),
        ),
    },
    click.Argument(["names"], nargs=-1),
    examples=(
        "pyverno policies list",
        "pyverno policies list best-practices --severity high",
        "pyverno policies list --standard 'CIS*' --dialect cel -o json",
        "pyverno policies list -o html > policies.html",
    ),
)
_show_command = command(
    "show",
    "Print what policies of the library do, why, and their text.",
    _show,
    {
        "Options": (
            output_format(
                "text", "yaml", "json", help="Format: text (README and policy), yaml (the policy alone) or json."
            ),
        )
    },
    click.Argument(["names"], nargs=-1, required=True),
    examples=(
        "pyverno policies show disallow-latest-tag",
        "pyverno policies show cel/pod-security/baseline -o yaml | kubectl apply -f -",
    ),
)
_copy_command = command(
    "copy",
    "Copy policies of the library, with README and test cases, into a folder.",
    _copy,
    {
        "Options": (
            value("--to", help="Folder for the copies; it is created.", default="policies", metavar="FOLDER"),
            switch("--force", help="Replace files that exist and differ."),
        )
    },
    click.Argument(["names"], nargs=-1, required=True),
    examples=(
        "pyverno policies copy pod-security/restricted --to my-policies",
        "pyverno policies copy disallow-latest-tag require-probes",
    ),
)
_apply_command = command(
    "apply",
    "Apply policies of the library on resources: `pyverno policies apply NAME` is `pyverno apply @NAME`.",
    _apply,
    apply_flags.SECTIONS,
    click.Argument(["names"], nargs=-1, required=True),
    examples=(
        "pyverno policies apply pod-security/restricted -r manifests/",
        "pyverno apply @pod-security/restricted -r manifests/",
    ),
)

policies = group(
    "policies",
    "Find, show, copy and apply policies of the library that comes with pyverno.",
    _list_command,
    _show_command,
    _copy_command,
    _apply_command,
    examples=(
        "pyverno policies list best-practices",
        "pyverno policies show disallow-latest-tag",
        "pyverno apply @pod-security/baseline -r manifests/",
    ),
)
