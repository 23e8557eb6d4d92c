"""`pyverno create`: print new files of the command line and of Kyverno, or write them with `--output`.

`create.files` makes the contents.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from pyverno.cli.args.flags import comma_list, repeated, switch, value
from pyverno.cli.args.groups import group
from pyverno.cli.args.sections import command
from pyverno.cli.create import files
from pyverno.cli.terminal import STDOUT
from pyverno.errors import UsageError
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.writer import dump_yaml

__all__ = ["create"]


def _write(document: JSONObject, output: str) -> None:
    text = dump_yaml(document, sort_keys=False)
    if not output:
        STDOUT.write(text)
        return
    try:
        Path(output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write `{output}`: {(error.strerror or str(error)).lower()}") from error


_OUTPUT = value("-o", "--output", help="File to write, instead of stdout.", metavar="FILE")


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
            _OUTPUT,
            value("-n", "--name", help="Name of the test.", default="test-name", metavar="NAME"),
            comma_list("-p", "--policy", help="Files with policies."),
            comma_list("-r", "--resource", help="Files with resources."),
            value("-f", "--values", help="File with values of variables.", metavar="FILE"),
            repeated("--pass", key="passing", help="A row that passes.", metavar=_ROW),
            repeated("--fail", help="A row that fails.", metavar=_ROW),
            repeated("--skip", help="A row that is skipped.", metavar=_ROW),
        )
    },
    examples=(
        "pyverno create test -p policy.yaml -r pods.yaml --pass require-labels,check,good,default,Pod",
        "pyverno create test -n labels -p p.yaml -r pod.yaml --fail require-labels,check,bad,,Pod -o kyverno-test.yaml",
    ),
)

values = command(
    "values",
    "Print a file with values of variables, for `--values-file` and the `variables` of tests.",
    _values,
    {
        "Options": (
            _OUTPUT,
            comma_list("-g", "--global", key="global_values", help="Values for all policies, as KEY=VALUE."),
            repeated("-n", "--ns-selector", help="Labels of a namespace.", metavar="NAMESPACE,KEY=VALUE..."),
            repeated("--rule", help="Values of a rule.", metavar="POLICY,RULE,KEY=VALUE..."),
            repeated("--resource", help="Values of a resource.", metavar="POLICY,RESOURCE,KEY=VALUE..."),
        )
    },
    examples=(
        "pyverno create values -g request.mode=dev,request.operation=UPDATE",
        "pyverno create values --ns-selector shop,team=red --rule require-labels,check,limit=5 -o values.yaml",
    ),
)

user_info = command(
    "user-info",
    "Print a file with user, groups and roles, for `--userinfo` and the `userinfo` of tests.",
    _user_info,
    {
        "Options": (
            _OUTPUT,
            value("-u", "--username", help="Name of the user.", metavar="NAME"),
            comma_list("-g", "--group", help="Groups of the user."),
            comma_list("-r", "--role", help="Roles, as NAMESPACE:NAME."),
            comma_list("-c", "--cluster-role", help="ClusterRoles."),
        )
    },
    examples=("pyverno create user-info -u molybdenum@somecorp.com -g basic-user -c admin,view",),
)

exception = command(
    "exception",
    "Print a PolicyException, which exempts resources from rules.",
    _exception,
    {
        "Options": (
            _OUTPUT,
            value("--namespace", help="Namespace of the exception (default when empty).", metavar="NAME"),
            switch(
                "-b",
                "--background",
                help="Apply the exception to background scans too; `=false` switches it off.",
                default=True,
            ),
            repeated("--policy-rules", help="Rules of a policy.", metavar="POLICY,RULE...", is_required=True),
            repeated("--any", key="any_of", help="Resources; one filter must match.", metavar=_FILTER),
            repeated("--all", key="all_of", help="Resources; all filters must match.", metavar=_FILTER),
        )
    },
    _name(),
    examples=(
        "pyverno create exception legacy --policy-rules require-labels,check --any kind=Pod,name=old-*,namespace=shop",
    ),
)

metrics_config = command(
    "metrics-config",
    "Print the ConfigMap that selects the namespaces of Kyverno's metrics.",
    _metrics_config,
    {
        "Options": (
            _OUTPUT,
            value("-n", "--name", help="Name of the ConfigMap.", default="kyverno-metrics", metavar="NAME"),
            value("--namespace", help="Namespace of the ConfigMap.", default="kyverno", metavar="NAME"),
            comma_list("-i", "--include", help="Namespaces to include."),
            comma_list("-e", "--exclude", help="Namespaces to exclude."),
        )
    },
    examples=("pyverno create metrics-config -i shop,billing -e kube-system",),
)

cluster_role = command(
    "cluster-role",
    "Print a ClusterRole that gives Kyverno's controllers more permissions.",
    _cluster_role,
    {
        "Options": (
            _OUTPUT,
            value("-g", "--api-groups", help="API group.", metavar="GROUP", is_required=True),
            repeated("--resources", help="Resources.", metavar="NAME", is_required=True),
            repeated("--verbs", help="Verbs, or `all`.", metavar="VERB", is_required=True),
            repeated(
                "--controllers",
                help="Controllers that get the permissions.",
                metavar="NAME",
                default=("background-controller",),
            ),
        )
    },
    _name(),
    examples=('pyverno create cluster-role secrets -g "" --resources secrets --verbs get --verbs list',),
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
    examples=(
        "pyverno create test -p policy.yaml -r pods.yaml --pass require-labels,check,good,default,Pod",
        "pyverno create exception legacy --policy-rules require-labels,check --any kind=Pod,name=old-*",
    ),
)
