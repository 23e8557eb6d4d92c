"""Failures that a run accepts: suppressed in manifests, known to a baseline, below a severity."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support.documents import BAD, LATEST

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commandline import Ran, Run

HEAD = "# pyverno: ignore[no-latest/tag] vendor image, until 2999-12-31\n"


def _statuses(ran: Ran) -> list[tuple[str, str, str]]:
    return [(each["policy"], each["rule"], each["status"]) for each in json.loads(ran.out)["results"]]


def _apply(cli: Run, folder: Path, manifest: str, *flags: str) -> Ran:
    (folder / "pod.yaml").write_text(manifest)
    return cli("apply", "latest.yaml", "-r", "pod.yaml", "--format", "json", *flags)


def _at_image(comment: str, *, above: bool) -> str:
    lines = BAD.splitlines()
    at = next(number for number, line in enumerate(lines) if "image:" in line)
    if above:
        indent = len(lines[at]) - len(lines[at].lstrip(" -"))
        lines.insert(at, f"{' ' * indent}{comment}")
    else:
        lines[at] += f" {comment}"
    return "\n".join(lines) + "\n"


COMMENT = "# pyverno: ignore[no-latest] vendor image"


@pytest.mark.parametrize(
    "manifest",
    [
        HEAD + BAD,
        "---\n" + HEAD + BAD,
        _at_image(COMMENT, above=False),
        _at_image(COMMENT, above=True),
        BAD.replace(
            "metadata:\n", "metadata:\n  annotations:\n    pyverno.io/ignore: '[no-latest/tag] vendor image'\n"
        ),
        "apiVersion: v1\nkind: List\nitems:\n- " + BAD.replace("\n", "\n  ").replace("spec:", COMMENT + "\n  spec:"),
    ],
)
def test_a_suppressed_failure_is_a_skip_with_its_reason(cli: Run, folder: Path, manifest: str) -> None:
    """Above the object, at or above the field, in an annotation, and in an item of a list."""
    ran = _apply(cli, folder, manifest)
    assert (0, [("no-latest", "tag", "skip")]) == (ran.code, _statuses(ran))
    assert json.loads(ran.out)["results"][0]["message"].startswith("suppressed: vendor image (validation error")
    assert "note: 1 failure is suppressed in manifests\n" == ran.err


@pytest.mark.parametrize(
    ("manifest", "rule", "text"),
    [
        (HEAD.replace("2999", "2001") + BAD, "expired-suppression", "has expired on 2001-12-31"),
        (HEAD.replace("2999-12-31", "soon") + BAD, "malformed-suppression", "`soon`, which is no date"),
        (HEAD.replace("[no-latest/tag]", "") + BAD, "malformed-suppression", "names no rule"),
        (HEAD.replace("/tag", "/other") + BAD, "unused-suppression", "`no-latest/other` at pod.yaml:1:1 is not used"),
        (BAD.replace("metadata:", f"{COMMENT}\nmetadata:"), "unused-suppression", "`no-latest` at pod.yaml:3:1"),
    ],
)
def test_what_suppresses_nothing_is_a_finding_beside_the_failure(
    cli: Run, folder: Path, manifest: str, rule: str, text: str
) -> None:
    """Expired, unreadable, of another rule, at another field."""
    ran = _apply(cli, folder, manifest)
    assert (1, [("no-latest", "tag", "fail"), ("pyverno", rule, "warn")]) == (ran.code, _statuses(ran))
    assert text in json.loads(ran.out)["results"][1]["message"]


def test_suppressions_can_be_switched_off_and_must_have_reasons(cli: Run, folder: Path) -> None:
    """`--no-suppressions` and `--require-reason` override the comments in the manifests."""
    assert [("no-latest", "tag", "fail")] == _statuses(_apply(cli, folder, HEAD + BAD, "--no-suppressions"))
    without = _apply(cli, folder, "# pyverno: ignore[no-latest]\n" + BAD, "--require-reason")
    expected = [("no-latest", "tag", "fail"), ("pyverno", "suppression-without-reason", "fail")]
    assert (1, expected) == (without.code, _statuses(without))


def test_a_suppression_for_policies_of_another_run_is_none_of_ours(cli: Run, folder: Path) -> None:
    """It is neither used nor unused here; texts that only look like comments are left alone."""
    ran = _apply(cli, folder, "# pyverno: ignore[other-policy/rule] why\n" + BAD)
    assert [("no-latest", "tag", "fail")] == _statuses(ran)
    data = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: |\n    # pyverno: ignore[no-latest]\n    b\n"
    )
    assert [("no-latest", "tag", "fail")] == _statuses(_apply(cli, folder, BAD + "---\n" + data))


def test_an_error_is_never_suppressed(cli: Run, folder: Path) -> None:
    """A suppression accepts a failure, not a check that could not be evaluated."""
    broken = LATEST.replace("pattern:", 'pattern: "{{ missing.value }}"\n      ignored:').partition("      ignored:")[0]
    (folder / "latest.yaml").write_text(broken)
    ran = _apply(cli, folder, HEAD + BAD)
    assert 1 == ran.code
    assert "skip" not in [status for _, _, status in _statuses(ran)]


def test_only_new_failures_count_with_a_baseline(cli: Run, folder: Path) -> None:
    """Lines may move; one failure more of the same object is new, and one that is gone is listed."""
    wrote = _apply(cli, folder, BAD, "--baseline", "known.yaml", "--update-baseline")
    assert (0, "note: wrote 1 failure to `known.yaml`\n") == (wrote.code, wrote.err)
    text = (folder / "known.yaml").read_text()
    expected = (
        '- {"field":"/spec/containers/*/image","kind":"Pod","name":"bad","namespace":"shop","rule":"no-latest/tag"}'
    )
    assert expected == text.splitlines()[-1]

    moved = _apply(cli, folder, "# a comment\n\n" + BAD, "--baseline", "known.yaml")
    assert (0, [("no-latest", "tag", "skip")]) == (moved.code, _statuses(moved))
    both = _apply(cli, folder, BAD + "---\n" + BAD.replace("name: bad", "name: worse"), "--baseline", "known.yaml")
    assert (1, ["skip", "fail"]) == (both.code, [status for *_, status in _statuses(both)])
    good = _apply(cli, folder, BAD.replace(":latest", ":1"), "--baseline", "known.yaml")
    assert "note:   no-latest/tag shop/Pod/bad /spec/containers/*/image\n" in good.err
    assert 0 == good.code


def test_a_baseline_is_written_the_same_whatever_the_order(cli: Run, folder: Path) -> None:
    """Sorted, and equal entries are repeated."""
    worse = BAD.replace("name: bad", "name: worse")
    texts = []
    for manifest in (f"{BAD}---\n{worse}---\n{BAD}", f"{worse}---\n{BAD}---\n{BAD}"):
        _apply(cli, folder, manifest, "--baseline", "known.yaml", "--update-baseline")
        texts.append((folder / "known.yaml").read_text())
    assert texts[0] == texts[1]
    assert 3 == texts[0].count("no-latest/tag")


def test_a_baseline_that_is_missing_or_of_another_form_is_an_error(cli: Run, folder: Path) -> None:
    """It never counts as empty; and no run with unreadable input writes one."""
    missing = _apply(cli, folder, BAD, "--baseline", "none.yaml")
    assert (1, True) == (missing.code, "--update-baseline writes it" in missing.err)
    (folder / "wrong.yaml").write_text("findings: []\n")
    assert "is not a baseline of version 1" in _apply(cli, folder, BAD, "--baseline", "wrong.yaml").err
    (folder / "broken.yaml").write_text("a: [\n")
    flags = ("--baseline", "new.yaml", "--update-baseline")
    ran = cli("apply", "latest.yaml", "-r", "bad.yaml,broken.yaml", *flags)
    assert (1, False) == (ran.code, (folder / "new.yaml").exists())
    assert "the baseline is not written" in ran.err


def test_failures_below_a_severity_are_warnings(cli: Run, folder: Path) -> None:
    """The policy's severity is high; one without a severity always counts."""
    assert [("no-latest", "tag", "warn")] == _statuses(_apply(cli, folder, BAD, "--fail-on", "critical"))
    assert 1 == _apply(cli, folder, BAD, "--severity-threshold", "high").code
    text = LATEST.replace("    policies.kyverno.io/severity: high\n", "")
    (folder / "latest.yaml").write_text(text)
    assert 1 == _apply(cli, folder, BAD, "--fail-on", "critical").code


SHAPE = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: "3"
  selector: {matchLabels: {app: web}}
  templte: {}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: nginx:1
        resources: {limits: {cpu: 100z}}
        ports:
        - hostPort: 80
"""


def test_schemas_find_unknown_fields_and_wrong_types_with_their_places(cli: Run, folder: Path) -> None:
    """And required fields, and quantities; each is a finding that can be suppressed."""
    ran = _apply(cli, folder, SHAPE, "--validate-schemas")
    found = {
        each["rule"] + " " + str(each["resource"]["line"]): each["message"]
        for each in json.loads(ran.out)["results"]
        if each["policy"] == "pyverno"
    }
    expected = {
        "wrong-type 5": "`replicas` must be an integer, is a string",
        "unknown-field 7": "unknown field `templte`: did you mean `template`?",
        "wrong-value 14": "`cpu` is no quantity: `100z`",
        "missing-field 16": "the field `containerPort` is missing in `ports[0]`",
    }
    assert (1, expected) == (ran.code, found)
    accepted = _apply(cli, folder, "# pyverno: ignore[pyverno] later\n" + SHAPE, "--validate-schemas")
    assert 0 == accepted.code


def test_kyvernos_command_line_knows_none_of_it(cli: Run, folder: Path) -> None:
    """Comments are comments there."""
    (folder / "pod.yaml").write_text(HEAD + BAD)
    assert 1 == cli("apply", "latest.yaml", "-r", "pod.yaml", "--compat", "kyverno").code


def _git(*words: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *words], check=True, capture_output=True)


def test_only_changed_resources_are_judged(cli: Run, folder: Path) -> None:
    """Unless a policy changed; the others are still there for rules that look at them."""
    _git("init", "-q")
    _git("add", ".")
    _git("commit", "-qm", "first")
    flags = ("latest.yaml", "-r", "bad.yaml,good.yaml", "--format", "json", "--changed-since", "HEAD")
    none = cli("apply", *flags)
    assert (0, [], "note: 0 of 2 resources changed since `HEAD`\n") == (none.code, _statuses(none), none.err)
    (folder / "good.yaml").write_text((folder / "good.yaml").read_text() + "  hostPID: false\n")
    assert [("no-latest", "tag", "pass")] == _statuses(cli("apply", *flags))
    (folder / "latest.yaml").write_text(LATEST + "\n# changed\n")
    ran = cli("apply", *flags)
    assert (1, 2) == (ran.code, len(_statuses(ran)))
    assert "policies changed since `HEAD`: all resources are judged" in ran.err


def test_a_rendered_finding_names_its_template(cli: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every format; there is no line, because the output of helm is no file."""
    helm = folder / "bin/helm"
    helm.parent.mkdir()
    helm.write_text(f"#!/bin/sh\ncat <<'END'\n---\n# Source: shop/templates/pod.yaml\n{BAD}END\n")
    helm.chmod(0o755)
    (folder / "shop").mkdir()
    monkeypatch.setenv("PATH", f"{helm.parent}:/bin:/usr/bin")
    ran = cli("apply", "latest.yaml", "--helm", "shop")
    assert "shop/templates/pod.yaml no-latest/tag validation error" in ran.out
    sarif = json.loads(cli("apply", "latest.yaml", "--helm", "shop", "--format", "sarif").out)
    (where,) = sarif["runs"][0]["results"][0]["locations"]
    assert {"artifactLocation": {"uri": "shop/templates/pod.yaml"}} == where["physicalLocation"]


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (("--update-baseline",), "--update-baseline needs --baseline FILE"),
        (("--changed-since", "HEAD", "--workers", "2"), "--changed-since and --workers cannot be used together"),
        (("--helm-values", "a.yaml"), "--helm-values needs --helm CHART"),
    ],
)
def test_flags_that_mean_nothing_together_are_errors(cli: Run, flags: tuple[str, ...], text: str) -> None:
    """Before anything is read."""
    ran = cli("apply", "latest.yaml", "-r", "bad.yaml", *flags)
    assert (1, f"Error: {text}\n") == (ran.code, ran.err)


TWO = """\
apiVersion: v1
kind: Pod
metadata: {name: two, namespace: shop}
spec:
  containers:
  - name: a # pyverno: ignore[no-latest/tag] vendor
    image: a:latest
  - name: b
    image: b:latest
"""


def test_a_suppressed_element_hides_no_other_one(cli: Run, folder: Path) -> None:
    """A rule reports its first failure only; the next one counts, at its own line."""
    ran = _apply(cli, folder, TWO)
    (found,) = json.loads(ran.out)["results"]
    assert (1, "fail", 9) == (ran.code, found["status"], found["resource"]["line"])
    both = TWO.replace("name: b", "name: b # pyverno: ignore[no-latest] ours")
    accepted = _apply(cli, folder, both)
    assert (0, [("no-latest", "tag", "skip")]) == (accepted.code, _statuses(accepted))


def test_what_is_beyond_a_hundred_suppressed_elements_counts_as_a_failure(cli: Run, folder: Path) -> None:
    """A rule is evaluated again for each suppressed element, which has to end."""
    head, element = (
        TWO.split("  - name: a", maxsplit=1)[0],
        "  - name: c{} # pyverno: ignore[no-latest/tag] x\n    image: a:latest\n",
    )
    accepted, too_many = (head + "".join(map(element.format, range(count))) for count in (100, 102))
    assert [("no-latest", "tag", "skip")] == _statuses(_apply(cli, folder, accepted))
    ran = _apply(cli, folder, too_many)
    assert ("no-latest", "tag", "fail") == _statuses(ran)[0]
    assert 1 == ran.code
