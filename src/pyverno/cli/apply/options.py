"""The flags of `pyverno apply` as one value, and the checks of their combinations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pyverno.errors import UsageError
from pyverno.offline.files import STDIN
from pyverno.value import dataclass

__all__ = ["FORMATS", "ApplyOptions", "check_options"]

FORMATS = (
    *("text", "json", "yaml", "sarif", "junit", "github"),
    *("gitlab", "azure", "teamcity", "tap", "markdown", "csv", "html"),
)
"""Formats of the results; all but `text` are for machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyOptions:
    """All flags that have an effect.

    `ttl` is in nanoseconds. `output` is a path ("" = stdout). `workers` is a number of processes.
    """

    policies: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    target_resources: tuple[str, ...] = ()
    parameter_resources: tuple[str, ...] = ()
    exceptions: tuple[str, ...] = ()
    exceptions_with_resources: bool = False
    exceptions_within_policies: bool = False
    generate_exceptions: bool = False
    ttl: int = 0
    values_file: str = ""
    variables: tuple[str, ...] = ()
    user_info: str = ""
    context_file: str = ""
    crd_paths: tuple[str, ...] = ()
    cluster: bool = False
    namespace: str = ""
    cluster_wide: bool = False
    concurrent: int = 1
    batch_size: int = 100
    continue_on_error: bool = True
    shows_performance: bool = False
    kubeconfig: str = ""
    context: str = ""
    policy_report: bool = False
    output_format: str = "yaml"
    table: bool = False
    detailed_results: bool = False
    format: str = "text"
    audit_warn: bool = False
    warn_exit_code: int = 0
    warn_no_pass: bool = False
    stdin: bool = False
    output: str = ""
    registry: bool = False
    dns: bool = False
    trust_root: str = ""
    git_branch: str = ""
    username: str = ""
    password: str = ""
    json_payloads: tuple[str, ...] = ()
    http_payloads: tuple[str, ...] = ()
    envoy_payloads: tuple[str, ...] = ()
    continue_on_fail: bool = False
    remove_color: bool = False
    workers: int = 1
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    allow_empty: bool = False
    no_lint: bool = False
    verbosity: str = ""
    quiet: bool = False
    max_results: int = 0
    compat: str = ""
    baseline: str = ""
    update_baseline: bool = False
    no_suppressions: bool = False
    require_reason: bool = False
    fail_on: str = ""
    changed_since: str = ""
    helm: tuple[str, ...] = ()
    helm_values: tuple[str, ...] = ()
    kustomize: tuple[str, ...] = ()
    remote_bases: bool = False
    validate_schemas: bool = False
    watch: bool = False
    config: str = ""
    config_revision: str = ""

    @property
    def is_kyverno(self) -> bool:
        """Return whether input and output are those of Kyverno's command line."""
        return self.compat == "kyverno"

    @property
    def is_verbose(self) -> bool:
        """Return whether text output also shows passed and skipped results."""
        return self.verbosity.lstrip("-0") != "" and not self.verbosity.startswith("-")

    @property
    def is_machine_output(self) -> bool:
        """Return whether stdout holds one document for a machine (or for kubectl), and nothing else."""
        return self.policy_report or self.generate_exceptions or self.stdin or self.format != "text"

    @property
    def output_path(self) -> Path | None:
        """The file or folder that changed and generated objects are written to."""
        return Path(self.output) if self.output else None


def _conflicts(options: ApplyOptions) -> Iterator[tuple[bool, str]]:
    """Yield pairs of flags that each decide what stdout holds, and flags of other outputs."""
    outputs = (
        (options.format != "text", f"--format {options.format}"),
        (options.policy_report, "--policy-report"),
        (options.generate_exceptions, "--generate-exceptions"),
        (options.table, "--table"),
        (options.stdin, "--stdin"),
    )
    given = [name for is_given, name in outputs if is_given]
    # Kyverno: the first of its own flags wins silently
    if len(given) > 1 and not (options.is_kyverno and options.format == "text"):
        yield True, f"{given[0]} and {given[1]} cannot be used together, use one or the other"
    if options.output in FORMATS and not options.is_kyverno and not Path(options.output).exists():
        flag = "--output-format" if options.policy_report else "--format"
        yield (
            True,
            (
                f"-o {options.output} would write changed objects into a folder of this name: "
                f"for results in this format use {flag} {options.output}, and for the folder -o ./{options.output}"
            ),
        )
    if options.quiet and options.is_verbose and not options.is_kyverno:
        yield True, "--quiet and -v cannot be used together, use one or the other"
    bad_level = options.verbosity and not options.verbosity.lstrip("-").isdigit()
    yield bool(bad_level), f'Failed to setup logging (invalid log level "{options.verbosity}")'


def _adoption_conflicts(options: ApplyOptions) -> Iterator[tuple[bool, str]]:
    yield options.update_baseline and not options.baseline, "--update-baseline needs --baseline FILE"
    for is_given, other in (
        (options.update_baseline, "--update-baseline"),
        (options.workers > 1, "--workers"),
        (options.cluster, "--cluster"),
    ):
        # the baseline would lose failures that are not judged; other processes and clusters have no files
        yield bool(options.changed_since) and is_given, f"--changed-since and {other} cannot be used together"
    for is_given, other in (
        (options.cluster, "--cluster"),
        (STDIN in (*options.policies, *options.resources), "standard input"),
        (options.update_baseline, "--update-baseline"),
    ):
        yield options.watch and is_given, f"--watch and {other} cannot be used together"
    yield options.remote_bases and not options.kustomize, "--remote-bases needs --kustomize FOLDER"
    yield bool(options.helm_values) and not options.helm, "--helm-values needs --helm CHART"
    both = options.require_reason and options.no_suppressions
    yield both, "--require-reason and --no-suppressions cannot be used together, use one or the other"
    payloads = bool(options.json_payloads and (options.helm or options.kustomize))
    yield payloads, "--json cannot be used together with --helm or --kustomize"


def check_options(options: ApplyOptions) -> tuple[str, ...]:
    """Raise UsageError for flags that cannot be combined; returns warnings about flags without effect."""
    given = bool(options.resources or options.helm or options.kustomize) or options.cluster
    payloads = options.json_payloads or options.http_payloads or options.envoy_payloads
    checks: tuple[tuple[bool, str], ...] = (
        (not options.policies, "require policy"),
        (
            bool(options.values_file and options.variables),
            "pass the values either using set flag or values_file flag",
        ),
        (
            options.policies[:1] == (STDIN,) and STDIN in options.resources,
            "a stdin pipe can be used for either policies or resources, not both",
        ),
        *_adoption_conflicts(options),
        (
            bool(options.resources and options.json_payloads),
            "both resource and json files can not be used together, use one or the other",
        ),
        (not given and not payloads, "resource file(s) or cluster required"),
        (
            bool(options.crd_paths and options.kubeconfig),
            "crd-paths and kubeconfig flags are mutually exclusive, please use only one of them",
        ),
        (options.workers < 1, f"--workers must be at least 1, got {options.workers}"),
        (bool(options.output and options.stdin), "--output and --stdin cannot be used together, use one or the other"),
        *_conflicts(options),
    )
    for wrong, message in checks:
        if wrong:
            raise UsageError(message)
    ignored = (
        (
            bool(options.exceptions) and options.exceptions_with_resources,
            # COMPAT: Kyverno ignores them silently
            "the files given with --exception are ignored because of --exceptions-with-resources",
        ),
    )
    return (*(text for used, text in ignored if used), *_without_effect(options))


def _without_effect(options: ApplyOptions) -> Iterator[str]:
    """Yield a warning for every flag that needs another one; Kyverno's command ignores such flags silently."""
    if options.is_kyverno:
        return
    default = ApplyOptions()
    reports = options.policy_report or options.generate_exceptions
    rows = (
        ("--namespace", options.namespace, options.cluster, "--cluster"),
        ("--cluster-wide-resources", options.cluster_wide, options.cluster and options.namespace, "--namespace"),
        ("--kubeconfig", options.kubeconfig, options.cluster, "--cluster"),
        ("--context", options.context, options.cluster, "--cluster"),
        ("--concurrent", options.concurrent != default.concurrent, options.cluster, "--cluster"),
        ("--batch-size", options.batch_size != default.batch_size, options.cluster, "--cluster"),
        ("--show-performance", options.shows_performance, options.cluster, "--cluster"),
        ("--output-format", options.output_format != default.output_format, reports, "--policy-report"),
        ("--detailed-results", options.detailed_results, options.table, "--table"),
        ("--warn-no-pass", options.warn_no_pass, options.warn_exit_code, "--warn-exit-code"),
        ("--username", options.username, options.password, "--password"),
        ("--password", options.password, options.username, "--username"),
    )
    for flag, is_given, is_used, other in rows:
        if is_given and not is_used:
            yield f"{flag} has no effect without {other}"
