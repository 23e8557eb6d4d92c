"""`pyverno ui`: the flags of the command."""

from __future__ import annotations

from typing import Any

import click

from pyverno.cli.args.flags import comma_list, number, switch, value
from pyverno.cli.args.sections import command
from pyverno.cli.errors import Exit

__all__ = ["ui"]

_HELP = """Show reports, and a playground for policies, in a browser.

FILES are files or folders with PolicyReport, ClusterPolicyReport, Report or ClusterReport objects, or the output of
`pyverno report -o json`. Without files the reports of the cluster of the kubeconfig are followed.
`pyverno ui check-login` with the flags of a login goes through a login, and reports what is wrong.
`pyverno ui test-target NAME --notifications FILE` sends a sample to one target of the file, and
`pyverno ui send-report NAME [FILES] --notifications FILE` mails the results that the target's filter admits.
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
            help="File that keeps results and their history, or `postgresql://` URL for several servers; without it "
            "history ends with the server.",
            metavar="FILE",
        ),
        number("--retention-days", help="Days for which resolved results are kept.", default=90, least=1, most=36500),
        comma_list("--views", help="Files with filters that all users see: views, or boards of Policy Reporter."),
        comma_list(
            "--notifications",
            help="Files with targets that changes of results are sent to: our form, or Policy Reporter's.",
        ),
        value("--banner", help="Text above every page, such as the name of the environment.", metavar="TEXT"),
        value("--logo", help="Image beside the name of the pages: SVG or PNG.", metavar="FILE"),
        switch("--metrics", help="Serve counts of results for Prometheus at `/metrics`.", key="shows_metrics"),
        value(
            "--metrics-address",
            help="Address and port for `/metrics` alone, without login, such as `0.0.0.0:9090`.",
            metavar="ADDRESS:PORT",
        ),
        comma_list(
            "--metrics-labels",
            help="Labels of these counts: simple, detailed (with rule, kind and name), or names of labels.",
        ),
        switch(
            "--insecure-no-login",
            help="Allow an address that other machines reach although every user may read everything.",
            key="allows_everybody",
        ),
    ),
    "Login": (
        value("--oidc-issuer", help="Issuer of logins by OpenID Connect.", metavar="URL", key="issuer"),
        value("--oidc-client-id", help="Name of this server at the issuer.", metavar="NAME", key="client"),
        value("--oidc-client-secret-file", help="File with the client's secret.", metavar="FILE", key="secret_file"),
        comma_list("--oidc-scopes", help="Scopes beside `openid`; else profile and email.", key="scopes"),
        value(
            "--oidc-username-claim",
            help="The one claim that names the user; `email` must be verified.",
            default="sub",
            metavar="NAME",
            key="username_claim",
        ),
        value(
            "--oidc-username-prefix",
            help="Text before names of users; without it the issuer and `#`, but none before e-mail addresses; `-` is "
            "none.",
            metavar="TEXT",
            key="username_prefix",
        ),
        value(
            "--oidc-groups-claim", help="Claim with the groups; else none are read.", metavar="NAME", key="groups_claim"
        ),
        value("--oidc-groups-prefix", help="Text before names of groups.", metavar="TEXT", key="groups_prefix"),
        value("--oidc-ca-file", help="Certificates that the issuer's is checked with.", metavar="FILE", key="ca_file"),
        value("--public-url", help="Address at which browsers reach this server, for logins.", metavar="URL"),
        value("--token-file", help="With check-login: file with an ID token to check.", metavar="FILE"),
        value("--proxy-user-header", help="Header in which a proxy names the user.", metavar="NAME"),
        value("--proxy-groups-header", help="Header in which a proxy names the groups, with commas.", metavar="NAME"),
        comma_list("--proxy-peers", help="Addresses or networks of the proxy."),
        comma_list("--allow-users", help="Only these users, and those of --allow-groups, may log in."),
        comma_list("--allow-groups", help="Only members of these groups, and the users of --allow-users, may log in."),
        value(
            "--rights",
            help="What users see: kubernetes, what they may read in the cluster, or all, what this server may read; "
            "else kubernetes for reports of a cluster.",
            choices=("all", "kubernetes"),
        ),
        value(
            "--rights-user-prefix",
            help="With a proxy: prefix that the API server puts before user names.",
            metavar="TEXT",
        ),
        value(
            "--rights-groups-prefix",
            help="With a proxy: prefix that the API server puts before groups.",
            metavar="TEXT",
        ),
    ),
}


def _ui(files: tuple[str, ...], **flags: Any) -> None:
    from pyverno.cli.ui.access import LOGIN_FLAGS, LoginOptions
    from pyverno.cli.ui.run import UiOptions, run_ui

    given: dict[str, Any] = {key: tuple(each) if isinstance(each, list) else each for key, each in flags.items()}
    login = LoginOptions(**{key: given.pop(key) for key in LOGIN_FLAGS})
    options = UiOptions(files=files, login=login, **given)
    if files[:1] == ("check-login",):
        from pyverno.cli.ui.checklogin import check_login

        raise Exit(check_login(options))
    if files[:1] == ("send-report",):
        from pyverno.cli.ui.sendreport import send_report

        raise Exit(send_report(options))
    if files[:1] == ("test-target",):
        from pyverno.cli.ui.testtarget import test_target

        raise Exit(test_target(options))
    run_ui(options)


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
        "pyverno ui check-login --oidc-issuer https://login.example.org --oidc-client-id pyverno "
        "--public-url https://policy.example.org",
        "pyverno ui --store results.db --notifications targets.yaml",
        "pyverno ui test-target team-a --notifications targets.yaml",
        "pyverno ui --playground",
    ),
)
