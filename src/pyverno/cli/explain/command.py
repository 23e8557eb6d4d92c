"""`pyverno explain`: the flags of the command."""

from __future__ import annotations

import click

from pyverno.cli.apply.flags import FLAGS as APPLY_FLAGS
from pyverno.cli.args.flags import repeated, switch, value
from pyverno.cli.args.sections import command
from pyverno.cli.errors import Exit

__all__ = ["explain"]

_SHARED = (
    "resources",
    "target_resources",
    "parameter_resources",
    "values_file",
    "variables",
    "user_info",
    "context_file",
    "exceptions",
    "exceptions_with_resources",
    "exceptions_within_policies",
    "crd_paths",
)
"""Flags with the same meaning as for `apply`."""

_HELP = """Explain the result of each rule for a resource.

For every rule that matches: the block that matched, context entries, preconditions, conditions, pattern paths and CEL
sub-expressions with their values, the exceptions that apply, and the smallest change of the resource that would turn a
failing result, checked by the engine. Values from Secrets, API calls and registries are named, not shown.

POLICIES are files, folders, git addresses, or `-` for stdin. The exit code is 1 when a rule fails or ends with an
error, or when an input cannot be read.
"""

_SECTIONS = {
    "Input": tuple(flag for flag in APPLY_FLAGS if flag.field in _SHARED),
    "Selection": (
        repeated("--rule", help="Only rules of this name (`POLICY/RULE` or `RULE`).", metavar="NAME", key="rules"),
        switch("--all", help="Also rules that do not match, with the reason.", key="shows_all"),
        value(
            "--operation",
            help="Operation of the request.",
            default="CREATE",
            choices=("CREATE", "UPDATE", "DELETE", "CONNECT"),
        ),
    ),
    "Output": (
        value("-o", "--output", help="Format.", default="text", choices=("text", "json", "yaml"), metavar="FORMAT"),
        switch("--no-change", help="Do not search for the smallest change.", key="skips_change"),
        switch("--remove-color", help="Never use colours."),
    ),
}


def _explain(policies: tuple[str, ...], **flags: object) -> None:
    from pyverno.cli.explain.run import ExplainOptions, run_explain

    shared = {name: _tuple(flags.pop(name)) for name in _SHARED}
    own = {name: _tuple(each) for name, each in flags.items()}
    raise Exit(run_explain(ExplainOptions(policies=policies, inputs=shared, **own)))  # type: ignore[arg-type]


def _tuple(given: object) -> object:
    return tuple(given) if isinstance(given, list) else given


explain = command(
    "explain",
    _HELP,
    _explain,
    _SECTIONS,
    click.Argument(["policies"], nargs=-1),
    examples=(
        "pyverno explain policy.yaml -r pod.yaml",
        "pyverno explain policies/ -r pod.yaml --rule require-labels --all",
        "kubectl get deployment web -o yaml | pyverno explain policies/ -r - -o json",
    ),
)
