"""Suites that are converted along with their policies: what is written, that it passes, and what is reported."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import load_documents
from pyverno.offline.policylibrary import Control, list_controls
from tests.support.commandline import Run

NAMES = ("best-practices/add-image-pull-policy", "workloads/add-job-ttl", "best-practices/add-quota")
CONTROLS = [each for each in list_controls() if each.name in NAMES]
POLICY = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: hosts}
spec:
  rules:
  - name: no-host-network
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      failureAction: Enforce
      message: no host network
      pattern: {spec: {=(hostNetwork): false}}
"""
ROLES = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: roles}
spec:
  background: false
  rules:
  - name: admins
    match: {any: [{resources: {kinds: [ConfigMap]}, clusterRoles: [admin]}]}
    validate: {message: by role, pattern: {data: {a: b}}}
"""
PODS = """\
apiVersion: v1
kind: Pod
metadata: {name: good, namespace: default}
spec: {containers: [{name: c, image: nginx}]}
---
apiVersion: v1
kind: Pod
metadata: {name: bad, namespace: default}
spec: {hostNetwork: true, containers: [{name: c, image: nginx}]}
---
apiVersion: v1
kind: Pod
metadata: {name: inadmissible, namespace: default}
spec: {hostNetwork: "yes", containers: [{name: c, image: nginx}]}
"""
SUITE = """\
apiVersion: cli.kyverno.io/v1alpha1
kind: Test
metadata: {name: hosts}
policies: [../policy.yaml]
resources: [pods.yaml]
results:
- {policy: hosts, rule: no-host-network, kind: Pod, resources: [good], result: pass}
- {policy: hosts, rule: no-host-network, kind: Pod, resources: [bad], result: fail}
"""


@pytest.fixture
def files(folder: Path) -> Path:
    """A policy with a suite below it."""
    (folder / "old" / "cases").mkdir(parents=True)
    for name, text in (("policy", POLICY), ("cases/pods", PODS), ("cases/kyverno-test", SUITE)):
        (folder / "old" / f"{name}.yaml").write_text(text)
    return folder / "old"


def read(path: Path) -> JSONObject:
    """Return the document of a file."""
    (document,) = load_documents(path.read_text())
    found: JSONObject = document.value
    return found


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.name)
def test_a_suite_of_the_library_passes_with_the_converted_policy(cli: Run, folder: Path, control: Control) -> None:
    """The same resources and expected objects, before and after."""
    ran = cli("migrate", str(control.folder), "--write", "new", "-n", "40")
    assert f"suite {control.name.rpartition('/')[2]}: converted (tested)" in ran.err
    assert [0, 0] == [cli("test", str(each)).code for each in (control.folder / "cases", folder / "new")]


def test_the_new_folder_needs_nothing_of_the_old_one(cli: Run, folder: Path, files: Path) -> None:
    """Files that the suite names are copied, and its policies are the new ones."""
    assert 0 == cli("migrate", "old", "--write", "new", "-n", "40").code
    shutil.rmtree(files)
    assert ["../hosts.yaml"] == read(folder / "new/cases/kyverno-test.yaml")["policies"]
    assert 0 == cli("test", "new", "--require-tests").code


def test_suites_change_in_place_with_their_policies(cli: Run, files: Path) -> None:
    """The files keep their names."""
    assert 0 == cli("migrate", "old", "--in-place", "-n", "40").code
    rows = read(files / "cases/kyverno-test.yaml")["results"]
    assert [True, True] == [each["isValidatingPolicy"] for each in rows]
    assert 0 == cli("test", "old", "--require-tests").code


def test_policies_that_stay_go_with_the_suite(cli: Run, folder: Path, files: Path) -> None:
    """The old file also holds the policy that was converted, so the other one gets a file of its own."""
    (files / "policy.yaml").write_text(f"{POLICY}---\n{ROLES}")
    assert 1 == cli("migrate", "old", "--write", "new", "-n", "40").code
    expected = ["../hosts.yaml", "roles.kept.yaml"]
    assert expected == read(folder / "new/cases/kyverno-test.yaml")["policies"]
    assert 0 == cli("test", "new", "--require-tests").code


def test_a_row_that_differs_is_reported(cli: Run, files: Path) -> None:
    """A row expects a fail of the old policy that its suite does not check; the new one shows another result."""
    suite = files / "cases" / "kyverno-test.yaml"
    suite.write_text(SUITE.replace("[bad], result: fail", "[bad], result: pass"))
    ran = cli("migrate", "old", "--write", "new", "-n", "40")
    assert (1, True) == (ran.code, "the suite does not pass with the old policies either" in ran.err)


def test_rows_on_objects_that_no_api_server_admits_are_left_out(cli: Run, folder: Path, files: Path) -> None:
    """Only files hold such objects; CEL gives an error where the pattern failed."""
    suite = files / "cases" / "kyverno-test.yaml"
    suite.write_text(SUITE.replace("[bad], result", "[bad, inadmissible], result"))
    ran = cli("migrate", "old", "--write", "new", "-n", "40")
    assert (0, True) == (ran.code, "an API server refuses inadmissible" in ran.err)
    rows = read(folder / "new/cases/kyverno-test.yaml")["results"]
    assert [["good"], ["bad"]] == [each["resources"] for each in rows]


def test_a_suite_alone_is_unusable(cli: Run, files: Path) -> None:
    """The rows need the conversions of their policies."""
    ran = cli("migrate", str(files / "cases/kyverno-test.yaml"), "--write", "new")
    assert (2, True) == (ran.code, "name them beside their suites" in ran.err)


def test_a_suite_is_never_replaced_by_its_conversion(cli: Run, files: Path) -> None:
    """The folder of --write is that of the sources."""
    ran = cli("migrate", "old", "--write", "old", "-n", "40")
    assert (1, True) == (ran.code, "(suite-place); next: write to another folder" in ran.err)
    assert SUITE == (files / "cases/kyverno-test.yaml").read_text()
