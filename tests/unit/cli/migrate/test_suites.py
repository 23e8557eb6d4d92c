"""Suites of the library run with its policies and with what they are converted to."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pyverno.compiler.migration.companions.successors import successors_of
from pyverno.compiler.migration.companions.suites import convert_suite
from pyverno.compiler.migration.policy import convert_policy
from pyverno.kube.yaml.documents import load_documents
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.offline.policylibrary import Control, list_controls
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.decode import decode
from tests.support.commandline import Run
from tests.support.migrationcases import BOOK

NAMES = ("best-practices/add-image-pull-policy", "workloads/add-job-ttl", "best-practices/add-quota")
CONTROLS = [each for each in list_controls() if each.name in NAMES]


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.name)
def test_a_suite_of_the_library_passes_with_the_converted_policy(cli: Run, folder: Path, control: Control) -> None:
    """The same resources and expected objects, before and after."""
    shutil.copytree(control.folder, folder / "control")
    cases = folder / "control" / "cases"
    assert 0 == cli("test", str(cases)).code
    (document,) = load_documents(control.path.read_text())
    policy = decode(document).policy
    assert isinstance(policy, ClusterPolicy)
    conversion = convert_policy(policy, BOOK)
    (cases.parent / "new.yaml").write_text("---\n".join(dump_yaml(each) for each in conversion.documents))
    (suite,) = load_documents((cases / "kyverno-test.yaml").read_text())
    files = {"../clusterpolicy.yaml": ["../new.yaml"]}
    made = convert_suite(suite.value, successors_of(policy, conversion, BOOK), files)
    (cases / "kyverno-test.yaml").write_text(dump_yaml(made.documents[0]))
    assert 0 == cli("test", str(cases)).code
