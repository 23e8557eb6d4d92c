"""`pyverno explain`: what it prints, for people and for machines, and its exit codes."""

import json
from pathlib import Path

import pytest

from pyverno.cli.root import run

POLICY = """apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: tags}
spec:
  rules:
  - name: latest
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      message: name a version
      pattern:
        spec:
          containers:
          - image: "!*:latest"
"""
POD = """apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec:
  containers:
  - name: c
    image: nginx:%s
"""


def explained(folder: Path, capsys: pytest.CaptureFixture[str], *words: str, tag: str = "latest") -> tuple[int, str]:
    """The exit code and stdout of the command for one policy and one Pod."""
    (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
    (folder / "pod.yaml").write_text(POD % tag, encoding="utf-8")
    code = run(["explain", "policy.yaml", "-r", "pod.yaml", *words])
    return code, capsys.readouterr().out


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the command runs in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_failing_rule_is_explained_with_places_and_the_smallest_change(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both files are named with line and column."""
    code, out = explained(folder, capsys)
    expected = """\
shop/Pod/web  (pod.yaml:1:1)
  tags/latest: fail  (policy.yaml:6:5)
    validation error: name a version. rule latest failed at path /spec/containers/0/image/
    matched by match.any[0] (kinds)  (policy.yaml:7:19)
    pattern: fail  (policy.yaml:11:9)
      spec.containers[0].image: wanted "!*:latest", found "nginx:latest"  (pod.yaml:7:12)
    smallest change, checked by the engine (the rule is then pass):
      set spec.containers[0].image to "nginx:v1"  (pod.yaml:7:12)
"""
    assert (1, expected) == (code, out)


def test_a_rule_that_passes_ends_with_zero(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing has to change."""
    code, out = explained(folder, capsys, tag="v1")
    assert (0, True, False) == (code, "tags/latest: pass" in out, "smallest change" in out)


def test_json_holds_trace_places_and_the_change_as_a_patch(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One document, for machines."""
    code, out = explained(folder, capsys, "-o", "json")
    [found] = json.loads(out)["explanations"]
    patch = [{"op": "replace", "path": "/spec/containers/0/image", "value": "nginx:v1"}]
    assert (1, "tags", "latest", True, "policy.yaml:6:5", patch, "match") == (
        code,
        found["policy"],
        found["rule"],
        found["matched"],
        found["location"],
        found["change"]["patch"],
        found["trace"][0]["node"],
    )


def test_all_shows_rules_that_do_not_match_with_the_reason(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The copies for Pod controllers are not about a Pod."""
    _, out = explained(folder, capsys, "--all")
    assert "tags/autogen-latest: not matched" in out
    assert "not matched: kind Pod is not matched" in out


def test_only_the_named_rule_is_explained(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`POLICY/RULE` and `RULE` both name it."""
    found = [explained(folder, capsys, "--rule", name)[1].count("fail  (policy") for name in ("latest", "tags/latest")]
    assert [2, 2] == found


def test_nothing_to_explain_is_an_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file without resources explains nothing."""
    (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
    (folder / "empty.yaml").write_text("", encoding="utf-8")
    assert run(["explain", "policy.yaml", "-r", "empty.yaml"]) == 1
    assert "Error" in capsys.readouterr().err


def test_a_rule_that_is_not_there_is_an_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It would explain nothing, and end with 0."""
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "pod.yaml").write_text(POD % "1")
    assert 1 == run(["explain", "policy.yaml", "-r", "pod.yaml", "--rule", "tags/lates"])
    assert "Error: unknown rule `tags/lates`: did you mean `tags/latest`?\n" == capsys.readouterr().err


def test_inputs_that_cannot_be_read_are_part_of_the_document(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each error stands once on stderr, and once in the JSON document."""
    (folder / "pod.yaml").write_text(POD % "1")
    assert 1 == run(["explain", "gone.yaml", "-r", "pod.yaml", "-o", "json"])
    printed = capsys.readouterr()
    assert "Error: `gone.yaml` does not exist\n" == printed.err
    error = {"code": "usage", "file": "gone.yaml", "message": "`gone.yaml` does not exist"}
    assert {"explanations": [], "errors": [error]} == json.loads(printed.out)
