"""`pyverno report`: the flags of the command."""

from __future__ import annotations

import click

from pyverno.cli.args.flags import comma_list, repeated, switch, value
from pyverno.cli.args.sections import command
from pyverno.cli.args.shared import CLUSTER

__all__ = ["report"]

_HELP = """Show the PolicyReports of a cluster or of files, worst first.

FILES are files, folders, or `-` for stdin, with PolicyReport, ClusterPolicyReport, Report or ClusterReport objects of
any tool. Without files the reports of the cluster of the kubeconfig are read. The exit code is 1 when there are results
with a status of --fail-on, or reports that cannot be read. With --diff it is 1 when a policy and those that replace it
name different objects, or when one of them has no results.
"""
_FORMATS = ("table", "json", "yaml", "markdown", "html", "csv", "sarif", "junit")
_GROUPINGS = ("policy", "rule", "namespace", "severity", "category", "kind", "resource", "source")

_SECTIONS = {
    "Source": (
        *CLUSTER,
        comma_list("-n", "--namespace", help="Only these namespaces, without cluster reports.", key="namespaces"),
        repeated(
            "--since",
            help="Earlier report (files with reports, or the output of `pyverno report -o json`) to compare with.",
            metavar="FILE",
        ),
        comma_list(
            "--diff",
            help="Only compare the objects that a policy and its replacements name: OLD=NEW or OLD=NEW+NEW.",
            key="replacements",
        ),
    ),
    "Selection": (
        comma_list("--policy", help="Only results of these policies; `*` and `?` are wildcards.", key="policies"),
        comma_list("--kind", help="Only results about these kinds.", key="kinds"),
        comma_list("--severity", help="Only these severities.", key="severities"),
        comma_list("--status", help="Only these statuses: fail, error, warn, skip, pass.", key="statuses"),
        comma_list("--source", help="Only results of these tools.", key="sources"),
    ),
    "Output": (
        value(
            "-o",
            "--output-format",
            help=f"Format: {', '.join(_FORMATS)}.",
            default="table",
            choices=_FORMATS,
            metavar="FORMAT",
            key="form",
        ),
        value(
            "--by",
            help=f"Grouping of the counts: {', '.join(_GROUPINGS)}.",
            default="policy",
            choices=_GROUPINGS,
            metavar="GROUPING",
            key="grouping",
        ),
        value("--output", help="File to write, instead of stdout.", metavar="FILE"),
        switch("--summary", help="Only the counts, not each problem.", key="summary_only"),
        comma_list("--fail-on", help="Statuses that make the exit code 1.", key="fail_on"),
        switch("--remove-color", help="No colours in tables."),
    ),
}


def _report(files: tuple[str, ...], **flags: object) -> None:
    from pyverno.cli.report.run import ReportOptions, run_report

    run_report(ReportOptions(files=files, **{key: _frozen(given) for key, given in flags.items()}))  # type: ignore[arg-type]


def _frozen(given: object) -> object:
    return tuple(given) if isinstance(given, list) else given


report = command(
    "report",
    _HELP,
    _report,
    _SECTIONS,
    click.Argument(["files"], nargs=-1),
    examples=(
        "pyverno report",
        "pyverno report -n team --by resource",
        "pyverno report -o html --output report.html",
        "kubectl get policyreports -A -o yaml | pyverno report - --status fail --severity high,critical",
        "pyverno report -o json --output before.json",
        "pyverno report --since before.json --fail-on fail",
        "pyverno report --diff require-owner=require-owner",
    ),
)
