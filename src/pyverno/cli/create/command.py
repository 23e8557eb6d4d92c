"""`pyverno create`: print new files of the command line and of Kyverno, or write them with `--output`.

This module holds the flags and writes; `create_files` makes the contents.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from pyverno.cli.args.groups import group
from pyverno.cli.args.options import comma_list, flag, value
from pyverno.cli.args.sections import command
from pyverno.cli.create import files
from pyverno.errors import UsageError
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.writer import dump_yaml

__all__ = ["create"]


def _write(document: JSONObject, output: str) -> None:
    text = dump_yaml(document, sort_keys=False)
    if not output:
        sys.stdout.write(text)
        return
    try:
        Path(output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write `{output}`: {(error.strerror or str(error)).lower()}") from error


def _output() -> click.Option:
    return value("-o", "--output", help="File to write, instead of stdout.", metavar="FILE")


def _repeated(*names: str, help: str, metavar: str, required: bool = False) -> click.Option:
    """Return a flag that is repeated and whose commas belong to its value."""
    return click.Option(list(names), multiple=True, help=help, metavar=metavar, required=required)


def _name() -> click.Argument:
    return click.Argument(["name"])


Words = tuple[str, ...]


def _test(
    *, output: str, name: str, policy: Words, resource: Words, values: str, passing: Words, fail: Words, skip: Words
) -> None:
    rows = [
        files.expected_row(text, result)
        for result, texts in (("pass", passing), ("fail", fail), ("skip", skip))
        for text in texts
    ]
    _write(files.new_test(name=name, policies=policy, resources=resource, values=values, rows=rows), output)


def _values(output: str, global_values: Words, ns_selector: Words, rule: Words, resource: Words) -> None:
    document = files.values_file(global_values=global_values, namespaces=ns_selector, rules=rule, resources=resource)
    _write(document, output)


def _user_info(output: str, username: str, group: Words, role: Words, cluster_role: Words) -> None:
    _write(files.user_info(username=username, groups=group, roles=role, cluster_roles=cluster_role), output)


def _exception(
    *, output: str, name: str, namespace: str, background: bool, policy_rules: Words, any_of: Words, all_of: Words
) -> None:
    document = files.exception(
        name=name,
        namespace=namespace,
        background=background,
        policy_rules=policy_rules,
        any_of=any_of,
        all_of=all_of,
    )
    _write(document, output)


def _metrics_config(output: str, name: str, namespace: str, include: Words, exclude: Words) -> None:
    _write(files.metrics_config(name=name, namespace=namespace, include=include, exclude=exclude), output)


def _cluster_role(
    *, output: str, name: str, api_groups: str, resources: Words, verbs: Words, controllers: Sequence[str]
) -> None:
    document = files.cluster_role(
        name=name, api_groups=api_groups, resources=resources, verbs=verbs, controllers=controllers
    )
    _write(document, output)


_ROW = "POLICY,RULE,RESOURCE,NAMESPACE,KIND[,PATCHED]"
_FILTER = "kind=K,name=N,namespace=S,operation=O"

test = command(
    "test",
    "Print a test suite for `pyverno test`.",
    _test,
    {
        "Options": (
            _output(),
            value("-n", "--name", help="Name of the test.", default="test-name", metavar="NAME"),
            comma_list("-p", "--policy", help="Files with policies."),
            comma_list("-r", "--resource", help="Files with resources."),
            value("-f", "--values", help="File with values of variables.", metavar="FILE"),
            click.Option(["--pass", "passing"], multiple=True, help="A row that passes.", metavar=_ROW),
            _repeated("--fail", help="A row that fails.", metavar=_ROW),
            _repeated("--skip", help="A row that is skipped.", metavar=_ROW),
        )
    },
    epilog="""\b
Examples:
  pyverno create test -p policy.yaml -r pods.yaml --pass require-labels,check,good,default,Pod
  pyverno create test -n labels -p policy.yaml -r pods.yaml --fail require-labels,check,bad,,Pod -o kyverno-test.yaml
""",
)

values = command(
    "values",
    "Print a file with values of variables, for `--values-file` and the `variables` of tests.",
    _values,
    {
        "Options": (
            _output(),
            comma_list("-g", "--global", "global_values", help="Values for all policies, as KEY=VALUE."),
            _repeated("-n", "--ns-selector", help="Labels of a namespace.", metavar="NAMESPACE,KEY=VALUE..."),
            _repeated("--rule", help="Values of a rule.", metavar="POLICY,RULE,KEY=VALUE..."),
            _repeated("--resource", help="Values of a resource.", metavar="POLICY,RESOURCE,KEY=VALUE..."),
        )
    },
    epilog="""\b
Examples:
  pyverno create values -g request.mode=dev,request.operation=UPDATE
  pyverno create values --ns-selector shop,team=red --rule require-labels,check,limit=5 -o values.yaml
""",
)

user_info = command(
    "user-info",
    "Print a file that says who asks, for `--userinfo` and the `userinfo` of tests.",
    _user_info,
    {
        "Options": (
            _output(),
            value("-u", "--username", help="Name of the user.", metavar="NAME"),
            comma_list("-g", "--group", help="Groups of the user."),
            comma_list("-r", "--role", help="Roles, as NAMESPACE:NAME."),
            comma_list("-c", "--cluster-role", help="ClusterRoles."),
        )
    },
    epilog="""\b
Examples:
  pyverno create user-info -u molybdenum@somecorp.com -g basic-user -c admin,view
""",
)

exception = command(
    "exception",
    "Print a PolicyException: resources that some rules leave alone.",
    _exception,
    {
        "Options": (
            _output(),
            value("--namespace", help="Namespace of the exception (default when empty).", metavar="NAME"),
            flag("-b", "--background", help="Also for background scans; `=false` switches it off.", default=True),
            _repeated("--policy-rules", help="Rules of a policy.", metavar="POLICY,RULE...", required=True),
            click.Option(["--any", "any_of"], multiple=True, help="Resources; one filter must fit.", metavar=_FILTER),
            click.Option(["--all", "all_of"], multiple=True, help="Resources; all filters must fit.", metavar=_FILTER),
        )
    },
    _name(),
    epilog="""\b
Examples:
  pyverno create exception legacy --policy-rules require-labels,check --any kind=Pod,name=old-*,namespace=shop
""",
)

metrics_config = command(
    "metrics-config",
    "Print the ConfigMap that says which namespaces Kyverno's metrics are about.",
    _metrics_config,
    {
        "Options": (
            _output(),
            value("-n", "--name", help="Name of the ConfigMap.", default="kyverno-metrics", metavar="NAME"),
            value("--namespace", help="Its namespace.", default="kyverno", metavar="NAME"),
            comma_list("-i", "--include", help="Namespaces that are measured."),
            comma_list("-e", "--exclude", help="Namespaces that are not measured."),
        )
    },
    epilog="""\b
Examples:
  pyverno create metrics-config -i shop,billing -e kube-system
""",
)

cluster_role = command(
    "cluster-role",
    "Print a ClusterRole that gives Kyverno's controllers more permissions.",
    _cluster_role,
    {
        "Options": (
            _output(),
            click.Option(["-g", "--api-groups"], required=True, help="API group.", metavar="GROUP"),
            _repeated("--resources", help="Resources.", metavar="NAME", required=True),
            _repeated("--verbs", help="Verbs, or `all`.", metavar="VERB", required=True),
            click.Option(
                ["--controllers"],
                multiple=True,
                default=["background-controller"],
                show_default=True,
                help="Controllers that get them.",
                metavar="NAME",
            ),
        )
    },
    _name(),
    epilog="""\b
Examples:
  pyverno create cluster-role secrets -g "" --resources secrets --verbs get --verbs list
""",
)

create = group(
    "create",
    "Print new files of the command line and of Kyverno.",
    cluster_role,
    exception,
    metrics_config,
    test,
    user_info,
    values,
    epilog="""\b
Examples:
  pyverno create test -p policy.yaml -r pods.yaml --pass require-labels,check,good,default,Pod
  pyverno create exception legacy --policy-rules require-labels,check --any kind=Pod,name=old-*
""",
)
