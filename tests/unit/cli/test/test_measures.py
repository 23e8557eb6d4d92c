"""`pyverno test --coverage`, `--mutate` and `--write`: what rows cover and notice, and what is added to files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pyverno.cli.docs import schema_text
from pyverno.kube.yaml.documents import load_documents
from tests.support import documents
from tests.support.jsonschema import schema_errors

if TYPE_CHECKING:
    from tests.support.commandline import Run

HEAD = "apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: t}\n"
FILES = HEAD + "policies: [latest.yaml]\nresources: [good.yaml, bad.yaml]\n"
CEL = """\
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: tagged}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  validations:
  - expression: >-
      object.spec.containers.all(c, c.image.contains(':') && !c.image.endsWith(':latest'))
    message: tag
"""


def row(resource: str, result: str, *, policy: str = "no-latest", rule: str = ", rule: tag") -> str:
    return f"- {{policy: {policy}{rule}, kind: Pod, resources: [{resource}], result: {result}}}\n"


def suite(folder: Path, text: str) -> Path:
    path = folder / "kyverno-test.yaml"
    path.write_text(text)
    return path


def test_a_branch_that_no_row_covers_is_named_with_its_place(cli: Run, folder: Path) -> None:
    """A resource without a row covers nothing."""
    suite(folder, FILES + "results:\n" + row("good", "pass"))
    ran = cli("test", ".", "--coverage")
    assert 0 == ran.code
    assert "  latest.yaml:11:5: no-latest/tag: the rule never fails\n" in ran.out
    assert "  latest.yaml:22:13: no-latest/tag: key `image` never fails\n" in ran.out
    assert "Coverage: 1 of 1 rules (100.0%), 3 of 5 branches (60.0%)\n" in ran.out


def test_rows_that_cover_a_branch_are_in_the_json_output(cli: Run, folder: Path) -> None:
    """The document fits its schema."""
    suite(folder, FILES + "results:\n" + row("good", "pass") + row("bad", "fail"))
    document = json.loads(cli("test", ".", "--coverage", "--mutate", "-o", "json").out)
    assert [] == [*schema_errors(document, json.loads(schema_text("test")))]
    branches = document["coverage"]["policies"][0]["branches"]
    found = {(each["kind"], each["outcome"]): each["rows"] for each in branches}
    assert ["kyverno-test.yaml:7"] == found["pattern", "pass"]
    assert ["kyverno-test.yaml:8"] == found["pattern", "fail"]
    assert {"total": 5, "covered": 5, "percent": 100.0} == document["coverage"]["branches"]


def test_operands_of_cel_are_branches(cli: Run, folder: Path) -> None:
    """Each operand of && and || is true and false once, at its character."""
    (folder / "cel.yaml").write_text(CEL)
    rows = row("good", "pass", policy="tagged", rule="") + row("bad", "fail", policy="tagged", rule="")
    suite(folder, FILES.replace("latest.yaml", "cel.yaml") + "results:\n" + rows)
    ran = cli("test", ".", "--coverage")
    assert "cel.yaml:10:37: tagged: expression `c.image.contains(':')` is never false\n" in ran.out
    assert "Branches that no row covers : 1\n" in ran.out


def test_a_skip_of_a_resource_that_a_rule_does_not_select_proves_something(cli: Run, folder: Path) -> None:
    """Strict mode accepts it, and it covers the block that does not fit."""
    (folder / "latest.yaml").write_text(
        documents.LATEST.replace("kinds: [Pod]", "kinds: [Pod]\n          names: [good]")
    )
    suite(folder, FILES + "results:\n" + row("good", "pass") + row("bad", "skip"))
    ran = cli("test", ".", "--strict", "--coverage")
    assert 0 == ran.code, ran.out
    assert "match block" not in ran.out


def test_a_mutant_that_no_row_notices_is_shown_as_a_diff(cli: Run, folder: Path) -> None:
    """The score counts the others; --fail-under makes it an error."""
    suite(folder, FILES + "results:\n" + row("good", "pass"))
    ran = cli("test", ".", "--mutate", "--fail-under", "90")
    assert "  latest.yaml:22:13: no-latest: key `image` is dropped\n" in ran.out
    assert '    -          - image: "!*:latest"\n' in ran.out.replace("'", '"')
    assert 1 == ran.code
    assert "Error: mutation score " in ran.err
    assert "is below 90%\n" in ran.err


def test_rows_for_both_verdicts_kill_all_mutants(cli: Run, folder: Path) -> None:
    """The key, its anchor and the sign of its value are noticed, in one process and in two."""
    suite(folder, FILES + "results:\n" + row("good", "pass") + row("bad", "fail"))
    ran = cli("test", ".", "--mutate")
    assert "key `image` becomes `=(image)`" in ran.out  # the API server requires an image
    assert "Mutation score: 66.6% (2 of 3 mutants killed)\n" in ran.out
    assert ran.out == cli("test", ".", "--mutate", "--workers", "2").out


def test_mutants_of_cel_are_other_operators_and_constants(cli: Run, folder: Path) -> None:
    """Each at its character."""
    (folder / "cel.yaml").write_text(CEL)
    rows = row("good", "pass", policy="tagged", rule="") + row("bad", "fail", policy="tagged", rule="")
    suite(folder, FILES.replace("latest.yaml", "cel.yaml") + "results:\n" + rows)
    out = cli("test", ".", "--mutate").out
    assert "cel.yaml:10:30: tagged: `all` becomes `exists`" in out
    assert "`&&` becomes `||`" not in out  # the failing pod notices it


def test_a_suite_that_fails_runs_no_mutants(cli: Run, folder: Path) -> None:
    """A warning reports why no mutants ran."""
    suite(folder, FILES + "results:\n" + row("bad", "pass"))
    ran = cli("test", ".", "--mutate")
    assert "no mutants are run, because the suite does not pass" in ran.err
    assert 1 == ran.code


@pytest.mark.parametrize("ending", ["json", "md", "html"])
def test_a_report_is_a_file_in_the_format_of_its_ending(cli: Run, folder: Path, ending: str) -> None:
    """It holds coverage and mutants, and the page loads nothing."""
    suite(folder, FILES + "results:\n" + row("good", "pass"))
    cli("test", ".", "--coverage", "--mutate", "--report", f"r.{ending}")
    text = (folder / f"r.{ending}").read_text()
    assert ("no-latest" in text, "latest.yaml:22:13" in text, "<script" in text) == (True, True, False)


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (("--fail-under", "5"), "--fail-under needs --coverage or --mutate"),
        (("--coverage", "--report", "r.txt"), "the file of --report must end with .json, .md, .html, got `r.txt`"),
        (("--write", "--mutate"), "--write cannot be used with --coverage, --mutate or --test-case-selector"),
    ],
)
def test_flags_that_do_not_go_together_are_errors(cli: Run, folder: Path, flags: tuple[str, ...], problem: str) -> None:
    """Nothing is run."""
    ran = cli("test", ".", *flags)
    assert (1, True) == (ran.code, problem in ran.err), ran.err


COMMENTED = """\
# the suite
apiVersion: cli.kyverno.io/v1alpha1
kind: Test
metadata: {name: t}
policies: ["latest.yaml"]  # one
resources: [good.yaml, bad.yaml]
"""


@pytest.mark.parametrize(
    "results",
    [
        "",
        "results:\n",
        "results: []  # none yet\n",
        "results:\n- {policy: no-latest, rule: tag, kind: Pod, resources: [good], result: pass}  # fine\n# end\n",
        "results:\n  - policy: no-latest\n    rule: tag\n    kind: Pod\n    resources:\n    - good\n    result: pass\n"
        "\n# after\nexceptions: []\n",
    ],
)
def test_write_adds_rows_for_results_without_a_row_and_keeps_the_rest(cli: Run, folder: Path, results: str) -> None:
    """Existing text stays to the letter, and the suite passes strictly afterwards; a second run adds nothing."""
    path = suite(folder, COMMENTED + results)
    ran = cli("test", ".", "--write")
    assert (0, True) == (ran.code, "to kyverno-test.yaml: review them\n" in ran.out), ran.err + ran.out
    text = path.read_text()
    rows = load_documents(text)[0].value["results"]
    assert [("bad", "fail"), ("good", "pass")] == sorted((each["resources"][0], each["result"]) for each in rows)
    assert all(line in text.splitlines() for line in (COMMENTED + results).splitlines() if line[:8] != "results:")
    assert 0 == cli("test", ".", "--strict").code
    cli("test", ".", "--write")
    assert text == path.read_text()


def test_write_refuses_results_in_flow_style(cli: Run, folder: Path) -> None:
    """The file stays as it was."""
    text = FILES + "results: [" + row("good", "pass")[2:].strip() + "]\n"
    path = suite(folder, text)
    ran = cli("test", ".", "--write")
    assert (True, text) == ("rows are added to a list in block style" in ran.err, path.read_text())
    assert 0 != ran.code


def test_a_folder_without_a_suite_gets_one_of_its_policies_and_manifests(cli: Run, folder: Path) -> None:
    """Rows hold the real verdicts, so that the suite passes, also with --strict; a second time nothing is added."""
    for name, text in {
        "p/policies/latest.yaml": documents.LATEST,
        "p/exception.yaml": documents.EXCEPTION,
        "p/pods/good.yaml": documents.GOOD,
        "p/pods/bad.yaml": documents.BAD,
        "p/values.yaml": "a: 1\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    ran = cli("test", "p", "--write")
    assert (0, "") == (ran.code, ran.err)
    assert "Wrote p/kyverno-test.yaml: " in ran.out
    [made] = load_documents((folder / "p/kyverno-test.yaml").read_bytes())
    listed = {name: made.value[name] for name in ("policies", "exceptions", "resources")}
    assert {
        "policies": ["policies/latest.yaml"],
        "exceptions": ["exception.yaml"],
        "resources": ["pods/bad.yaml", "pods/good.yaml"],
    } == listed
    assert {"bad": "skip", "good": "pass"} == {
        name: each["result"] for each in made.value["results"] for name in each["resources"]
    }
    assert 0 == cli("test", "p", "--strict").code
    before = (folder / "p/kyverno-test.yaml").read_text()
    assert 0 == cli("test", "p", "--write").code
    assert before == (folder / "p/kyverno-test.yaml").read_text()


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"pod.yaml": documents.GOOD}, "`p` has no policy, so that --write has nothing to test"),
        ({"latest.yaml": documents.LATEST}, "`p` has no resource, so that --write has nothing to test"),
        ({"latest.yaml": documents.LATEST, "torn.yaml": "apiVersion: v1\nkind: [\n"}, "p/torn.yaml:3:1: "),
    ],
)
def test_a_folder_that_makes_no_suite_is_an_error(cli: Run, folder: Path, files: dict[str, str], reason: str) -> None:
    """And nothing is written."""
    (folder / "p").mkdir()
    for name, text in files.items():
        (folder / "p" / name).write_text(text)
    ran = cli("test", "p", "--write")
    assert (1, True) == (ran.code, f"Error: {reason}" in ran.err)
    assert not (folder / "p/kyverno-test.yaml").exists()
