"""`pyverno lint`: findings in every format, with exit codes, suppressions and corrections."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.linting import cel_policy, policy, rule

if TYPE_CHECKING:
    from tests.support.commandline import Run

LIBRARY = Path(__file__).parents[4] / "policies"
Lint = Callable[..., tuple[int, str, str]]
DENY = "validate: {message: m, deny: {}}"
WRONG = policy(rule(DENY, match="{any: [{resources: {kinds: [deployment]}}]}  # all of them"))


@pytest.fixture
def run(cli: Run) -> Lint:
    """Runs a command; returns its exit code, stdout and stderr."""

    def run(*words: str) -> tuple[int, str, str]:
        ran = cli(*words)
        return ran.code, ran.out, ran.err

    return run


@pytest.fixture
def wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with one finding, which has a fix."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "p.yaml"
    path.write_text(WRONG)
    return path


def test_a_finding_is_shown_with_its_line_and_a_mark(run: Lint, wrong: Path) -> None:
    """Place, code and message, as compilers have it; then a summary."""
    code, out, err = run("lint", "p.yaml")
    expected = (
        "p.yaml:8:40: PV101 no API has the kind `deployment`: did you mean `Deployment`?\n"
        "        match: {any: [{resources: {kinds: [deployment]}}]}  # all of them\n"
        "                                           ^\n"
        "Found 1 problem in 1 document; 1 can be corrected with --fix.\n"
    )
    assert (1, expected, "") == (code, out, err)


def test_quiet_prints_the_findings_alone(run: Lint, wrong: Path) -> None:
    """One line each."""
    _, out, _ = run("lint", "p.yaml", "-q")
    assert "p.yaml:8:40: PV101 no API has the kind `deployment`: did you mean `Deployment`?\n" == out


def test_without_findings_the_exit_code_is_zero_and_the_documents_are_counted(run: Lint, wrong: Path) -> None:
    """A run without findings still prints the number of documents."""
    wrong.write_text(policy(rule(DENY)))
    assert (0, "No problems in 1 document.\n", "") == run("lint", "p.yaml")


def test_a_fix_changes_one_word_of_the_file(run: Lint, wrong: Path) -> None:
    """Comments, quotes and the mode of the file stay."""
    wrong.chmod(0o640)
    code, out, _ = run("lint", "p.yaml", "--fix")
    assert (0, "Fixed 1. No problems in 1 document.\n") == (code, out)
    assert (WRONG.replace("[deployment]", "[Deployment]"), 0o640) == (wrong.read_text(), wrong.stat().st_mode & 0o777)


@pytest.mark.parametrize(("mark", "end"), [("", "\r\n"), ("\ufeff", "\n"), ("\ufeff", "\r\n")])
def test_a_fix_keeps_byte_order_mark_and_line_ends(run: Lint, wrong: Path, mark: str, end: str) -> None:
    """Bytes that are not corrected stay as they are, and links stay links."""
    wrong.rename(wrong.with_name("file"))
    wrong.symlink_to("file")
    wrong.write_bytes((mark + WRONG.replace("\n", end)).encode())
    assert 0 == run("lint", "p.yaml", "--fix")[0]
    fixed = WRONG.replace("[deployment]", "[Deployment]").replace("\n", end)
    assert ((mark + fixed).encode(), True) == (wrong.read_bytes(), wrong.is_symlink())


@pytest.mark.parametrize(
    "comment", ["# pyverno: ignore", "# pyverno: ignore[PV101]", "# pyverno: ignore[PV2, PV1] on purpose"]
)
def test_a_comment_suppresses_the_findings_of_its_line_or_the_next(run: Lint, wrong: Path, comment: str) -> None:
    """Beside the text, and above it."""
    wrong.write_text(WRONG.replace("# all of them", comment))
    beside = run("lint", "p.yaml")
    wrong.write_text(WRONG.replace("    match:", f"    {comment}\n    match:"))
    above = run("lint", "p.yaml")
    assert (0, 0) == (beside[0], above[0])


def test_a_comment_for_another_code_suppresses_nothing(run: Lint, wrong: Path) -> None:
    """Codes are compared."""
    wrong.write_text(WRONG.replace("# all of them", "# pyverno: ignore[PV2]"))
    assert 1 == run("lint", "p.yaml")[0]


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (["--select", "PV1"], 1),
        (["--select", "PV2"], 0),
        (["--ignore", "PV101"], 0),
        (["--select", "PV101", "--ignore", "PV1"], 1),
        (["--ignore", "pv"], 2),  # no check is left
    ],
)
def test_checks_are_chosen_by_the_beginnings_of_their_codes(
    run: Lint, wrong: Path, flags: list[str], code: int
) -> None:
    """The longer beginning decides."""
    assert code == run("lint", "p.yaml", *flags)[0]


def test_json_holds_place_code_and_counts(run: Lint, wrong: Path) -> None:
    """`-o` is another spelling of `--format`."""
    _, out, _ = run("lint", "p.yaml", "-o", "json")
    [finding] = json.loads(out)["findings"]
    assert {
        "code": "PV101",
        "name": "unknown-kind",
        "severity": "error",
        "message": "no API has the kind `deployment`: did you mean `Deployment`?",
        "file": "p.yaml",
        "line": 8,
        "column": 40,
        "path": "spec.rules[0].match.any[0].resources.kinds[0]",
        "policy": "ClusterPolicy/p",
        "fixable": True,
    } == finding
    assert {"documents": 1, "error": 1, "warning": 0, "fixed": 0} == json.loads(out)["summary"]


@pytest.mark.parametrize(
    ("style", "text"),
    [
        ("github", "::error file=p.yaml,line=8,col=40,title=PV101::ClusterPolicy/p: no API has the kind"),
        ("junit", "PV101"),
        ("sarif", '"ruleId": "PV101"'),
    ],
)
def test_formats_of_other_commands_hold_the_code_and_the_place(run: Lint, wrong: Path, style: str, text: str) -> None:
    """Each finding names the policy and its position."""
    code, out, _ = run("lint", "p.yaml", "--format", style)
    assert (1, True) == (code, text in out)


def test_a_policy_that_does_not_compile_is_a_finding(run: Lint, wrong: Path) -> None:
    """With the code PV002, among the others."""
    wrong.write_text(WRONG.replace("deny: {}", "dney: {}"))
    code, out, _ = run("lint", "p.yaml", "-q")
    assert code == 1
    assert "p.yaml:9:28: PV002 spec.rules[0].validate.dney: unknown field `dney`: did you mean `deny`?\n" == out


def test_a_file_that_cannot_be_read_gives_exit_code_two(run: Lint, wrong: Path) -> None:
    """The others are still linted."""
    Path("broken.yaml").write_text("a: [")
    code, out, err = run("lint", "p.yaml", "broken.yaml", "missing.yaml", "-q")
    assert (2, 2) == (code, len(out.splitlines()))
    assert "PV001" in out and "`missing.yaml` does not exist" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name the files or folders of the policies to lint"),
        (["-", "--fix"], "--fix changes files"),
        (["p.yaml", "--select", "XX"], "no check has a code that begins with `XX`"),
        (["p.yaml", "--crd", "p.yaml"], "the files of --crd hold no CustomResourceDefinition"),
        (["--explain", "PV1O1"], "there is no check `PV1O1`: did you mean `PV101`?"),
    ],
)
def test_flags_that_cannot_be_used_give_exit_code_two(run: Lint, wrong: Path, words: list[str], message: str) -> None:
    """With the reason on stderr."""
    code, out, err = run("lint", *words)
    assert (2, "", True) == (code, out, message in err)


def test_every_check_can_be_listed_and_explained(run: Lint) -> None:
    """By code and by name."""
    _, out, _ = run("lint", "--list")
    for line in out.splitlines():
        code, _, rest = line.partition("  ")
        assert (0, True) == (run("lint", "--explain", code)[0], bool(rest.strip()))
    assert run("lint", "--explain", "PV101") == run("lint", "--explain", "unknown-kind")


def test_a_policy_in_cel_is_linted(run: Lint, wrong: Path) -> None:
    """At the character inside the expression."""
    wrong.write_text(
        cel_policy("validations:\n- expression: |\n    object.spec.replicas > 1 &&\n      object.spec.replica < 3")
    )
    _, out, _ = run("lint", "p.yaml", "-q")
    assert "p.yaml:11:21: PV105 Deployment has no field `replica` here: did you mean `replicas`?\n" == out


def test_our_library_has_no_findings(run: Lint) -> None:
    """A finding in the library would be a false positive or a mistake in the policy."""
    code, out, err = run("lint", str(LIBRARY), "-q")
    assert (0, "", "") == (code, out, err)


def test_standard_input_cannot_be_watched(cli: Run) -> None:
    """It has no file that changes."""
    ran = cli("lint", "--watch", "-")
    assert (2, "Error: --watch and standard input cannot be used together\n") == (ran.code, ran.err)


def test_a_selection_without_any_check_is_an_error(cli: Run) -> None:
    """It would find nothing in any policy."""
    ran = cli("lint", "latest.yaml", "--select", "PV1", "--ignore", "PV1")
    assert (2, "Error: --select and --ignore leave no check to run\n") == (ran.code, ran.err)


def test_templates_of_charts_are_skipped_with_a_note(run: Lint, tmp_path: Path) -> None:
    """They are no YAML before they are rendered; a policy that cannot be read is still a finding."""
    chart = tmp_path / "apps" / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: c\nversion: 1.0.0\n")
    (chart / "templates" / "pod.yaml").write_text("kind: Pod\nmetadata:\n  {{- include 'labels' . | nindent 2 }}\n")
    broken = chart.parent / "broken.yaml"
    broken.write_text("apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nspec: [\n")
    code, out, err = run("lint", str(chart.parent))
    assert 2 == code
    assert f"{broken}:4:1: PV001 expected a value here\nFound 1 problem in 0 documents.\n" == out
    skipped = f"{chart}/Chart.yaml (a Helm chart), {chart}/templates (Helm templates)"
    assert f"note: skipped 2 files: {skipped}\n" == err
