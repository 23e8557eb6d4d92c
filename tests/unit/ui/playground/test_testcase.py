"""Test suites out of reviews: `pyverno test` is the judge."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from pyverno.cli.root import run
from pyverno.ui.playground.review import review_texts
from pyverno.ui.playground.testcase import suite_files, zip_files
from tests.support import documents
from tests.unit.ui.playground.test_review import LABELS, POD

VALUES = "apiVersion: cli.kyverno.io/v1alpha1\nkind: Values\nmetadata: {name: v}\nglobalValues: {a: b}\n"

CEL = """\
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: tags}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}
  validations:
  - {expression: "object.spec.containers.all(c, !c.image.endsWith(':latest'))", message: no latest}
"""


@pytest.mark.parametrize(
    "request_",
    [
        {"policies": documents.LATEST, "resources": f"{documents.GOOD}---\n{documents.BAD}"},
        {"policies": LABELS, "resources": POD},
        {"policies": f"{LABELS}---\n{documents.LATEST}", "resources": POD, "values": VALUES, "operation": "UPDATE"},
        {"policies": documents.LATEST, "resources": documents.BAD, "exceptions": documents.EXCEPTION},
        {"policies": documents.GENERATE, "resources": documents.NAMESPACE},
        {"policies": CEL, "resources": f"{documents.GOOD}---\n{documents.BAD}"},
    ],
    ids=["validate", "mutate", "update", "exception", "generate", "cel"],
)
def test_the_suite_passes_unchanged(
    request_: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It expects what was on the screen, and has a row for every result."""
    answer = review_texts(request_)
    files = suite_files(request_, answer)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    code = run(("test", ".", "--strict"))
    printed = capsys.readouterr()
    rows = sum(len(each["results"]) for each in answer["reviews"])
    assert (0, True) == (code, rows > 0), printed
    assert rows == files["kyverno-test.yaml"].count("- policy:")


def test_the_archive_is_one_folder() -> None:
    """Equal texts make equal bytes."""
    body = zip_files({"a.yaml": "a", "b.yaml": "b"})
    assert ["playground/a.yaml", "playground/b.yaml"] == zipfile.ZipFile(io.BytesIO(body)).namelist()
    assert body == zip_files({"a.yaml": "a", "b.yaml": "b"})
