"""`pyverno test`: which suites run, what is printed, what fails, and what strict mode adds."""

from __future__ import annotations

import json
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pyverno.kube.yaml.documents import load_documents

if TYPE_CHECKING:
    from tests.support.commandline import Run

HEAD = "apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: t}\n"
FILES = HEAD + "policies: [latest.yaml]\nresources: [good.yaml, bad.yaml]\n"

_CEL = """\
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: cel}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]
  validations: [{expression: "true"}]
"""


def row(resource: str, result: str, *, policy: str = "no-latest", rule: str = "tag", more: str = "") -> str:
    """One entry of `results`."""
    return f"- {{policy: {policy}, rule: {rule}, kind: Pod, resources: [{resource}], result: {result}{more}}}\n"


PASSING = FILES + "results:\n" + row("good", "pass") + row("bad", "fail")


def suite(folder: Path, text: str, name: str = "kyverno-test.yaml") -> None:
    """Write a suite."""
    place = folder / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def test_a_suite_whose_results_are_as_expected_ends_with_0(cli: Run, folder: Path) -> None:
    """Loading lines, the table and the summary are those of Kyverno."""
    suite(folder, PASSING)
    expected = """\
Loading test  ( kyverno-test.yaml ) ...
  Loading values/variables ...
  Loading policies ...
  Loading resources ...
  Loading exceptions ...
  Applying 1 policy to 2 resources with 0 exceptions ...
  Checking results ...

│────│───────────│──────│──────────────────│────────│────────│
│ ID │ POLICY    │ RULE │ RESOURCE         │ RESULT │ REASON │
│────│───────────│──────│──────────────────│────────│────────│
│ 1  │ no-latest │ tag  │ v1/Pod/shop/good │ Pass   │ Ok     │
│ 2  │ no-latest │ tag  │ v1/Pod/shop/bad  │ Pass   │ Ok     │
│────│───────────│──────│──────────────────│────────│────────│


Test Summary: 2 tests passed and 0 tests failed

"""
    ran = cli("test", ".")
    assert (0, expected, "") == (ran.code, ran.out, ran.err)


def test_another_result_fails_with_what_was_wanted(cli: Run, folder: Path) -> None:
    """The reason names both, the exit code is 1."""
    suite(folder, FILES + "results:\n" + row("bad", "pass"))
    ran = cli("test", ".")
    assert (1, "Error: 1 tests failed\n") == (ran.code, ran.err)
    assert "│ Fail   │ Want pass, got fail │" in ran.out


@pytest.mark.parametrize(
    ("results", "reason", "code"),
    [
        (row("good", "pass", policy="missing"), "Not found", 1),
        (row("good", "pass", rule="missing"), "Excluded", 0),
        (row("missing", "pass"), "Want pass, got fail", 1),
        (row("shop/good", "pass"), "Ok", 0),
        (row("good", "pass", policy="anywhere/no-latest"), "Ok", 0),
    ],
)
def test_rows_are_matched_as_upstream(cli: Run, folder: Path, results: str, reason: str, code: int) -> None:
    """Unknown policies are not found, unknown rules are excluded, unknown resources mean all of them."""
    suite(folder, FILES + "results:\n" + results)
    ran = cli("test", ".")
    assert (code, True) == (ran.code, f"│ {reason} " in ran.out)


@pytest.mark.parametrize(
    ("results", "problem"),
    [
        (row("good", "pass", rule="missing"), "no-latest/missing: the policy has no rule `missing`"),
        (row("good, missing", "pass"), "no-latest/tag: no resource is named `missing`"),
        (
            row("bad", "fail", more=", patchedResources: good.yaml"),
            "no-latest/tag: `v1/Pod/shop/bad`: `good.yaml` does not hold it",
        ),
        (
            row("bad", "fail", more=", generatedResource: good.yaml"),
            "no-latest/tag: `good.yaml`: `shop/Pod/good` was not generated",
        ),
    ],
)
def test_strict_names_checks_that_prove_nothing(cli: Run, folder: Path, results: str, problem: str) -> None:
    """They pass without --strict, and fail with it, with file and line."""
    suite(folder, FILES + "results:\n" + results)
    assert 0 == cli("test", ".").code
    ran = cli("test", ".", "--strict")
    assert (1, True) == (ran.code, f"  kyverno-test.yaml: line 7: {problem}\n" in ran.out)
    assert "Error: 1 vacuous checks found by --strict\n" == ran.err


def test_strict_refuses_rows_of_excluded_resources_and_invalid_policies(cli: Run, folder: Path) -> None:
    """A rule that never matched and an invalid policy both count as vacuous checks."""
    text = HEAD + "policies: [latest.yaml, invalid.yaml]\nresources: [namespace.yaml, good.yaml]\nresults:\n"
    suite(folder, text + row("shop", "pass") + row("good", "pass", policy="broken"))
    ran = cli("test", ".")
    assert 0 == ran.code
    assert "│ Pass   │ Excluded       │" in ran.out
    assert "│ Skip   │ Invalid Policy │" in ran.out
    ran = cli("test", ".", "--strict")
    assert ["Error: 2 vacuous checks found by --strict"] == ran.err.splitlines()[1:]
    assert "no rule `tag` of the policy judged it" in ran.out


def test_a_policy_that_is_not_valid_has_a_row_per_resource(cli: Run, folder: Path) -> None:
    """As upstream has it: skipped, and counted with the tests that passed; only --strict fails."""
    text = HEAD + "policies: [invalid.yaml]\nresources: [good.yaml, namespace.yaml]\nresults:\n"
    several = row("good", "pass", policy="broken").replace("[good]", "[good, shop, missing]")
    suite(folder, text + several)
    ran = cli("test", ".")
    assert ran.code == 0
    assert ran.out.count("│ Skip   │ Invalid Policy │") == 2
    assert "Test Summary: 2 tests passed and 0 tests failed\n" in ran.out
    assert ["Error: 3 vacuous checks found by --strict"] == cli("test", ".", "--strict").err.splitlines()[1:]


def test_strict_refuses_a_suite_without_results(cli: Run, folder: Path) -> None:
    """Such a suite is passed over in silence otherwise, unless it is the only one."""
    suite(folder, FILES)
    assert 0 == cli("test", ".", "--allow-empty").code
    assert "kyverno-test.yaml: the test has no results" in cli("test", ".", "--strict").out


def test_strict_accepts_a_good_suite(cli: Run, folder: Path) -> None:
    """The output is the same with and without."""
    suite(folder, PASSING)
    assert cli("test", ".") == cli("test", ".", "--strict")


def test_a_policy_of_an_unknown_kind_is_an_error_of_its_suite(cli: Run, folder: Path) -> None:
    """One clear line; the other suites are still run."""
    (folder / "future.yaml").write_text((folder / "cel.yaml").read_text().replace("ValidatingPolicy", "FuturePolicy"))
    text = HEAD + "policies: [../future.yaml]\nresources: [../good.yaml]\nresults:\n" + row("good", "pass")
    suite(folder, text, "a/t.yaml")
    suite(folder, PASSING, "t.yaml")
    ran = cli("test", ".", "-f", "t.yaml")
    assert 1 == ran.code
    assert "Error: failed to run test a/t.yaml (failed to load policies (" in ran.err
    assert "FuturePolicy" in ran.err
    assert "Test Summary: 2 tests passed and 0 tests failed" in ran.out


def test_files_that_can_not_be_loaded_are_listed_and_the_others_run(cli: Run, folder: Path) -> None:
    """Unknown fields, broken YAML and the deprecated schema are load errors."""
    suite(folder, PASSING, "ok/kyverno-test.yaml")
    (folder / "ok/latest.yaml").write_text((folder / "latest.yaml").read_text())
    for name in ("good", "bad"):
        (folder / f"ok/{name}.yaml").write_text((folder / f"{name}.yaml").read_text())
    suite(folder, FILES + "colour: red\n", "unknown/kyverno-test.yaml")
    suite(folder, "a: [", "broken/kyverno-test.yaml")
    suite(folder, "name: old\npolicies: []\n", "old/kyverno-test.yaml")
    ran = cli("test", ".")
    assert (1, "Error: found 3 errors after loading tests\n") == (ran.code, ran.err)
    assert "Test errors:\n  Path: broken/kyverno-test.yaml\n    Error: " in ran.out
    assert "    Error: test file old/kyverno-test.yaml uses a deprecated schema — please migrate" in ran.out
    assert "unknown field `colour`" in ran.out
    assert "Test Summary: 2 tests passed and 0 tests failed" in ran.out


def test_a_missing_resource_file_fails_the_run_and_the_rest_is_judged(cli: Run, folder: Path) -> None:
    """Kyverno only prints a warning."""
    suite(folder, PASSING.replace("bad.yaml]", "bad.yaml, gone.yaml]"))
    ran = cli("test", ".")
    assert (1, True) == (ran.code, "2 tests passed" in ran.out)
    assert "failed to load resources (`gone.yaml` does not exist)" in ran.err


def test_a_missing_policy_file_ends_its_suite(cli: Run, folder: Path) -> None:
    """Nothing is judged with fewer policies than were named."""
    suite(folder, PASSING.replace("[latest.yaml]", "[latest.yaml, gone.yaml]"))
    ran = cli("test", ".")
    assert 1 == ran.code
    assert "failed to run test kyverno-test.yaml (failed to load policies (`gone.yaml` does not exist))" in ran.err


def test_every_file_that_cannot_be_loaded_is_one_error(cli: Run, folder: Path) -> None:
    """Missing files and documents that are no policies, each on a line and in the machine's formats."""
    (folder / "typo.yaml").write_text((folder / "latest.yaml").read_text().replace("rules:", "ruels:"))
    suite(folder, PASSING.replace("[latest.yaml]", "[gone.yaml, typo.yaml, lost.yaml]"))
    ran = cli("test", ".", "-o", "json")
    lines = [line for line in ran.err.splitlines() if line.startswith("Error: failed to run test")]
    assert (1, 3) == (ran.code, len(lines))
    for line, file in zip(lines, ("`gone.yaml`", "`lost.yaml`", "typo.yaml:10:3"), strict=True):
        assert f"(failed to load policies ({file}" in line
    assert ["gone.yaml", "lost.yaml", "typo.yaml"] == [each["file"] for each in json.loads(ran.out)["errors"]]


@pytest.mark.parametrize(
    ("selector", "rows"),
    [
        ("policy=no-*", 2),
        ("policy=other", 0),
        ("rule=t?g", 2),
        ("rule=x", 0),
        ("resource=bad", 1),
        ("resource=b*", 1),
        ("policy=*, rule=*, resource=*", 2),
    ],
)
def test_the_selector_chooses_rows(cli: Run, folder: Path, selector: str, rows: int) -> None:
    """Policy, rule and resource with wildcards; a suite without rows is not run."""
    suite(folder, PASSING)
    ran = cli("test", ".", "-t", selector)
    assert (0 if rows else 1, True) == (ran.code, f"Test Summary: {rows} tests passed" in ran.out)
    assert bool(rows) == ("Loading test" in ran.out)


@pytest.mark.parametrize(
    ("results", "words", "text"),
    [
        ("results:\n", ("-t", "policy=other"), "--test-case-selector selects none of 2 rows"),
        ("", (), "the tests have no results to check"),
    ],
)
def test_a_run_without_rows_fails(cli: Run, folder: Path, results: str, words: tuple[str, ...], text: str) -> None:
    """With --allow-empty it is a note, unless another flag needs rows."""
    suite(folder, PASSING if results else FILES + "results: []\n")
    ran = cli("test", ".", *words)
    assert (1, f"Error: {text}\n") == (ran.code, ran.err)
    ran = cli("test", ".", *words, "--allow-empty")
    assert (0, f"note: {text}\n") == (ran.code, ran.err)
    for flag in ("--strict", "--coverage --fail-under=1", "--mutate --fail-under=1"):
        ran = cli("test", ".", *words, "--allow-empty", *flag.split())
        assert 1 == ran.code
        assert text in ran.err


def test_a_bad_part_of_the_selector_fails_a_strict_run(cli: Run, folder: Path) -> None:
    """It chooses other rows than its author meant."""
    suite(folder, PASSING)
    ran = cli("test", ".", "--strict", "-t", "colour=red")
    assert (1, "Error: 1 vacuous checks found by --strict\n") == (ran.code, ran.err)


def test_bad_parts_of_the_selector_are_listed_and_ignored(cli: Run, folder: Path) -> None:
    """The good parts hold."""
    suite(folder, PASSING)
    ran = cli("test", ".", "--test-case-selector", "colour=red,resource=bad,x")
    assert "\nFilter errors:\n  Error: invalid test-case-selector `colour=red`" in ran.out
    assert "  Error: invalid test-case-selector `x`: expected KEY=VALUE" in ran.out
    assert "Test Summary: 1 tests passed" in ran.out


def test_output_as_json_and_yaml_lists_rows(cli: Run, folder: Path) -> None:
    """Messages are there only with --detailed-results."""
    suite(folder, FILES + "results:\n" + row("bad", "pass"))
    expected = {
        "ID": 1,
        "POLICY": "no-latest",
        "REASON": "Want pass, got fail",
        "RESOURCE": "v1/Pod/shop/bad",
        "RESULT": "Fail",
        "RULE": "tag",
    }
    summary = {"pass": 0, "fail": 1, "error": 0}
    for form in ("json", "yaml"):
        (document,) = load_documents(cli("test", ".", "-o", form).out)
        assert {"results": [expected], "errors": [], "summary": summary} == document.value
    detailed = json.loads(cli("test", ".", "-o", "json", "--detailed-results").out)["results"]
    assert "validation error: no latest. rule tag failed at path /spec/containers/0/image/" == detailed[0]["Message"]


def test_output_as_markdown_is_a_table(cli: Run, folder: Path) -> None:
    """The header has a blank at its end, as upstream."""
    suite(folder, FILES + "results:\n" + row("good", "pass"))
    expected = """\
| ID | POLICY | RULE | RESOURCE | RESULT | REASON | 
|----|--------|------|----------|--------|--------|
| 1 | no-latest | tag | v1/Pod/shop/good | Pass | Ok |
"""  # noqa: W291 - so it is
    assert expected == cli("test", ".", "--output-format", "markdown").out


def test_output_as_junit_is_well_formed(cli: Run, folder: Path) -> None:
    """Names are escaped; failures carry reason and details."""
    suite(folder, FILES + "results:\n" + row("bad", "pass", rule="tag") + row("good", "pass", policy='"a<b&"'))
    root = ET.fromstring(cli("test", ".", "-o", "junit", "--detailed-results").out)  # noqa: S314 - our own text
    assert {"tests": "2", "failures": "2", "errors": "0"} == root.attrib
    assert ["no-latest", "a<b&"] == [each.get("name") for each in root]
    failure = root.find("testsuite/testcase/failure")
    assert failure is not None
    assert "Want pass, got fail" == failure.get("message")
    assert "Message: validation error: no latest." in str(failure.text)


@pytest.mark.parametrize("form", ["json", "yaml", "junit", "markdown"])
def test_every_format_is_one_document_about_all_suites(cli: Run, folder: Path, form: str) -> None:
    """With the errors of suites that cannot be read and of files that are missing; the log is on stderr."""
    rows = FILES + "results:\n" + row("good", "pass") + row("bad", "fail")
    for name, text in (("a", rows), ("b", rows.replace("good.yaml", "absent.yaml")), ("c", "kind: [1\n")):
        (folder / name).mkdir()
        (folder / name / "kyverno-test.yaml").write_text(text.replace("latest.yaml", "../latest.yaml"))
    for name in ("good.yaml", "bad.yaml"):
        (folder / "a" / name).write_text((folder / name).read_text())
    ran = cli("test", ".", "-o", form)
    assert (1, True, True) == (ran.code, "Loading test" in ran.err, "Test Summary" in ran.err)
    places = [str(Path("b") / "absent.yaml"), str(Path("c") / "kyverno-test.yaml")]
    assert [True, True] == [place in ran.out for place in places]
    match form:
        case "json" | "yaml":
            (document,) = load_documents(ran.out)
            assert len(document.value["errors"]) == document.value["summary"]["error"] >= 2
        case "junit":
            root = ET.fromstring(ran.out)  # noqa: S314 - our own text
            assert int(root.get("errors", "")) == len([*root.iter("error")]) >= 2


def test_an_expected_file_that_is_missing_is_reported_though_its_row_is_excluded(cli: Run, folder: Path) -> None:
    """Nothing was compared with it, so that a typing error would never show."""
    patched = row("good", "pass", rule="absent", more=", patchedResources: nowhere.yaml")
    suite(folder, FILES + "results:\n" + patched)
    ran = cli("test", ".")
    assert (1, True) == (ran.code, "`nowhere.yaml` does not exist" in ran.err)


def test_an_unknown_output_format_is_refused(cli: Run, folder: Path) -> None:
    """Before anything is run."""
    assert 1 == cli("test", ".", "-o", "pdf").code


def test_fail_only_sums_up_the_failures(cli: Run, folder: Path) -> None:
    """The table at the end is the only one, and numbered anew."""
    suite(folder, FILES + "results:\n" + row("good", "pass") + row("bad", "pass"))
    ran = cli("test", ".", "--fail-only")
    before, _, summary = ran.out.partition("\nTest Summary: ")
    assert "│" not in before
    assert summary.startswith("1 out of 2 tests failed\n\nAggregated Failed Test Cases : \n│────│")
    assert "│ 1  │ no-latest │ tag  │ v1/Pod/shop/bad │" in summary


def test_detailed_results_show_the_difference(cli: Run, folder: Path) -> None:
    """Between the expected and the actual object."""
    (folder / "want.yaml").write_text((folder / "good.yaml").read_text().replace("1.2", "1.3"))
    suite(folder, FILES + "results:\n" + row("good", "pass", more=", patchedResources: want.yaml"))
    ran = cli("test", ".", "--detailed-results")
    assert 1 == ran.code
    for text in ("Resource diff", "Patched resource didn't match", "<   - image: nginx:1.3", ">   - image: nginx:1.2"):
        assert text in ran.out


@pytest.mark.parametrize(
    ("name", "flags", "code"),
    [
        ("pyverno", (), 1),
        ("pyverno", ("--allow-empty",), 0),
        ("pyverno", ("--allow-empty", "--strict"), 1),
        ("kyverno", (), 0),
        ("kyverno", ("--require-tests",), 1),
    ],
)
def test_a_run_without_suites_fails(
    cli: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, flags: tuple[str, ...], code: int
) -> None:
    """Kyverno's command ends with 0; the text is printed in any case."""
    monkeypatch.setattr("sys.argv", [name])
    ran = cli("test", ".", *flags)
    assert (code, "\nNo test yamls available\n") == (ran.code, ran.out)
    assert ("Error: no tests found\n" if code else "") == ran.err


def test_a_suite_that_is_no_object_has_no_hint_to_rewrite_it(cli: Run, folder: Path) -> None:
    """Nothing could rewrite a list."""
    suite(folder, "- a\n")
    ran = cli("test", ".")
    assert (1, "") == (ran.code, "pyverno fix" * ran.out.count("pyverno fix"))
    assert "kyverno-test.yaml:1:1: expected an object, found a list\n" in ran.out


def test_at_least_one_place_is_needed_and_must_exist(cli: Run) -> None:
    """With Kyverno's texts."""
    assert "Error: requires at least 1 arg(s), only received 0\n" == cli("test").err
    ran = cli("test", "gone")
    assert (1, "Error: `gone` does not exist\n") == (ran.code, ran.err)


def test_suites_are_found_below_hidden_folders_and_by_file_name(cli: Run, folder: Path) -> None:
    """Several documents of one file are several suites."""
    for name in ("latest", "good", "bad"):
        target = folder / ".hidden/deep" / f"{name}.yaml"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text((folder / f"{name}.yaml").read_text())
    suite(folder, f"{PASSING}---\n{PASSING}", ".hidden/deep/cases.yaml")
    assert "Test Summary: 4 tests passed" in cli("test", ".", "--file-name", "cases.yaml").out
    assert "Test Summary: 4 tests passed" in cli("test", ".hidden/deep/cases.yaml").out


def test_workers_do_not_change_the_output(cli: Run, folder: Path) -> None:
    """Order and text are the same with one and with two processes."""
    for number in range(4):
        suite(folder, PASSING, f"s{number}.d/kyverno-test.yaml")
        for name in ("latest", "good", "bad"):
            (folder / f"s{number}.d/{name}.yaml").write_text((folder / f"{name}.yaml").read_text())
    assert cli("test", ".") == cli("test", ".", "--workers", "2")
    assert "--workers must be at least 1" in cli("test", ".", "--workers", "0").err


def test_each_row_has_its_own_operation(cli: Run, folder: Path) -> None:
    """An update of an object that failed before is skipped; another word is refused."""
    suite(folder, FILES + "results:\n" + row("bad", "skip", more=", operation: UPDATE"))
    assert 0 == cli("test", ".").code
    suite(folder, FILES + "results:\n" + row("bad", "fail", more=", operation: PATCH"))
    assert 'invalid operation "PATCH", must be one of CREATE, UPDATE, DELETE' in cli("test", ".").err


def test_exceptions_values_and_users_are_loaded(cli: Run, folder: Path) -> None:
    """The loading lines count exceptions and mention user infos."""
    (folder / "user.yaml").write_text("apiVersion: cli.kyverno.io/v1alpha1\nkind: UserInfo\nuserInfo: {username: u}\n")
    text = FILES + "exceptions: [exception.yaml]\nuserinfo: user.yaml\nvalues: {globalValues: {a: 1}}\nresults:\n"
    suite(folder, text + row("bad", "skip"))
    ran = cli("test", ".")
    assert 0 == ran.code
    assert "  Loading user infos ...\n" in ran.out
    assert "with 1 exception ...\n" in ran.out


def test_generated_objects_are_compared(cli: Run, folder: Path) -> None:
    """The row names the generated object."""
    (folder / "want.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\ndata: {a: b}\n"
    )
    text = HEAD + "policies: [generate.yaml]\nresources: [namespace.yaml]\nresults:\n"
    suite(
        folder, text + row("shop", "pass", policy="quota", rule="default-quota", more=", generatedResource: want.yaml")
    )
    ran = cli("test", ".", "--strict")
    assert (0, True) == (ran.code, "│ v1/ConfigMap/shop/settings │ Pass   │ Ok " in ran.out)


@pytest.mark.parametrize(("field", "mode"), [("httpPayloads", "HTTP"), ("envoyPayloads", "Envoy")])
def test_authorization_requests_are_named_by_their_paths_in_rows(cli: Run, folder: Path, field: str, mode: str) -> None:
    """Policies of their mode answer them; what is no such request ends the suite."""
    (folder / "open.yaml").write_text(
        "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: open}\n"
        f"spec: {{evaluation: {{mode: {mode}}}, validations: [{{expression: {mode.lower()}.Allowed().Response()}}]}}\n"
    )
    (folder / "p.json").write_text('{"attributes": {}}')
    rows = "results:\n- {policy: open, isValidatingPolicy: true, resources: [./p.json], result: pass}\n"
    suite(folder, HEAD + f"policies: [open.yaml]\n{field}: [./p.json]\n" + rows)
    ran = cli("test", ".", "--strict")
    assert (0, True) == (ran.code, "1 tests passed and 0 tests failed" in ran.out), ran.out + ran.err
    assert f"  Loading {mode} payloads ...\n" in ran.out
    (folder / "p.json").write_text('{"attributes": 1}')
    assert "payload from p.json: `attributes` must be an object" in cli("test", ".").err


def test_a_json_payload_is_named_by_its_path_in_rows(cli: Run, folder: Path) -> None:
    """Policies made for payloads judge it."""
    (folder / "colours.yaml").write_text(
        "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: colours}\n"
        "spec: {evaluation: {mode: JSON}, validations: [{expression: object.colour == 'red'}]}\n"
    )
    (folder / "p.json").write_text('{"colour": "blue"}')
    rows = "results:\n- {policy: colours, isValidatingPolicy: true, resources: [p.json], result: fail}\n"
    suite(folder, HEAD + "policies: [colours.yaml]\njsonPayload: p.json\n" + rows)
    ran = cli("test", ".")
    assert (0, True) == (ran.code, "1 tests passed and 0 tests failed" in ran.out), ran.out + ran.err


def test_a_git_repository_is_cloned_and_its_paths_shown(
    cli: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No output holds the path of the temporary folder."""
    repository = folder / "group" / "repo"
    repository.mkdir(parents=True)
    for name in ("latest", "good", "bad"):
        (repository / f"{name}.yaml").write_text((folder / f"{name}.yaml").read_text())
    suite(repository, PASSING)
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
    for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "x"), ("branch", "-M", "main")):
        subprocess.run(["git", *identity, *words], cwd=repository, check=True, capture_output=True)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.file://{folder}/.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "https://git.example.org/")
    ran = cli("test", "https://git.example.org/group/repo", "--git-branch", "main", "--remove-color")
    assert 0 == ran.code, ran.err
    assert "Loading test  ( kyverno-test.yaml ) ...\n" in ran.out
    bad = cli("test", "https://git.example.org/group")
    assert (1, True) == (bad.code, "Error loading tests: failed to parse URL" in bad.out)


def test_new_rows_have_the_line_ends_of_their_file(cli: Run, folder: Path) -> None:
    """A file of Windows must not become a mixture."""
    place = folder / "kyverno-test.yaml"
    place.write_bytes(b"\xef\xbb\xbf" + (FILES + "results:\n" + row("good", "pass")).replace("\n", "\r\n").encode())
    assert 0 == cli("test", ".", "--write").code
    content = place.read_bytes()
    assert (content.count(b"\n"), True) == (content.count(b"\r\n"), content.startswith(b"\xef\xbb\xbf"))
    assert "2 tests passed" in cli("test", ".").out


@pytest.mark.parametrize(
    ("results", "reason"),
    [
        (
            row("good", "pass", policy="no-latst") + row("bad", "fail", policy="no-latst"),
            "no-latst/tag: the test loads no policy `no-latst`: did you mean `no-latest`?",
        ),
        (row("good", "pass", policy="unlike"), "unlike/tag: the test loads no policy `unlike`"),
        (
            row("good", "pass", policy="cel", rule="x"),
            "cel/x: the policy has no result for the resource; `pyverno explain --all` shows why a rule does not match",
        ),
        (row("godo", "pass", policy="cel", rule="x"), "cel/x: no resource is named `godo`"),
    ],
)
@pytest.mark.parametrize("flags", [(), ("--fail-only",), ("-o", "json")], ids=["text", "fail-only", "json"])
def test_a_row_that_is_not_found_has_a_reason(
    cli: Run, folder: Path, results: str, reason: str, flags: tuple[str, ...]
) -> None:
    """The table has only Kyverno's words `Not found`; stderr says what the suite lacks, once for equal reasons."""
    (folder / "cel.yaml").write_text(_CEL)
    suite(folder, HEAD + "policies: [latest.yaml, cel.yaml]\nresources: [good.yaml, bad.yaml]\nresults:\n" + results)
    ran = cli("test", ".", *flags)
    assert (1, [f"note: kyverno-test.yaml: {reason}"]) == (
        ran.code,
        [line for line in ran.err.splitlines() if line.startswith(("note: ", "warning: "))],
    )
    assert "Not found" in ran.out


def test_a_policy_that_is_not_valid_is_warned_about_even_if_no_row_names_it(cli: Run, folder: Path) -> None:
    """Its rows are green, as in Kyverno: only the error shows that they prove nothing."""
    suite(
        folder, HEAD + "policies: [latest.yaml, invalid.yaml]\nresources: [good.yaml]\nresults:\n" + row("good", "pass")
    )
    ran = cli("test", ".")
    start = (
        "warning: kyverno-test.yaml: the policy `broken` is not valid, so that its rows prove nothing: invalid.yaml:"
    )
    assert (0, True, 1) == (ran.code, ran.err.startswith(start), ran.err.count("warning: "))
