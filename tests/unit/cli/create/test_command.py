"""`pyverno create`: what it writes is what `apply` and `test` read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pyverno.kube.yaml.documents import load_documents

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commandline import Run


def written(text: str) -> Any:
    """The one document of a text."""
    (document,) = load_documents(text)
    return document.value


def test_a_created_test_runs(cli: Run, folder: Path) -> None:
    """Rows that pass, fail and are skipped; it passes in strict mode."""
    ran = cli(
        *(
            "create",
            "test",
            "--name",
            "mine",
            "-p",
            "latest.yaml",
            "-r",
            "good.yaml,bad.yaml",
            "--values",
            "values.yaml",
        ),
        *("--pass", "no-latest,tag,good,shop,Pod", "--fail", "no-latest,tag,bad,,Pod", "-o", "kyverno-test.yaml"),
    )
    assert (0, "", "") == (ran.code, ran.out, ran.err)
    assert 0 == cli("create", "values", "-g", "a=1", "-o", "values.yaml").code
    ran = cli("test", ".", "--strict")
    assert (0, True) == (ran.code, "Test Summary: 2 tests passed" in ran.out)


def test_a_created_test_holds_the_given_values(cli: Run) -> None:
    """Patched resources are kept, too."""
    created = written(cli("create", "test", "--skip", "p,r,res,ns,Pod,patched.yaml").out)
    assert ("Test", "test-name") == (created["kind"], created["metadata"]["name"])
    row = {"policy": "p", "rule": "r", "resources": ["ns/res"], "kind": "Pod", "patchedResources": "patched.yaml"}
    assert [{**row, "result": "skip"}] == created["results"]


def test_created_values_reach_the_policy(cli: Run) -> None:
    """A value of a rule stands in for a ConfigMap."""
    cli("create", "values", "--rule", "add-label,team,dictionary.data.team=red", "-o", "values.yaml")
    ran = cli("apply", "label.yaml", "-r", "good.yaml", "-f", "values.yaml")
    assert (0, True) == (ran.code, "team: red" in ran.out), ran


def test_created_values_hold_all_scopes(cli: Run) -> None:
    """Values are typed as YAML would, labels are texts."""
    created = written(
        cli("create", "values", "-g", "a=1,b=x", "-n", "shop,level=5", "--resource", "p,pod,on=true,off=.inf").out
    )
    assert {"a": 1, "b": "x"} == created["globalValues"]
    assert [{"name": "shop", "labels": {"level": "5"}}] == created["namespaceSelector"]
    assert [{"name": "p", "resources": [{"name": "pod", "values": {"on": True, "off": ".inf"}}]}] == created["policies"]


def test_a_created_user_is_read(cli: Run) -> None:
    """By `apply --userinfo`."""
    cli("create", "user-info", "-u", "me", "-g", "a,b", "-r", "shop:viewer", "-c", "admin", "--output", "user.yaml")
    assert 0 == cli("apply", "latest.yaml", "-r", "good.yaml", "-u", "user.yaml").code
    created = written(cli("create", "user-info", "--username", "me", "--group", "a", "--group", "b").out)
    assert {"username": "me", "groups": ["a", "b"]} == created["userInfo"]


def test_a_created_exception_exempts(cli: Run) -> None:
    """The failing pod is skipped."""
    cli(
        *("create", "exception", "legacy", "--namespace", "shop", "--policy-rules", "no-latest,tag"),
        *("--any", "kind=Pod,name=b*,namespace=shop,operation=CREATE", "-o", "legacy.yaml"),
    )
    ran = cli("apply", "latest.yaml", "-r", "bad.yaml", "--exception", "legacy.yaml")
    assert (0, True) == (ran.code, "fail: 0, warn: 0, error: 0, skip: 1" in ran.out), ran
    plain = written(cli("create", "exception", "e", "--policy-rules", "p,r,s", "--all", "kind=Pod", "-b=false").out)
    assert ("default", False) == (plain["metadata"]["namespace"], plain["spec"]["background"])


def test_metrics_config_holds_json(cli: Run) -> None:
    """Indented, under data.namespaces."""
    created = written(cli("create", "metrics-config", "-i", "a,b", "-e", "c", "-n", "m", "--namespace", "k").out)
    assert ("m", "k") == (created["metadata"]["name"], created["metadata"]["namespace"])
    assert {"include": ["a", "b"], "exclude": ["c"]} == written(created["data"]["namespaces"])


def test_cluster_role_is_aggregated(cli: Run) -> None:
    """Commas are not split, `all` stands for six verbs."""
    words = ("create", "cluster-role", "apps", "-g", "apps", "--resources", "a,b", "--resources", "c", "--verbs", "all")
    created = written(cli(*words).out)
    assert "kyverno-apps-permission" == created["metadata"]["name"]
    assert {"rbac.kyverno.io/aggregate-to-background-controller": "true"} == created["metadata"]["labels"]
    verbs = ["create", "get", "update", "delete", "list", "watch"]
    assert [{"apiGroups": ["apps"], "resources": ["a,b", "c"], "verbs": verbs}] == created["rules"]
    other = written(cli(*words, "--controllers", "cleanup-controller").out)
    assert {"rbac.kyverno.io/aggregate-to-cleanup-controller": "true"} == other["metadata"]["labels"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("test", "--pass", "p,r"), "--pass `p,r`: expected POLICY,RULE,RESOURCE,NAMESPACE,KIND[,PATCHED]"),
        (("values", "-g", "a"), "--global `a`: expected KEY=VALUE"),
        (("values", "--rule", "p,r"), "--rule `p,r`: expected NAME,NAME,KEY=VALUE"),
        (("exception", "e"), 'required flag(s) "policy-rules" not set'),
        (("exception",), "accepts 1 arg(s), received 0"),
        (("exception", "e", "--policy-rules", "p"), "--policy-rules `p`: expected POLICY,RULE[,RULE...]"),
        (("exception", "e", "--policy-rules", "p,r"), "one of --any and --all must select the exempt resources"),
        (
            ("exception", "e", "--policy-rules", "p,r", "--any", "kind=Pod,colour=red"),
            "--any `kind=Pod,colour=red`: `colour=red` must be KEY=VALUE "
            "with a key of kind, name, namespace, operation",
        ),
        (("user-info", "-o", "gone/u.yaml"), "cannot write `gone/u.yaml`: no such file or directory"),
        (("nothing",), 'unknown command "nothing" for "pyverno create"'),
    ],
)
def test_wrong_arguments_are_errors(cli: Run, arguments: tuple[str, ...], error: str) -> None:
    """Kyverno drops them silently."""
    ran = cli("create", *arguments)
    assert (1, f"Error: {error}\n") == (ran.code, ran.err)


def test_without_a_command_it_prints_its_help(cli: Run) -> None:
    """With every kind of file."""
    out = cli("create").out
    for name in ("test", "values", "user-info", "exception", "metrics-config", "cluster-role"):
        assert f"\n  {name} " in out
