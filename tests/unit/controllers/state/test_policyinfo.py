"""The metric that lists the rules of the cluster."""

from __future__ import annotations

from pyverno.compiler.compile import compile_document
from pyverno.controllers.state.policyinfo import PolicyInfo
from pyverno.kube.yaml.documents import Document
from pyverno.telemetry.exposition import render_text
from pyverno.telemetry.instruments import GRACE_SECONDS, Instruments
from pyverno.telemetry.metric import Metric
from pyverno.telemetry.metricsettings import Namespaces

POLICY = {
    "apiVersion": "kyverno.io/v1",
    "kind": "ClusterPolicy",
    "metadata": {"name": "p"},
    "spec": {
        "background": False,
        "rules": [
            {
                "name": "r",
                "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
                "validate": {"failureAction": "Enforce", "pattern": {"spec": {"hostPID": False}}},
            }
        ],
    },
}


def _series(namespaces: Namespaces, **metadata: str) -> list[str]:
    compiled = compile_document(
        Document({**POLICY, "metadata": {"name": "p", **metadata}, "kind": "Policy" if metadata else "ClusterPolicy"})
    )
    instruments = Instruments()
    PolicyInfo(instruments, lambda: [compiled], lambda: namespaces)
    lines = render_text(instruments.read()).splitlines()
    return [line for line in lines if line.startswith("kyverno_policy_rule_info_total{")]


def test_every_rule_has_a_series() -> None:
    """Rules from autogen are included; the labels equal Kyverno's."""
    found = _series(Namespaces())
    names = ("r", "autogen-r", "autogen-cronjob-r")
    assert [
        'kyverno_policy_rule_info_total{policy_background_mode="false",policy_name="p",policy_namespace="-",'
        'policy_type="cluster",policy_validation_mode="enforce",'
        f'rule_name="{name}",rule_type="validate",status_ready="true"}} 1.0'
        for name in names
    ] == [_sorted(line) for line in found]


def test_policies_of_other_namespaces_are_left_out() -> None:
    """The ConfigMap of the metrics excludes them."""
    assert [] == _series(Namespaces(exclude=("team",)), namespace="team")
    assert 3 == len(_series(Namespaces(), namespace="team"))


def test_changes_are_counted_by_their_kind() -> None:
    """Each policy and kind of change has one series, whatever the number of rules."""
    compiled = compile_document(Document(POLICY))
    instruments = Instruments()
    info = PolicyInfo(instruments, lambda: (), Namespaces)
    for change in ("created", "updated", "updated"):
        info.note(compiled, change)
    changes, _rules = instruments.read()
    labels = ("policy_validation_mode", "policy_type", "policy_background_mode", "policy_namespace", "policy_name")
    assert ("kyverno_policy_changes", (*labels, "policy_change_type")) == (changes.name, changes.labels)
    same = ("enforce", "cluster", "false", "-", "p")
    assert {(*same, "created"): 1, (*same, "updated"): 2} == changes.numbers


def test_a_policy_that_changed_enforces_when_one_of_its_rules_does() -> None:
    """One Enforce rule, at any position, is enough."""
    [rule] = POLICY["spec"]["rules"]
    audits = {**rule, "name": "first", "validate": {**rule["validate"], "failureAction": "Audit"}}
    mixed = {**POLICY, "spec": {**POLICY["spec"], "rules": [audits, rule]}}
    instruments = Instruments()
    PolicyInfo(instruments, lambda: (), Namespaces).note(compile_document(Document(mixed)), "created")
    [labels] = next(instruments.read()).numbers
    assert "enforce" == labels[0]


def _sorted(line: str) -> str:
    name, _, rest = line.partition("{")
    labels, _, value = rest.rpartition("}")
    return f"{name}{{{','.join(sorted(labels.split(',')))}}}{value}"


def test_series_of_a_policy_and_of_a_rule_go_when_these_are_deleted() -> None:
    """An update may remove a rule; a rule that returns in time keeps its series."""
    now = [0.0]
    instruments = Instruments(clock=lambda: now[0])
    results = instruments.counter(Metric("counter", "results", "", ("policy_namespace", "policy_name", "rule_name")))
    info = PolicyInfo(instruments, lambda: (), Namespaces)
    rule = POLICY["spec"]["rules"][0]  # type: ignore[index]
    two = {**POLICY, "spec": {"background": False, "rules": [rule, {**rule, "name": "s"}]}}
    for name in ("r", "s"):
        results.add(("-", "p", name))
    results.add(("-", "q", "r"))
    info.note(compile_document(Document(two)), "created")
    info.note(compile_document(Document(POLICY)), "updated")
    now[0] += GRACE_SECONDS
    assert {("-", "p", "r"), ("-", "q", "r")} == next(instruments.read()).numbers.keys()
    info.note(compile_document(Document(POLICY)), "deleted")
    info.note(compile_document(Document(POLICY)), "created")
    now[0] += GRACE_SECONDS
    assert 2 == len(next(instruments.read()).numbers)
    info.note(compile_document(Document(POLICY)), "deleted")
    now[0] += GRACE_SECONDS
    assert {("-", "q", "r")} == next(instruments.read()).numbers.keys()
