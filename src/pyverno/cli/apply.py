"""`pyverno apply`: judge, change and generate for resources with policies, without a cluster.

This module holds the flags only; `apply_run` does the work.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import click

from pyverno.cli.apply_options import FORMATS, ApplyOptions
from pyverno.cli.errors import Exit
from pyverno.cli.options import LOGGING_OPTIONS, Command, Duration, comma_list, flag, value

__all__ = ["apply"]

_EXAMPLES = """\b
Examples:
  pyverno apply policy.yaml --resource pod.yaml
  pyverno apply policies/ -r manifests/ --table --detailed-results
  kustomize build overlays/prod | pyverno apply policies/ -r -
  pyverno apply mutate.yaml -r pod.yaml --stdin | kubectl apply -f -
  pyverno apply https://github.com/OWNER/REPOSITORY/main -b main -r pod.yaml --policy-report
  pyverno apply policies/ -r manifests/ --format sarif > results.sarif
"""

_INPUT = (
    comma_list("-r", "--resource", help="Files, folders, globs or http(s) addresses of resources; `-` is stdin."),
    comma_list("--resources", help="Same as --resource."),
    comma_list("--target-resource", help="Existing objects that rules with mutate.targets may patch."),
    comma_list("--target-resources", help="Same as --target-resource."),
    comma_list("--parameter-resource", help="Parameters of ValidatingAdmissionPolicies."),
    value("-f", "--values-file", help="File with values of variables.", metavar="FILE"),
    comma_list("-s", "--set", help="Variables as key=value."),
    value("-u", "--userinfo", help="File that says who asks.", metavar="FILE"),
    value("--context-file", help="File with objects and images that expressions may ask for.", metavar="FILE"),
    comma_list("-e", "--exception", help="Files with PolicyExceptions."),
    comma_list("--exceptions", help="Same as --exception."),
    flag("--exceptions-with-resources", help="Take PolicyExceptions from the resources."),
    flag("--exceptions-within-resources", help="Same as --exceptions-with-resources."),
    flag("--exceptions-within-policies", help="Take PolicyExceptions from the policies."),
    comma_list("--crd-paths", help="Files with CustomResourceDefinitions."),
    comma_list("--crd-path", help="Same as --crd-paths.", hidden=True),
    value("-b", "--git-branch", help="Branch of policies in a git repository.", metavar="BRANCH"),
    value("--username", help="User name for git; only with --password.", metavar="NAME"),
    value("--password", help="Password or token for git; only with --username.", metavar="SECRET"),
    comma_list("--json", help="JSON or YAML payloads for policies written in CEL."),
    comma_list("--http-payload", help="HTTP requests for policies written in CEL."),
    comma_list("--envoy-payload", help="Envoy requests for policies written in CEL."),
)

_OUTPUT = (
    flag("-p", "--policy-report", help="Print policy reports."),
    value("--output-format", help="Form of the reports.", default="yaml", type=click.Choice(["yaml", "json"])),
    flag("-t", "--table", help="Print a table of all results."),
    flag("--detailed-results", help="Add messages to the table."),
    value(
        "--format",
        help="Form of the results, for machines with file, line and column.",
        default="text",
        type=click.Choice(FORMATS),
    ),
    flag("-i", "--stdin", help="Print only changed and generated objects, to be piped into kubectl."),
    value("-o", "--output", help="File or folder for changed and generated objects.", metavar="PATH"),
    flag("--generate-exceptions", help="Print a PolicyException for every failing result."),
    value("--generated-exception-ttl", help="Life time of these exceptions.", default="720h0m0s", type=Duration()),
    flag("--audit-warn", help="Count failures of rules with action Audit as warnings."),
    value("--warn-exit-code", help="Exit code when there are warnings.", default=0, type=int),
    flag("--warn-no-pass", help="Use the exit code of warnings when nothing passed."),
    flag("--remove-color", help="Never use colours."),
)

_RUN = (
    flag("--continue-on-fail", help="Go on with the next resource after an error on one."),
    value("--workers", help="Number of processes that judge resources.", default=1, type=int),
    flag("-c", "--cluster", help="Judge the resources of a cluster."),
    value("-n", "--namespace", help="Namespace of the cluster.", metavar="NAME"),
    flag("--cluster-wide-resources", help="Include cluster-scoped resources of the cluster."),
    value("--kubeconfig", help="File with the access to the cluster.", metavar="FILE"),
    value("--context", help="Context of that file.", metavar="NAME"),
    flag("--registry", help="Read image registries for imageRegistry context entries."),
    value("--concurrent", help="Loaders of a cluster's resources.", default=1, type=int),
    value("--batch-size", help="Page size of a cluster's lists.", default=100, type=int),
    flag("--continue-on-error", help="Go on when a kind of the cluster can not be listed.", default=True),
    flag("--show-performance", help="Show how long loading from the cluster took."),
)


def _apply(**flags: object) -> None:
    with _without_garbage_collection():
        from pyverno.cli.apply_run import run_apply

        raise Exit(run_apply(_options(flags)))


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Switch the collector off: a run makes a great many objects and no cycles worth finding before it ends."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _options(flags: dict[str, object]) -> ApplyOptions:
    def texts(*names: str) -> tuple[str, ...]:
        return tuple(item for name in names for item in flags[name])  # type: ignore[attr-defined]  # lists of texts

    def switched(*names: str) -> bool:
        return any(bool(flags[name]) for name in names)

    values = {name: flags[name] for name in _SAME_NAME}
    return ApplyOptions(
        policies=texts("policies"),
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
        ttl=flags["generated_exception_ttl"],  # type: ignore[arg-type]  # Duration gives an int
        **values,  # type: ignore[arg-type]  # click has checked the types
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

apply = Command(
    name="apply",
    help="Apply policies on resources.\n\nPOLICIES are files, folders, git addresses, or `-` for stdin.",
    epilog=_EXAMPLES,
    callback=_apply,
    params=[
        click.Argument(["policies"], nargs=-1),
        *_INPUT,
        *_OUTPUT,
        *_RUN,
        *(option() for option in LOGGING_OPTIONS),
    ],
    context_settings={"help_option_names": ["-h", "--help"]},
)
