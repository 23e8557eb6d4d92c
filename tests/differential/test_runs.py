"""Runs of commands and the reading of their output, with stand-ins written here instead of a Kyverno executable."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.differential.__main__ import VARIABLE, compare_batch, main, own_command
from tests.differential.compare import differences
from tests.differential.generate.batches import FAMILIES, Batch, batch_of
from tests.differential.runs import Answer, Command, Key, answers_of
from tests.differential.shrink import shrink

_STANDIN = """
import json, sys

def read(path):
    return [json.loads(text) for text in open(path).read().split("\\n---\\n")]

policies = [read(word)[0]["metadata"]["name"] for word in sys.argv if word.startswith("policies/")]
if "p01" in policies:
    print("panic: bad policy", file=sys.stderr)
    sys.exit(2)
result = {"rule": "v0", "result": "RESULT", "message": "m"}
subjects = [{"kind": "ConfigMap", "name": resource["metadata"]["name"]} for resource in read("resources.yaml")]
results = [{**result, "policy": policy, "resources": [subject]} for policy in policies for subject in subjects]
changed = "a: 1\\n---\\n\\na: 2\\n---\\n\\n" if "p00" in policies else "a: 0\\n"
open("objects/p00-1-mutated.yaml", "w").write(changed)
print("Mutation has been applied successfully." + json.dumps({"kind": "ClusterReport", "results": results}))
"""


def _policy(name: str, check: object) -> dict[str, object]:
    rule = {"name": "v0", "match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]}, "validate": check}
    spec = {"rules": [rule, {**rule, "name": "v1"}]}
    return {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": name}, "spec": spec}


def _batch(*names: str) -> Batch:
    check = {"message": "no", "pattern": {"data": {"a": "?*"}}}
    resource = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "r0"}, "data": {"a": "1", "b": "2"}}
    return Batch(1, "rules", tuple(_policy(name, check) for name in names), (resource,))


def _standin(folder: Path, result: str) -> Command:
    program = folder / f"{result}.py"
    program.write_text(_STANDIN.replace("RESULT", result), encoding="utf-8")
    return Command((sys.executable, str(program)))


def test_results_and_objects_are_read_and_a_policy_that_stops_the_run_is_found(tmp_path: Path) -> None:
    """A panic costs its policy only; of a changed object the last state counts, in the run of its own policy."""
    found = answers_of(_standin(tmp_path, "pass"), _batch("p00", "p01", "p02"))
    assert {
        Key("policy", "p01"): Answer("stops the run", "panic: bad policy"),
        Key("result", "p00", "v0", "ConfigMap/r0"): Answer("pass", "m", "{}"),
        Key("result", "p02", "v0", "ConfigMap/r0"): Answer("pass", "m", "{}"),
        Key("object", "p00", "", "p00-1"): Answer("changed", '{"a": 2}'),
    } == found


def test_a_difference_is_shrunk_to_what_it_needs(tmp_path: Path) -> None:
    """Rules, patterns and data without which the commands still differ are left out."""
    ours, theirs = (_standin(tmp_path, result) for result in ("pass", "fail"))
    batch = _batch("p00")
    first = compare_batch(ours, theirs, batch)[0]
    small = shrink(first, lambda smaller: compare_batch(ours, theirs, smaller))
    assert ("pass", "fail") == (small.ours.status, small.theirs.status)
    assert len(str(small.policy)) < len(str(first.policy))


def test_without_an_executable_the_run_is_skipped_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing fails on a machine without an executable."""
    monkeypatch.setenv(VARIABLE, "/nowhere/kyverno")
    assert main([]) == 0
    assert capsys.readouterr().out == f"skipped: {VARIABLE} names no Kyverno executable\n"


def test_pyverno_agrees_with_itself_under_other_settings() -> None:
    """With several processes every answer is the same, and there are some."""
    drawn = batch_of(7, "cel")
    batch = replace(drawn, policies=drawn.policies[:6], resources=drawn.resources[:6], exceptions=())
    one, several = answers_of(own_command(), batch), answers_of(own_command("--workers", "2"), batch)
    assert [] == list(differences(batch, one, several))
    assert len(one) > 5


def test_a_seed_gives_the_same_batch() -> None:
    """Whoever repeats a seed sees the same difference."""
    assert [batch_of(3, family) for family in FAMILIES] == [batch_of(3, family) for family in FAMILIES]
