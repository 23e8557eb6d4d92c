"""`pyverno analyze`: findings with their objects, costs, formats and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pyverno.compiler.analysis.sampling import Sample
from tests.support.analysis import WITHOUT_LATEST, example_of, policy
from tests.support.commandline import Run

FEW = ("-n", "40")


@pytest.fixture
def files(folder: Path) -> None:
    """Files with two mutations that undo each other, and with a policy that has no fault."""
    (folder / "bad.yaml").write_text(example_of("PA103"))
    (folder / "good.yaml").write_text(policy(WITHOUT_LATEST, "good"))


@pytest.mark.usefixtures("files")
def test_a_finding_is_shown_with_the_changes_of_its_object(cli: Run) -> None:
    """The object without defaults, and what each rule made of it."""
    ran = cli("analyze", "bad.yaml", *FEW)
    first, *rest = ran.out.splitlines()
    assert (1, "") == (ran.code, ran.err)
    assert "bad.yaml:7:5: PA103 p/tier-gold and p/tier-silver undo each other" == first
    assert "terminationGracePeriodSeconds" not in ran.out
    assert ['    {"op":"replace","path":"/metadata/labels/tier","value":"silver"}'] == [
        line for line in rest if '"value":"silver"' in line
    ]
    assert rest[-1].startswith("Found 1 problem in 1 policy, ")


@pytest.mark.usefixtures("files")
def test_without_a_finding_the_exit_code_is_0(cli: Run) -> None:
    """The summary counts the analyzed policies."""
    ran = cli("analyze", "good.yaml", *FEW)
    assert (0, "") == (ran.code, ran.err)
    assert ran.out.startswith("No problems found in 1 policy, ")


def test_policies_that_cannot_be_read_are_not_called_good(cli: Run) -> None:
    """The error stands alone, without a summary of no policies."""
    ran = cli("analyze", "missing.yaml", *FEW)
    assert (2, "") == (ran.code, ran.out)
    assert "missing.yaml" in ran.err


@pytest.mark.usefixtures("files")
def test_json_holds_witnesses_costs_and_the_seed(cli: Run) -> None:
    """Everything that is needed to repeat it."""
    found = json.loads(cli("analyze", "bad.yaml", *FEW, "--costs", "-o", "json", "--seed", "3").out)
    assert ["PA103"] == [each["code"] for each in found["findings"]]
    assert ["p/tier-gold", "p/tier-silver"] == sorted(each["rule"] for each in found["costs"])
    assert 3 == found["summary"]["seed"]
    assert "ConfigMap" != found["findings"][0]["witnesses"][0]["resource"]["kind"]


@pytest.mark.parametrize("form", ["text", "json"])
def test_pairs_that_were_not_tried_are_counted(
    folder: Path, cli: Run, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """Of four rules that contradict each other there are six pairs; five are left out, not called good."""
    monkeypatch.setattr(Sample.take, "__defaults__", (1,))
    rules = "".join(
        f"""
    - name: r{number}
      match: {{any: [{{resources: {{kinds: [ConfigMap]}}}}]}}
      validate: {{message: m, pattern: {{metadata: {{labels: {{app: v{number}}}}}}}}}"""
        for number in range(4)
    )
    (folder / "many.yaml").write_text(policy(rules))
    ran = cli("analyze", "many.yaml", "-n", "300", "--select", "PA101", "-o", form)
    if form == "text":
        assert "PA101: tried 1 of 6 pairs of rules; analyze fewer policies at once to try all" in ran.out.splitlines()
    else:
        assert [{"code": "PA101", "possible": 6, "tried": 1}] == json.loads(ran.out)["summary"]["leftOut"]


@pytest.mark.usefixtures("files")
def test_too_many_policies_are_refused(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before objects are generated for them."""
    monkeypatch.setattr("pyverno.cli.analyze.run.MOST_POLICIES", 1)
    ran = cli("analyze", "bad.yaml", "good.yaml", *FEW)
    text = "2 policies and exceptions are too many for one analysis, which compares them in pairs: at most 1"
    assert (2, "", f"Error: {text}") == (ran.code, ran.out, ran.err.strip())


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("words", [("--ignore", "PA1"), ("--select", "PA2,PA3")])
def test_checks_are_chosen_by_codes(cli: Run, words: tuple[str, str]) -> None:
    """Or by their beginnings."""
    assert 0 == cli("analyze", "bad.yaml", *FEW, *words).code


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "name the files"),
        (("good.yaml", "--select", "PX"), "no check has a code that begins with `PX`"),
        (("--explain", "lop"), "there is no check `lop`: did you mean `loop`?"),
        (("missing.yaml",), "missing.yaml"),
        (("good.yaml", "-n", "0"), "no object was tried: none was given with --resource, and none could be generated"),
    ],
)
def test_what_cannot_be_used_ends_with_2(cli: Run, words: tuple[str, ...], text: str) -> None:
    """With the reason on stderr."""
    ran = cli("analyze", *words)
    assert 2 == ran.code
    assert text in ran.err


def test_checks_are_listed_and_described(cli: Run) -> None:
    """From the documentation of their modules."""
    assert "PA301  error    loop" in cli("analyze", "--list").out
    assert cli("analyze", "--explain", "loop").out.startswith("PA301 loop (error)\n\nA rule sets itself off")


@pytest.mark.usefixtures("files")
def test_objects_of_recorded_requests_are_objects_to_begin_with(cli: Run, folder: Path) -> None:
    """A policy that matches none of them is reported."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "a"}}
    request = {"uid": "u", "operation": "CREATE", "object": body, "kind": {"group": "", "version": "v1"}}
    (folder / "r.jsonl").write_text(json.dumps({"kind": "AdmissionReview", "request": request}) + "\n")
    ran = cli("analyze", "good.yaml", "--recorded", "r.jsonl", "-n", "0", "--select", "PA402")
    assert 1 == ran.code
    assert "PA402" in ran.out


def test_rules_for_fields_side_by_side_do_not_shadow_each_other(cli: Run) -> None:
    """Objects with both fields set show that one rule refuses what the other allows."""
    ran = cli("analyze", "@pod-security/restricted/require-drop-all-capabilities")
    assert (0, True) == (ran.code, "No problems found" in ran.out)
