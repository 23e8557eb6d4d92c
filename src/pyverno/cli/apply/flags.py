"""The flags of `pyverno apply`. This module must never import click: plain command lines run without it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pyverno.cli.apply.options import FORMATS, ApplyOptions
from pyverno.cli.args.configpath import runs_as_kyverno
from pyverno.cli.args.flags import CONFIG, Flag, comma_list, duration, number, parse_fast, switch, value

__all__ = ["FLAGS", "SECTIONS", "apply", "read_plain_words"]

SECTIONS: Mapping[str, tuple[Flag, ...]] = {
    "Input": (
        comma_list(
            *("-r", "--resource", "--resources"),
            help="Files, folders, globs or http(s) addresses (`...#sha256=DIGEST`) of resources; `-` is stdin.",
            key="resources",
            role="selection",
        ),
        comma_list(
            *("--target-resource", "--target-resources"),
            help="Existing objects that rules with mutate.targets may patch.",
            key="target_resources",
            role="facts",
        ),
        comma_list(
            "--parameter-resource",
            help="Parameters of ValidatingAdmissionPolicies.",
            key="parameter_resources",
            role="facts",
        ),
        value("-f", "--values-file", help="File with values of variables.", metavar="FILE", role="facts"),
        comma_list("-s", "--set", help="Variables as key=value.", key="variables", role="facts"),
        value(
            "-u",
            "--userinfo",
            help="File with user, groups and roles of the request.",
            metavar="FILE",
            key="user_info",
            role="facts",
        ),
        value(
            "--context-file",
            help="File with objects and images that CEL expressions can read.",
            metavar="FILE",
            role="facts",
        ),
        comma_list(
            "-e", "--exception", "--exceptions", help="Files with PolicyExceptions.", key="exceptions", role="facts"
        ),
        switch(
            *("--exceptions-with-resources", "--exceptions-within-resources"),
            help="Take PolicyExceptions from the resources.",
            role="facts",
        ),
        switch("--exceptions-within-policies", help="Take PolicyExceptions from the policies.", role="facts"),
        comma_list("--crd-paths", "--crd-path", help="Files with CustomResourceDefinitions.", role="facts"),
        value("-b", "--git-branch", help="Branch of policies in a git repository.", metavar="BRANCH", role="network"),
        value("--username", help="User name for git, with --password.", metavar="NAME", role="secret"),
        value("--password", help="Password or token for git, with --username.", metavar="SECRET", role="secret"),
        comma_list(
            "--json", help="JSON or YAML payloads for policies written in CEL.", key="json_payloads", role="selection"
        ),
        comma_list(
            "--http-payload", help="HTTP requests for policies written in CEL.", key="http_payloads", role="selection"
        ),
        comma_list(
            "--envoy-payload",
            help="Envoy requests for policies written in CEL.",
            key="envoy_payloads",
            role="selection",
        ),
        comma_list(
            "--include",
            help="Read only files that match these globs (`prod/**`, `*-pod.yaml`) in folders of resources.",
            role="selection",
        ),
        comma_list(
            "--exclude",
            help="Skip files and folders that match one of these globs in folders of resources.",
            role="selection",
        ),
        comma_list(
            "--helm", help="Helm charts, rendered with the program `helm` or the Helm SDK for Python.", role="programs"
        ),
        comma_list("--helm-values", help="Values files for all charts.", role="facts"),
        comma_list(
            "--kustomize", help="Kustomizations, built with the program `kustomize` or `kubectl`.", role="programs"
        ),
        switch(
            "--remote-bases",
            help="Let kustomizations name what is outside of their repository, also on other machines.",
            role="network",
        ),
        value(
            "--changed-since",
            help="Judge only resources that changed since a revision of git; all if policies did.",
            metavar="REV",
            role="programs",
        ),
        switch("--allow-empty", help="Accept a run without any resource or without any rule.", role="leniency"),
        switch("--no-lint", help="Do not warn about mistakes that `pyverno lint` finds in the policies.", role="form"),
    ),
    "Adoption": (
        value("--baseline", help="File with known failures; only new ones count.", metavar="FILE", role="leniency"),
        switch("--update-baseline", help="Write the failures of this run into the baseline.", role="writes"),
        value(
            *("--fail-on", "--severity-threshold"),
            help="Count failures of policies below this severity as warnings.",
            choices=("critical", "high", "medium", "low", "info"),
            role="leniency",
        ),
        switch("--no-suppressions", help="Ignore suppressions in manifests.", role="strictness"),
        switch("--require-reason", help="Accept only suppressions with a reason.", role="strictness"),
        switch(
            "--validate-schemas",
            help="Also check fields and types of the resources by their schemas.",
            role="strictness",
        ),
    ),
    "Output": (
        switch("-p", "--policy-report", help="Print policy reports.", role="form"),
        value("--output-format", help="Format of the reports.", default="yaml", choices=("yaml", "json"), role="form"),
        switch("-t", "--table", help="Print a table of all results.", role="form"),
        switch("--detailed-results", help="Add messages to the table.", role="form"),
        value(
            "--format",
            help="Format of the results; all but text are for machines and hold file, line and column.",
            default="text",
            choices=FORMATS,
            role="form",
        ),
        switch(
            "-i", "--stdin", help="Print only changed and generated objects, to pipe them into kubectl.", role="form"
        ),
        value(
            "-o", "--output", help="File or folder for changed and generated objects.", metavar="PATH", role="writes"
        ),
        switch("--generate-exceptions", help="Print a PolicyException for every failing result.", role="form"),
        duration(
            "--generated-exception-ttl",
            help="Lifetime of these exceptions.",
            default="720h0m0s",
            key="ttl",
            role="form",
        ),
        switch("--audit-warn", help="Count failures of rules with action Audit as warnings.", role="leniency"),
        number(
            "--warn-exit-code",
            help="Exit code when there are warnings.",
            default=0,
            least=0,
            most=255,
            role="strictness",
        ),
        switch("--warn-no-pass", help="Use the exit code of warnings when nothing passed.", role="strictness"),
        switch("--remove-color", help="Never use colours.", role="form"),
        value(
            "--v",
            help="Also show what passed and what was skipped (`-v`).",
            metavar="LEVEL",
            key="verbosity",
            role="form",
        ),
        switch("-q", "--quiet", help="Show findings only, without header and summary.", role="form"),
        number("--max-results", help="Show at most this many findings; 0 shows all.", default=0, least=0, role="form"),
        value(
            "--compat",
            help="Imitate the input rules and output of another command; the name `kyverno` implies it.",
            choices=("kyverno",),
            role="leniency",
        ),
    ),
    "Running": (
        *CONFIG,
        switch("--watch", help="Run again whenever a file of the inputs changes, until interrupted.", role="once"),
        switch("--continue-on-fail", help="Continue with the next resource after an error.", role="form"),
        number("--workers", help="Number of processes that review resources.", default=1, role="programs"),
        switch(
            "--registry",
            help="Read registries, for signatures of images and imageRegistry context entries.",
            role="network",
        ),
        value(
            "--trust-root",
            help="File with trusted authorities and logs, for keyless signatures.",
            metavar="FILE",
            role="facts",
        ),
        switch("--dns", help="Look up the host names for which policies ask (`is_external_url`).", role="network"),
    ),
    "Cluster": (
        switch(
            "-c",
            "--cluster",
            help="Review the objects of a cluster, of every kind that the policies match.",
            role="cluster",
        ),
        value(
            "-n", "--namespace", help="Only objects of this namespace of the cluster.", metavar="NAME", role="cluster"
        ),
        switch(
            "--cluster-wide-resources", help="With -n: also cluster-scoped objects.", key="cluster_wide", role="cluster"
        ),
        value("--kubeconfig", help="Kubeconfig file.", metavar="FILE", role="cluster"),
        value("--context", help="Context of the kubeconfig.", metavar="NAME", role="cluster"),
        number("--concurrent", help="Number of kinds that are listed at a time.", default=1, least=1, role="cluster"),
        number("--batch-size", help="Page size of lists.", default=100, least=1, role="cluster"),
        switch(
            "--continue-on-error",
            help="Check the other kinds when one may not be listed.",
            default=True,
            role="cluster",
        ),
        switch("--show-performance", help="Show how long loading took.", key="shows_performance", role="cluster"),
    ),
}
"""All flags, in the order of the help."""

FLAGS = tuple(flag for flags in SECTIONS.values() for flag in flags)


def apply(policies: tuple[str, ...], values: Mapping[str, Any]) -> int:
    """Run the command with the values of its flags by field, and return its exit code."""
    from pyverno.cli.apply.run import run_apply

    given = {flag.field: values[flag.field] for flag in FLAGS if flag.has_effect}
    if runs_as_kyverno():
        given["compat"] = "kyverno"
    options = ApplyOptions(policies=policies, **given)
    if options.watch:
        from pyverno.cli.apply.watch import watch_apply

        return watch_apply(options, run_apply)
    # without the garbage collector: a run creates many objects, and few cycles before it ends
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return run_apply(options)
    finally:
        if was_enabled:
            gc.enable()


def read_plain_words(words: Sequence[str]) -> Callable[[], int] | None:
    """Return the command with these words, ready to run; None when click must read them."""
    found = parse_fast(FLAGS, words)
    return None if found is None else partial(apply, *found)
