"""The plugin for pytest: rows are tests, failures are readable, fixtures review objects, other runs pay nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import documents

HEAD = "apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: tags}\n"
FILES = HEAD + "policies: [latest.yaml]\nresources: [pods.yaml]\nresults:\n"
PYTHON = """
def test_latest_fails(review):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
           "spec": {"containers": [{"name": "c", "image": "nginx:latest"}]}}
    assert [result.status.value for result in review(pod).results] == ["fail"]

def test_policies_are_those_of_the_configuration(policies):
    assert [policy.info.name for policy in policies] == ["no-latest"]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one policy and two pods."""
    (tmp_path / "latest.yaml").write_text(documents.LATEST)
    (tmp_path / "pods.yaml").write_text(f"{documents.GOOD}---\n{documents.BAD}")
    (tmp_path / "pytest.ini").write_text("[pytest]\npyverno_policies = latest.yaml\nfilterwarnings = error\n")
    return tmp_path


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run pytest with the plugin in a process of its own."""
    plugin = ("-p", "pyverno.pytest_plugin", "-p", "no:cacheprovider", "-p", "no:xdist")
    command = [sys.executable, "-m", "pytest", *plugin, *words]
    # an installed package brings the plugin along by its entry point: it would be loaded twice
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def row(resource: str, result: str, rule: str = "tag") -> str:
    return f"- {{policy: no-latest, rule: {rule}, kind: Pod, resources: [{resource}], result: {result}}}\n"


def test_each_row_is_a_test_and_a_failure_names_its_line(project: Path) -> None:
    """Node ids hold policy, rule, resource and result; no traceback of ours is shown."""
    (project / "kyverno-test.yaml").write_text(FILES + row("good", "pass") + row("bad", "pass") + row("bad", "fail"))
    ran = run(project, "-v")
    assert 1 == ran.returncode, ran.stdout + ran.stderr
    assert "kyverno-test.yaml::no-latest/tag[v1/Pod/shop/good-pass] PASSED" in ran.stdout
    assert "kyverno-test.yaml:8: no-latest/tag: v1/Pod/shop/bad: Want pass, got fail" in ran.stdout
    assert ("1 failed, 2 passed" in ran.stdout, "Traceback" in ran.stdout) == (True, False)


def test_rows_that_prove_nothing_and_files_that_cannot_be_read_fail(project: Path) -> None:
    """The plugin is strict unless the configuration says otherwise; a broken file is one failing test."""
    (project / "kyverno-test.yaml").write_text(FILES + row("good", "pass", rule="missing"))
    (project / "sub").mkdir()
    (project / "sub" / "kyverno-test.yaml").write_text(HEAD + "colour: red\n")
    ran = run(project)
    assert "the policy has no rule `missing`" in ran.stdout
    assert "unknown field `colour`" in ran.stdout
    assert "2 failed, 1 passed" in ran.stdout


def test_a_row_without_a_result_says_what_the_suite_lacks(project: Path) -> None:
    """A policy that is not valid shows its errors, and a policy that is not loaded the name that was meant."""
    (project / "invalid.yaml").write_text(documents.INVALID)
    head = FILES.replace("[latest.yaml]", "[latest.yaml, invalid.yaml]")
    rows = row("good", "pass").replace("no-latest", "no-latst") + row("good", "pass").replace("no-latest", "broken")
    (project / "kyverno-test.yaml").write_text(head + rows)
    ran = run(project)
    assert "no-latst/tag: the test loads no policy `no-latst`: did you mean `no-latest`?" in ran.stdout
    assert (
        f"the policy `broken` is not valid, so that its rows prove nothing: {project / 'invalid.yaml'}:17:7: "
        in ran.stdout
    )
    (project / "kyverno-test.yaml").write_text(head + rows.splitlines(keepends=True)[1])
    assert 0 == run(project, "-o", "pyverno_strict=false").returncode


def test_fixtures_review_objects_with_the_policies_of_the_configuration(project: Path) -> None:
    """`policies` is loaded once, `review` takes an object."""
    (project / "test_own.py").write_text(PYTHON)
    ran = run(project)
    assert (0, True) == (ran.returncode, "2 passed" in ran.stdout), ran.stdout + ran.stderr


def test_a_run_without_such_files_loads_no_engine(project: Path) -> None:
    """The module of the plugin imports nothing of pyverno but itself."""
    script = (
        "import sys, pyverno.pytest_plugin\n"
        "print(sorted(name for name in sys.modules if name.startswith(('pyverno', 'kubesandbox'))))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=True)
    assert "['pyverno', 'pyverno.pytest_plugin', 'pyverno.version']\n" == done.stdout
