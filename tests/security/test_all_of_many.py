"""I20: where one name of a policy may stand for several things of an object, every one of them is judged."""

from __future__ import annotations

from itertools import product

import pytest

from pyverno.engine.result import Status
from pyverno.kube.json import JSONObject
from tests.security.asking import ask, only, policy

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
