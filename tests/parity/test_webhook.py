"""The webhook over HTTPS agrees with the library: results, verdict, and the final object."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyverno.cli.test.suite import load_suite
from pyverno.kube.resource import Resource
from pyverno.kube.yaml.documents import expand_lists, load_documents
from pyverno.offline.manifests import load_manifests
from pyverno.offline.testfile import TestFile, read_test_file
from pyverno.policy.kinds import KNOWN_KINDS
from tests.cases.case import Case, all_cases
from tests.parity.webhook import Doors, compare, live_namespace, served


def _can_be_asked(case: Case) -> bool:
    if case.is_background or case.is_payload or not served(case.compilation.policies):
        return False
    return all(case.kinds.find(request.gvk) is not None for request in case.requests())


CASES = [pytest.param(case, id=case.name) for case in all_cases() if _can_be_asked(case)]


@pytest.mark.parametrize("case", CASES)
def test_the_webhook_answers_as_the_library_does(case: Case) -> None:
    """With the same facts, through every path that the policies have."""
    doors = Doors(case.compilation.policy_set(), case.host, case.kinds)
    for request in case.requests():
        asked = live_namespace(request)
        assert doors.library(asked) == doors.webhook(asked)


def test_most_cases_reach_the_webhook() -> None:
    """A filter that grows must not hide differences."""
    assert len(CASES) >= 100


def _is_of_custom_resources(test: TestFile, folder: Path) -> bool:
    """Return whether a suite has only custom resources, for which the API server calls no webhook here."""
    found = load_manifests([str(folder / name) for name in test.resources])
    objects = [document.value for document in expand_lists(found.documents)]
    return bool(objects) and all(KNOWN_KINDS.find(Resource(each).gvk) is None for each in objects)


SUITES = sorted((Path(__file__).parents[2] / "policies").glob("**/cases/kyverno-test.yaml"))[::6]


@pytest.mark.parametrize("path", SUITES, ids=[str(path.parents[1].name) for path in SUITES])
def test_library_command_line_and_webhook_agree_on_suites(path: Path) -> None:
    """Creating, updating and deleting every object of a suite of ours; the command does it for a whole corpus."""
    test = read_test_file(load_documents(path.read_bytes(), file=str(path))[0])
    questions = list(compare(load_suite(test, path.parent)))
    assert questions or _is_of_custom_resources(test, path.parent), "nothing was asked"
    for question, library, line, webhook in questions:
        assert (question, library, library) == (question, line, webhook)
