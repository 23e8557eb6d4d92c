"""I20: where one name of a policy may stand for several things of an object, every one of them is judged."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from pyverno.engine.request import Request
from pyverno.engine.result import Status
from pyverno.kube.json import JSONObject
from pyverno.kube.resource import Resource
from pyverno.lang.runtime import Budget
from tests.security.asking import POD, ask, compiled, only, policy

_KEYS = ("corp/a", "corp/b", "corp/c", "other")
_VALUES = ("good", "bad", None)
"""The values of the four keys; None: the object has no such key."""


def _object(values: tuple[str | None, ...], tag: str) -> JSONObject:
    entries = {key: value for key, value in zip(_KEYS, values, strict=True) if value is not None}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "team", tag: entries}}


def _wanted(anchor: str, values: tuple[str | None, ...]) -> Status:
    """Judge the keys that the wildcard means one by one."""
    meant = [value for value in values[:3] if value is not None]
    all_good = all(value == "good" for value in meant)
    match anchor:
        case "=":
            return Status.PASS if all_good else Status.FAIL
        case "":
            return Status.PASS if meant and all_good else Status.FAIL
        case "X":
            return Status.FAIL if meant else Status.PASS
        case "<":  # without any such key the rest of the pattern is judged, as in Kyverno
            return Status.FAIL if "good" in meant or not meant else Status.SKIP
        case _:
            return Status.FAIL if "good" in meant else Status.SKIP


_DEMANDED = {"<": "\n    data: {demanded: 'yes'}", "(": "\n    data: {demanded: 'yes'}"}
"""What is demanded where a condition holds: the objects do not have it."""


@pytest.mark.parametrize("tag", ["labels", "annotations"])
@pytest.mark.parametrize("anchor", ["", "=", "X", "<", "("])
def test_a_wildcard_key_of_a_pattern_judges_every_key(anchor: str, tag: str) -> None:
    """Whatever the order of keys, no key takes another that violates, or a condition that holds, out of sight."""
    key = f"{anchor.strip('(')}(corp/*)" if anchor else "corp/*"
    text = policy(
        f"""\
validate:
  message: m
  pattern:
    metadata:
      {tag}:
        {key}: good{_DEMANDED.get(anchor, "")}
"""
    )
    found = {values: only(ask(text, _object(values, tag)))[0] for values in product(*[_VALUES] * 3, ("bad",))}
    assert {values: _wanted(anchor, values) for values in found} == found


def test_a_second_annotation_does_not_hide_a_profile() -> None:
    """The control of AppArmor in the library judges the annotation of each container."""
    annotations = {
        "container.apparmor.security.beta.kubernetes.io/a": "runtime/default",
        "container.apparmor.security.beta.kubernetes.io/b": "unconfined",
    }
    body = """\
validate:
  message: m
  pattern:
    =(metadata):
      =(annotations):
        =(container.apparmor.security.beta.kubernetes.io/*): "runtime/default | localhost/*"
"""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "team", "annotations": annotations},
    }
    assert Status.FAIL == only(ask(policy(body, on="Pod"), pod | {"spec": {"containers": []}}))[0]
    harmless = dict.fromkeys(annotations, "localhost/x")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "team", "annotations": harmless}}
    assert Status.PASS == only(ask(policy(body, on="Pod"), pod | {"spec": {"containers": []}}))[0]


@pytest.mark.parametrize("key", ["(corp/a)", "X(corp/a)", "=(corp/none)", "<(corp/a)", "^(corp/a)", "+(corp/a)"])
def test_a_key_of_an_object_is_no_anchor(key: str) -> None:
    """A name that looks like an anchor is judged as a name: it neither hides its value nor breaks the rule."""
    rule = (
        "validate:\n  failureAction: Enforce\n  message: m\n  pattern:\n    metadata:\n      annotations:\n"
        "        '*': good"
    )
    for value, wanted in (("bad", Status.FAIL), ("good", Status.PASS)):
        document: JSONObject = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "x", "namespace": "team", "annotations": {"corp/a": "good", key: value}},
        }
        assert wanted is only(ask(policy(rule), document))[0]


@pytest.mark.parametrize("anchor", ["{}", "X({})", "({})", "<({})"])
def test_many_keys_are_charged(anchor: str) -> None:
    """A request may hold a hundred thousand annotations: they cost steps, and one rule does not judge them for ever."""
    key = anchor.format("corp/*")
    rule = (
        "validate:\n  failureAction: Enforce\n  message: m\n  pattern:\n    metadata:\n      annotations:\n"
        f"        '{key}': good"
    )
    annotations: JSONObject = {f"corp/{index}": "good" for index in range(3000)}
    document: JSONObject = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x", "namespace": "team", "annotations": annotations},
    }
    assert Status.ERROR is only(ask(policy(rule), document, budget=Budget(steps=2000)))[0]
    wanted = Status.FAIL if anchor == "X({})" else Status.PASS
    assert wanted is only(ask(policy(rule), document))[0]


_LIBRARY = Path(__file__).parents[2] / "policies" / "cel"
_POD_POLICIES = sorted(
    path.parent.relative_to(_LIBRARY).as_posix()
    for path in _LIBRARY.rglob("validatingpolicy.yaml")
    if "resources: [pods" in path.read_text(encoding="utf-8")
)


def _matched(name: str) -> frozenset[str]:
    """Return the subresources of Pods, among those that carry a whole Pod, whose requests a policy takes."""
    text = (_LIBRARY / name / "validatingpolicy.yaml").read_text(encoding="utf-8")
    [made] = compiled(text).policies
    return frozenset(
        subresource
        for subresource in ("ephemeralcontainers", "resize")
        if any(rule.matcher.mismatch(_about_subresource(subresource), Resource(POD)) is None for rule in made.rules)
    )


def _about_subresource(name: str) -> Request:
    return Request.from_admission_review(
        {
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "subResource": name,
            "operation": "UPDATE",
            "namespace": "team",
            "name": "web",
            "object": POD,
            "oldObject": POD,
        }
    )


def test_every_policy_for_pods_in_the_library_sees_what_changes_a_pod() -> None:
    """All 80 in CEL judge added ephemeral containers, and those that read resources judge resizes."""
    assert 80 == len(_POD_POLICIES)
    assert [] == [name for name in _POD_POLICIES if "ephemeralcontainers" not in _matched(name)]
    assert {
        "best-practices/require-requests-limits",
        "cost/limit-container-requests",
        "cost/limit-gpus",
        "cost/restrict-gpu-nodes",
        "workloads/disallow-best-effort",
        "workloads/disallow-cpu-limits",
        "workloads/require-ephemeral-storage",
        "workloads/require-equal-memory",
    } == {name for name in _POD_POLICIES if "resize" in _matched(name)}


def test_a_policy_for_pods_and_their_subresources_has_copies_for_controllers() -> None:
    """A Deployment is judged by the policy as it would be without the subresources."""
    text = (_LIBRARY / "pod-security/baseline/disallow-privileged-containers/validatingpolicy.yaml").read_text()
    [made] = compiled(text).policies
    assert 3 == len(made.rules)
