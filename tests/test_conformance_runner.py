"""The conformance runner, on a tiny corpus of its own that has every bucket."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conformance.__main__ import main

POLICY = {
    "apiVersion": "kyverno.io/v1",
    "kind": "ClusterPolicy",
    "metadata": {"name": "team", "annotations": {"pod-policies.kyverno.io/autogen-controllers": "none"}},
    "spec": {
        "rules": [
            {
                "name": "label",
                "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
                "validate": {"message": "no team", "pattern": {"metadata": {"labels": {"team": "?*"}}}},
            }
        ]
    },
}
CEL_POLICY = {
    "apiVersion": "policies.kyverno.io/v1",
    "kind": "ValidatingPolicy",
    "metadata": {"name": "team"},
    "spec": {
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
            ]
        },
        "validations": [{"expression": "has(object.metadata.labels) && 'team' in object.metadata.labels"}],
    },
}
SCENARIO_POLICY = {
    **POLICY,
    "spec": {
        "rules": [
            {
                "name": "label",
                "match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]},
                "validate": {**POLICY["spec"]["rules"][0]["validate"], "failureAction": "Enforce"},  # type: ignore[index]
            }
        ]
    },
}
READY = {
    "apiVersion": "chainsaw.kyverno.io/v1alpha1",
    "kind": "StepTemplate",
    "metadata": {"name": "ready"},
    "spec": {
        "try": [
            {
                "assert": {
                    "resource": {
                        "apiVersion": "kyverno.io/v1",
                        "kind": "ClusterPolicy",
                        "metadata": {"name": "($name)"},
                        "status": {"(conditions[?type == 'Ready'])": [{"status": "True"}]},
                    }
                }
            }
        ]
    },
}
CRON_SPEC = "object.spec.jobTemplate.spec.template.spec"
MUTATING_ADMISSION_POLICY = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "MutatingAdmissionPolicy",
    "metadata": {"name": "team"},
    "spec": {
        "matchConstraints": CEL_POLICY["spec"]["matchConstraints"],
        "reinvocationPolicy": "Never",
        "mutations": [
            {
                "patchType": "ApplyConfiguration",
                "applyConfiguration": {
                    "expression": "Object{metadata: Object.metadata{labels: Object.metadata.labels{team: 'a'}}}"
                },
            }
        ],
    },
}


def pod(name: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"containers": [{"name": "a", "image": "a:1"}]},
    }


def test_file(result: str, resource: str, **more: Any) -> dict[str, Any]:
    row = {"policy": "team", "rule": "label", "kind": "Pod", "resources": [resource], "result": result}
    return {
        "apiVersion": "cli.kyverno.io/v1alpha1",
        "kind": "Test",
        "metadata": {"name": "tiny"},
        "policies": ["policy.yaml"],
        "resources": ["resources.yaml"],
        "results": [row],
        **more,
    }


test_file.__test__ = False  # type: ignore[attr-defined]  # a helper, not a test

RESOURCES = [
    pod("good", team="a"),
    pod("bad"),
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other", "namespace": "default"}},
]


class Corpus:
    """Writes a corpus piece by piece."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, *documents: Any) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump_all(documents))

    def suite(self, bucket: str, name: str, test: dict[str, Any], policy: Any = POLICY, **record: Any) -> None:
        folder = f"{bucket}/mine/{name}"
        self.write(f"{folder}/kyverno-test.yaml", test)
        self.write(f"{folder}/policy.yaml", policy)
        self.write(f"{folder}/resources.yaml", *RESOURCES)
        line = {"id": f"mine:{name}", "repo": "mine", "path": f"{name}/kyverno-test.yaml", "missing": [], **record}
        with (self.root / bucket / "manifest.jsonl").open("a") as manifest:
            manifest.write(json.dumps({"expected": "pass", **line}) + "\n")

    def scenario(self, name: str, *steps: dict[str, Any]) -> None:
        test = {"apiVersion": "chainsaw.kyverno.io/v1alpha1", "kind": "Test", "metadata": {"name": name}}
        self.write(f"chainsaw/mine/scenario/{name}.yaml", {**test, "spec": {"steps": list(steps)}})
        record = {"id": f"mine:{name}", "repo": "mine", "path": f"scenario/{name}.yaml", "class": name, "ci": None}
        with (self.root / "chainsaw" / "manifest.jsonl").open("a") as manifest:
            manifest.write(json.dumps({**record, "quarantined": False, "skip": False}) + "\n")

    def table(self, name: str, *rows: dict[str, Any]) -> None:
        self.write_json(f"tables/{name}.json", {"name": name, "rows": rows})

    def write_json(self, path: str, value: Any) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(value))


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """A corpus in which everything passes that can be run."""
    made = Corpus(tmp_path / "corpus")
    made.suite("cli", "passes", test_file("pass", "good"))
    made.suite("cli", "fails-as-told", test_file("fail", "bad"))
    made.suite("cli", "vacuous", test_file("fail", "other"))
    made.suite("cli", "cel", test_file("fail", "bad"), CEL_POLICY)
    made.suite("special", "deprecated", {"name": "old", "policies": []}, expected="error:deprecated-schema")
    missing = test_file("pass", "good", resources=["gone.yaml"])
    made.suite("special", "missing", missing, expected="unknown:missing-files", missing=["mine/missing/gone.yaml"])
    made.suite("special", "wrong", test_file("pass", "bad"), expected="fail")
    made.write("apply/kyverno/p/policy.yaml", POLICY)
    made.write("apply/kyverno/r/pods.yaml", *RESOURCES)
    config = {"PolicyPaths": ["p/policy.yaml"], "ResourcePaths": ["r/pods.yaml"], "PolicyReport": True}
    counts = {"pass": 1, "fail": 1, "skip": 0, "error": 0, "warn": 0}
    made.table(
        "cli_apply",
        {"test": "Counts", "config": config, "summaries": [counts]},
        {
            "test": "Counts",
            "config": {**config, "PolicyPaths": ["-"]},
            "stdinFile": "p/policy.yaml",
            "summaries": [counts],
        },
        {"test": "Counts", "config": config, "summaries": [counts], "network": ["registry"]},
    )
    make_tables(made)
    made.write_json(
        "jmespath/mine.json",
        [
            {
                "given": {"a": {"b": 1}},
                "cases": [
                    {"expression": "a.b", "result": 1},
                    {"expression": "c", "result": None},
                    {"expression": "a[", "error": "syntax"},
                    {"expression": "a", "bench": "full"},
                ],
            }
        ],
    )
    fork = [{"given": {"a": 1}, "expression": "c", "error": "not-found"}]
    made.write_json("jmespath/fork.json", {"rows": fork})
    tests = [
        {
            "section": "s",
            "name": "sum",
            "expr": "1 + 1",
            "expect": {"kind": "value", "value": {"type": "int", "value": "2"}},
        },
        {"section": "s", "name": "wire", "expr": "x", "proto": "message", "expect": {"kind": "eval_error"}},
    ]
    made.write_json("cel/mine.json", {"tests": tests})
    make_scenarios(made)
    return made


def make_scenarios(made: Corpus) -> None:
    assertion = {"metadata": {"name": "good"}, "(data.size == '1' && $namespace != '')": True}
    good = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "good", "labels": {"team": "a"}}}
    made.write("chainsaw/mine/ready.yaml", READY)
    made.write("chainsaw/mine/scenario/policy.yaml", SCENARIO_POLICY)
    made.write("chainsaw/mine/scenario/good.yaml", {**good, "data": {"size": "1"}})
    made.write("chainsaw/mine/scenario/bad.yaml", {**good, "metadata": {"name": "bad"}})
    refused = [{"check": {"($error != null)": True, "(contains($error, 'no team'))": True}}]
    made.scenario(
        "policy-validation",
        {"name": "policy", "try": [{"create": {"file": "policy.yaml"}}]},
        {"use": {"template": "../ready.yaml", "with": {"bindings": [{"name": "name", "value": "team"}]}}},
        {
            "try": [
                {"apply": {"file": "good.yaml"}},
                {"apply": {"file": "bad.yaml", "expect": refused}},
                {"assert": {"resource": {"apiVersion": "v1", "kind": "ConfigMap", **assertion}}},
                {"error": {"file": "bad.yaml"}},
            ]
        },
    )
    made.scenario("http-service", {"try": [{"sleep": {"duration": "1h"}}]})


def make_tables(made: Corpus) -> None:
    resource = pod("good", team="a")
    made.table("wildcard", {"function": "Match", "pattern": "a*", "text": "abc", "expect": True})
    made.table("pattern", {"function": "Validate", "value": 5, "pattern": ">3", "expect": True})
    made.table("operators", {"test": "T", "operator": "AnyIn", "key": "a", "value": ["a"], "expect": True})
    made.table("operator_helpers", {"test": "TestIsIn", "key": ["a"], "value": ["a", "b"], "expected": True})
    made.table("jmespath_functions", {"test": "T", "expression": "to_upper('a')", "result": "A"})
    made.table("podsecurity", {"group": "g", "rule": {"level": "baseline"}, "pod": pod("p"), "allowed": True})
    made.table(
        "match_pattern",
        {"test": "T", "pattern": {"a": "?*"}, "resource": {"a": ""}, "ok": False, "path": "/a/"},
        {"test": "T", "pattern": {"a": 1}, "resource": {"a": 2}, "status": "fail", "asserted": False},
    )
    made.table("match_resource", {"test": "T", "policy": POLICY, "resource": resource, "match_fails": False})
    made.table(
        "strategic_merge", {"test": "T", "overlay": {"a": 1}, "resource": {"b": 2}, "expected": {"a": 1, "b": 2}}
    )
    made.table(
        "strategic_merge_preprocess",
        {"test": "T", "overlay": {"+(a)": 1}, "resource": {}, "preprocessed": {"a": 1}},
        {"test": "T", "overlay": {"(a)": 1, "b": 2}, "resource": {"a": 2}, "error": "ConditionError"},
    )
    patches = [{"op": "add", "path": "/a/b", "value": 1}]
    made.table("json6902", {"test": "T", "resource": {}, "patches": patches, "expected": {"a": {"b": 1}}})
    made.table(
        "anchor", {"test": "TestParse", "str": "+(a)", "want": {"$items": ["AddIfNotPresent", "a"], "$type": "anchor"}}
    )
    made.table("images", {"test": "T", "input": "nginx", "defaultRegistry": "my.io", "want": "my.io/nginx:latest"})
    made.table(
        "autogen",
        {"test": "T", "ruleName": "autogen-a", "expected": True},
        {"test": "T", "policy": POLICY, "expectedControllers": ["none"]},
        {"test": "T", "documents": {}},
    )
    made.table(
        "engine_validate", {"test": "T", "policy": POLICY, "resource": resource, "expect": {"statuses": ["pass"]}}
    )
    made.table("engine_mutate", {"test": "T", "documents": {}})
    made.table("policy_validation", {"test": "T", "policy": POLICY, "valid": True})
    documents = {"patternMap": {"a": "{{request.object.b}}"}, "resourceRaw": {"b": 1}, "resultMap": {"a": 1}}
    made.table("variables", {"test": "T", "documents": documents})
    made.table("match_helpers", {"test": "name/TestCheckName", "expected": "a?", "actual": "ab", "want": True})
    made.table(
        "vap_map",
        {
            "test": "T",
            "rawPolicy": MUTATING_ADMISSION_POLICY,
            "rawResource": pod("a"),
            "expectedRawResource": pod("a", team="a"),
        },
        {"test": "Test_Check_Resources", "resource": {"kinds": ["Pod"]}, "expected": True},
    )
    made.table(
        "cel_autogen",
        {
            "test": "autogen/TestApplyRewritesExpressions",
            "expr": "object.spec",
            "config": "cronjobs",
            "want": CRON_SPEC,
        },
        {"test": "T"},
    )
    made.table("from-the-future", {"test": "T"})


def run(corpus: Corpus, *arguments: str, gaps: str = "") -> tuple[int, dict[str, Any]]:
    """Run the runner; returns its exit code and its report."""
    report, known = corpus.root.parent / "report.json", corpus.root.parent / "gaps.yaml"
    known.write_text(gaps)
    places = ["--corpus", str(corpus.root), "--json", str(report), "--gaps", str(known)]
    code = main([*places, "--workers", "1", *arguments])
    return code, json.loads(report.read_text())


def figures(report: dict[str, Any], bucket: str) -> tuple[int, int, int, int]:
    found = report["buckets"][bucket]
    return found["passed"], found["failed"], found["skipped"], found["total"]


@pytest.mark.parametrize(
    ("bucket", "expected"),
    [
        ("cli", (4, 0, 0, 4)),
        ("special", (3, 0, 0, 3)),
        ("apply", (2, 0, 1, 3)),
        ("tables", (23, 0, 5, 28)),
        ("jmespath", (4, 0, 1, 5)),
        ("cel", (1, 0, 1, 2)),
        ("chainsaw", (1, 0, 1, 2)),
    ],
)
def test_every_bucket_runs(corpus: Corpus, bucket: str, expected: tuple[int, int, int, int]) -> None:
    """Each bucket counts what passed, failed and was skipped."""
    code, report = run(corpus, "--bucket", bucket)
    assert expected == figures(report, bucket), report["buckets"][bucket]["failures"]
    assert code == 0


def test_skipped_runs_give_the_reason(corpus: Corpus, capsys: pytest.CaptureFixture[str]) -> None:
    """Buckets that a corpus does not have are named with the reason."""
    code, report = run(corpus, "--bucket", "network")
    assert code == 0
    assert report["not_run"]["network"] == "the corpus has no such folder"
    assert "network: not run" in capsys.readouterr().out


def test_a_scenario_fails_with_the_step_that_did(corpus: Corpus) -> None:
    """The report names the step, the operation and what came back."""
    steps = [{"name": "steps", "try": [{"create": {"file": "policy.yaml"}}, {"apply": {"file": "bad.yaml"}}]}]
    corpus.scenario("admission-validate", *steps)
    code, report = run(corpus, "--bucket", "chainsaw", "--filter", "mine:admission-validate")
    [failure] = report["buckets"]["chainsaw"]["failures"]
    assert code == 1
    assert "step steps, 2. apply bad.yaml: ConfigMap/" in failure["got"][0]
    assert "no team" in failure["got"][0]


def test_a_failure_is_reported_with_expected_and_got(corpus: Corpus, capsys: pytest.CaptureFixture[str]) -> None:
    """A row that disagrees makes the run fail and is in the report."""
    corpus.table("wildcard", {"function": "Match", "pattern": "a*", "text": "b", "expect": True})
    code, report = run(corpus, "--bucket", "tables", "--filter", "tables/wildcard")
    [failure] = report["buckets"]["tables"]["failures"]
    assert code == 1
    assert (True, False) == (failure["expected"], failure["got"])
    assert f"FAILED {failure['id']}" in capsys.readouterr().out


def test_a_failing_suite_names_its_rows(corpus: Corpus) -> None:
    """A suite fails with the rows that do."""
    corpus.suite("cli", "wrong", test_file("pass", "bad"))
    code, report = run(corpus, "--bucket", "cli", "--filter", "wrong")
    [failure] = report["buckets"]["cli"]["failures"]
    assert code == 1
    assert failure["id"] == "cli/mine:wrong"
    assert "Want pass, got fail" in failure["got"][0]


def test_a_refused_policy_is_a_failure(corpus: Corpus) -> None:
    """A policy that we refuse does not make its rows pass, although upstream skips such rows."""
    bad = json.loads(json.dumps(POLICY))
    bad["spec"]["rules"][0]["match"] = {}
    corpus.suite("cli", "refused", test_file("pass", "good"), bad)
    code, report = run(corpus, "--bucket", "cli", "--filter", "refused")
    assert (1, (0, 1, 0, 1)) == (code, figures(report, "cli"))


def test_a_crash_is_a_failure_of_its_case(corpus: Corpus) -> None:
    """A row that cannot be read fails alone."""
    corpus.table("operators", {"test": "T", "operator": "Equals"})
    code, report = run(corpus, "--bucket", "tables", "--filter", "tables/operators")
    assert code == 1
    assert report["buckets"]["tables"]["failures"][0]["got"].startswith("KeyError")


def test_strict_counts_vacuous_passes_as_failures(corpus: Corpus, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows that pass without saying anything fail in strict mode only, and are listed apart in both."""
    relaxed, report = run(corpus, "--bucket", "cli")
    assert ["cli/mine:vacuous"] == [each["id"] for each in report["buckets"]["cli"]["vacuous"]]
    strict, report = run(corpus, "--bucket", "cli", "--strict")
    assert (0, 1) == (relaxed, strict)
    assert (3, 1, 0, 4) == figures(report, "cli")
    assert "vacuous passes: 1 rows in 1 suites" in capsys.readouterr().out


def test_a_known_gap_is_no_failure_until_it_closes(corpus: Corpus) -> None:
    """A listed failure is good; a listed case that passes must leave the list."""
    corpus.suite("cli", "gap", test_file("pass", "bad"))
    gaps = "- {id: 'cli/mine:gap', reason: a true one}\n"
    code, report = run(corpus, "--bucket", "cli", gaps=gaps)
    assert code == 0
    assert report["buckets"]["cli"]["failures"][0]["known_gap"] == "a true one"
    code, report = run(corpus, "--bucket", "cli", gaps=gaps.replace("gap'", "passes'"))
    assert code == 1
    assert report["closed_gaps"] == ["cli/mine:passes"]


def test_gaps_need_reasons(corpus: Corpus, capsys: pytest.CaptureFixture[str]) -> None:
    """A list of gaps that cannot be read ends the run with an error."""
    (corpus.root.parent / "gaps.yaml").write_text("- {id: x}\n")
    assert main(["--corpus", str(corpus.root), "--gaps", str(corpus.root.parent / "gaps.yaml")]) == 1
    assert "needs the texts" in capsys.readouterr().err


def test_several_processes_give_the_same_report(corpus: Corpus) -> None:
    """The number of workers changes nothing."""
    code, report = run(corpus)
    assert (code, report) == run(corpus, "--workers", "2")


def test_without_a_corpus_nothing_is_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder that is not there is no failure."""
    assert main(["--corpus", str(tmp_path / "none")]) == 0
    assert "there is no corpus" in capsys.readouterr().out
