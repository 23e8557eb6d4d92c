"""`pyverno ui`: the flags of the command."""

from __future__ import annotations

import click

from pyverno.cli.args.flags import comma_list, number, switch, value
from pyverno.cli.args.sections import command

__all__ = ["ui"]

_HELP = """Show reports, and a playground for policies, in a browser.

FILES are files or folders with PolicyReport, ClusterPolicyReport, Report or ClusterReport objects, or the output of
`pyverno report -o json`. Without files the reports of the cluster of the kubeconfig are followed.
"""
_SECTIONS = {
    "Source": (
        value("--kubeconfig", help="Kubeconfig file.", metavar="FILE"),
        comma_list("--context", help="Contexts of the kubeconfig: with several, each is a cluster.", key="contexts"),
        comma_list("-n", "--namespace", help="Only these namespaces, without cluster reports.", key="namespaces"),
        value("--cluster-name", help="Name of the one cluster on the pages.", default="cluster", metavar="NAME"),
        switch("--playground", help="Only the playground: read no reports at all.", key="only_playground"),
    ),
    "Server": (
        value("--address", help="Address to listen at.", default="127.0.0.1", metavar="ADDRESS"),
        number("--port", help="Port to listen at; 0 is any free port.", default=8080, least=0, most=65535),
        value("--base-path", help="Path below which a proxy serves the pages, such as `/policy`.", metavar="PATH"),
        value(
            "--store",
            help="File that keeps results and their history; without it history ends with the server.",
            metavar="FILE",
        ),
        number("--retention-days", help="Days for which resolved results are kept.", default=90, least=1, most=36500),
        comma_list("--views", help="Files with filters that everybody is shown: views, or boards of Policy Reporter."),
        switch("--metrics", help="Serve counts of results for Prometheus at `/metrics`.", key="shows_metrics"),
        switch(
            "--insecure-no-login",
            help="Allow an address that other machines reach although everybody may read everything.",
            key="allows_everybody",
        ),
    ),
}


def _ui(files: tuple[str, ...], **flags: object) -> None:
    from pyverno.cli.ui.run import UiOptions, run_ui

    given = {key: tuple(each) if isinstance(each, list) else each for key, each in flags.items()}
    run_ui(UiOptions(files=files, **given))  # type: ignore[arg-type]


ui = command(
    "ui",
    _HELP,
    _ui,
    _SECTIONS,
    click.Argument(["files"], nargs=-1),
    examples=(
        "pyverno ui",
        "pyverno ui reports/ --port 9000",
        "pyverno ui --context prod --store results.db",
        "pyverno ui --context prod,staging",
        "pyverno ui --playground",
    ),
)
