"""The flags of `pyverno apply`, and what is run with their values.

`apply` makes click's command of them. This module must never import click.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pyverno.cli.apply.options import FORMATS, ApplyOptions
from pyverno.cli.args.flags import list_flag, read_plainly, switch, value_flag
from pyverno.kube.time.duration import parse_duration

__all__ = ["FLAGS", "apply", "plain"]


def _whole(text: str) -> int:
    """Read a number as click reads it, but only in its plainest form."""
    if not (text.isascii() and text.isdigit()):
        raise ValueError(text)
    return int(text)


_INPUT = (
    list_flag("-r", "--resource", help="Files, folders, globs or http(s) addresses of resources; `-` is stdin."),
    list_flag("--resources", help="Same as --resource."),
    list_flag("--target-resource", help="Existing objects that rules with mutate.targets may patch."),
    list_flag("--target-resources", help="Same as --target-resource."),
    list_flag("--parameter-resource", help="Parameters of ValidatingAdmissionPolicies."),
    value_flag("-f", "--values-file", help="File with values of variables.", metavar="FILE"),
    list_flag("-s", "--set", help="Variables as key=value."),
    value_flag("-u", "--userinfo", help="File that says who asks.", metavar="FILE"),
    value_flag("--context-file", help="File with objects and images that expressions may ask for.", metavar="FILE"),
    list_flag("-e", "--exception", help="Files with PolicyExceptions."),
    list_flag("--exceptions", help="Same as --exception."),
    switch("--exceptions-with-resources", help="Take PolicyExceptions from the resources."),
    switch("--exceptions-within-resources", help="Same as --exceptions-with-resources."),
    switch("--exceptions-within-policies", help="Take PolicyExceptions from the policies."),
    list_flag("--crd-paths", help="Files with CustomResourceDefinitions."),
    list_flag("--crd-path", help="Same as --crd-paths.", hidden=True),
    value_flag("-b", "--git-branch", help="Branch of policies in a git repository.", metavar="BRANCH"),
    value_flag("--username", help="User name for git; only with --password.", metavar="NAME"),
    value_flag("--password", help="Password or token for git; only with --username.", metavar="SECRET"),
    list_flag("--json", help="JSON or YAML payloads for policies written in CEL."),
    list_flag("--http-payload", help="HTTP requests for policies written in CEL."),
    list_flag("--envoy-payload", help="Envoy requests for policies written in CEL."),
)

_OUTPUT = (
    switch("-p", "--policy-report", help="Print policy reports."),
    value_flag("--output-format", help="Form of the reports.", default="yaml", choices=("yaml", "json")),
    switch("-t", "--table", help="Print a table of all results."),
    switch("--detailed-results", help="Add messages to the table."),
    value_flag(
        "--format",
        help="Form of the results, for machines with file, line and column.",
        default="text",
        choices=FORMATS,
    ),
    switch("-i", "--stdin", help="Print only changed and generated objects, to be piped into kubectl."),
    value_flag("-o", "--output", help="File or folder for changed and generated objects.", metavar="PATH"),
    switch("--generate-exceptions", help="Print a PolicyException for every failing result."),
    value_flag(
        "--generated-exception-ttl", help="Life time of these exceptions.", default="720h0m0s", read=parse_duration
    ),
    switch("--audit-warn", help="Count failures of rules with action Audit as warnings."),
    value_flag("--warn-exit-code", help="Exit code when there are warnings.", default=0, read=_whole),
    switch("--warn-no-pass", help="Use the exit code of warnings when nothing passed."),
    switch("--remove-color", help="Never use colours."),
)

_RUN = (
    switch("--continue-on-fail", help="Go on with the next resource after an error on one."),
    value_flag("--workers", help="Number of processes that judge resources.", default=1, read=_whole),
    switch("-c", "--cluster", help="Judge the resources of a cluster."),
    value_flag("-n", "--namespace", help="Namespace of the cluster.", metavar="NAME"),
    switch("--cluster-wide-resources", help="Include cluster-scoped resources of the cluster."),
    value_flag("--kubeconfig", help="File with the access to the cluster.", metavar="FILE"),
    value_flag("--context", help="Context of that file.", metavar="NAME"),
    switch("--registry", help="Read image registries for imageRegistry context entries."),
    value_flag("--concurrent", help="Loaders of a cluster's resources.", default=1, read=_whole),
    value_flag("--batch-size", help="Page size of a cluster's lists.", default=100, read=_whole),
    switch("--continue-on-error", help="Go on when a kind of the cluster can not be listed.", default=True),
    switch("--show-performance", help="Show how long loading from the cluster took."),
)

FLAGS = (*_INPUT, *_OUTPUT, *_RUN)
"""All flags, in the order of the help."""


def apply(policies: tuple[str, ...], flags: Mapping[str, Any]) -> int:
    """Run the command and return its exit code."""
    from pyverno.cli.apply.run import run_apply

    # without the collector: a run makes a great many objects and no cycles worth finding before it ends
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return run_apply(_options(policies, flags))
    finally:
        if was_enabled:
            gc.enable()


def plain(words: Sequence[str]) -> Callable[[], int] | None:
    """Return the command with these words, ready to run; None when click must read them."""
    found = read_plainly(FLAGS, words)
    return None if found is None else partial(apply, *found)


def _options(policies: tuple[str, ...], flags: Mapping[str, Any]) -> ApplyOptions:
    def texts(*names: str) -> tuple[str, ...]:
        return tuple(item for name in names for item in flags[name])

    def switched(*names: str) -> bool:
        return any(bool(flags[name]) for name in names)

    values = {name: flags[name] for name in _SAME_NAME}
    return ApplyOptions(
        policies=policies,
        resources=texts("resource", "resources"),
        target_resources=texts("target_resource", "target_resources"),
        parameter_resources=texts("parameter_resource"),
        exceptions=texts("exception", "exceptions"),
        exceptions_with_resources=switched("exceptions_with_resources", "exceptions_within_resources"),
        variables=texts("set"),
        crd_paths=texts("crd_paths", "crd_path"),
        json_payloads=texts("json"),
        http_payloads=texts("http_payload"),
        envoy_payloads=texts("envoy_payload"),
        user_info=str(flags["userinfo"]),
        ttl=flags["generated_exception_ttl"],
        **values,
    )


_SAME_NAME = (
    "exceptions_within_policies",
    "generate_exceptions",
    "values_file",
    "context_file",
    "cluster",
    "kubeconfig",
    "context",
    "policy_report",
    "output_format",
    "table",
    "detailed_results",
    "format",
    "audit_warn",
    "warn_exit_code",
    "warn_no_pass",
    "stdin",
    "output",
    "registry",
    "git_branch",
    "username",
    "password",
    "continue_on_fail",
    "remove_color",
    "workers",
)
