"""Bad files given to `pyverno apply`: one clear error with its place, exit code 1, no traceback; others are judged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

POLICY = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: needs-team
spec:
  rules:
  - name: check
    match:
      any:
      - resources:
          kinds: [ConfigMap]
    validate:
      failureAction: Enforce
      message: team is required
      pattern:
        metadata:
          labels:
            team: "?*"
"""
GOOD = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: good\n  labels:\n    team: x\n"
HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: odd\n  labels:\n    team: x\n"
SECONDS = 300.0
"""Wall clock for one run of the command with two inputs; most of it is starting Python on a busy machine."""


def bomb(levels: int) -> str:
    """Return aliases that double nine times per level."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    for level in range(1, levels):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]")
    return HEAD + "data:\n" + "".join(f"  {line}\n" for line in lines)


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `pyverno` in a folder, as a user would."""
    environment = {**os.environ, "NO_COLOR": "1", "PYTHONWARNINGS": "ignore"}
    return subprocess.run(
        [sys.executable, "-m", "pyverno", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a policy and a good object."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "good.yaml").write_text(GOOD)
    return tmp_path


REFUSED: dict[str, tuple[bytes, str]] = {
    "unparsable": (b"a: [1, 2\nb: }", "odd.yaml:1:"),
    "tab": (b"a:\n\t- b\n", "odd.yaml:2:"),
    "duplicate-key": (HEAD.encode() + b"data: {}\ndata: {a: b}\n", "odd.yaml:8:1"),
    "alias-bomb": (bomb(9).encode(), "aliases expand to more than"),
    "too-deep": (HEAD.encode() + b"data: " + b"[" * 10_001 + b"]" * 10_001, "nested deeper than"),
    "not-a-number": (HEAD.encode() + b"data: {a: .nan}\n", "odd.yaml:7:"),
    "infinity": (HEAD.encode() + b"data: {a: .inf}\n", "odd.yaml:7:"),
    "undefined-alias": (b"a: *nothing\n", "odd.yaml:1:4"),
    "control-character": (b"a: \x01\n", "odd.yaml:1:"),
    "not-a-resource": (b"a: b\n", "odd.yaml:1:1"),
    "a-list": (b"- a\n- b\n", "odd.yaml:1:1"),
    "python-tag": (b"a: !!python/object/apply:os.system [x]\n", "odd.yaml:1:"),
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_bad_resource_is_one_error_and_the_others_are_judged(name: str, folder: Path) -> None:
    """Exit code 1 and one line on stderr with file, line and column; the good object has its pass.

    Register: CVE-2019-11253.
    """
    data, place = REFUSED[name]
    (folder / "odd.yaml").write_bytes(data)
    done = run(folder, "apply", "policy.yaml", "-r", "odd.yaml", "-r", "good.yaml")
    assert "Traceback" not in done.stderr + done.stdout
    assert (1, 1, True) == (done.returncode, done.stderr.count("Error:"), place in done.stderr), done.stderr
    assert "pass: 1, fail: 0, warn: 0, error: 1, skip: 0" in done.stdout


ACCEPTED: dict[str, bytes] = {
    "9000-levels": HEAD.encode() + b"data: " + b"[" * 9_000 + b"]" * 9_000 + b"\n",
    "9000-levels-with-null": (
        b'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "odd"}, "data": '
        + b"[" * 9_000
        + b"null"
        + b"]" * 9_000
        + b"}"
    ),
    "huge-integer": HEAD.encode() + b"data: {a: 1" + b"0" * 400 + b"}\n",
    "long-digits": HEAD.encode() + b"data: {a: '" + b"9" * 5000 + b"'}\n",
    "7-mebibytes": HEAD.encode() + b"data:\n  a: '" + b"x" * (7 * 1024 * 1024) + b"'\n",
    "surrogates": json.dumps(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s", "labels": {"team": "\ud800"}}}
    ).encode(),
    "byte-order-mark": b"\xef\xbb\xbf" + HEAD.encode(),
    "windows-line-ends": HEAD.replace("\n", "\r\n").encode(),
    "wrong-types": b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: w, labels: {team: 1}, annotations: 7}\n",
}


@pytest.mark.parametrize("name", sorted(ACCEPTED))
def test_an_unusual_resource_is_judged(name: str, folder: Path) -> None:
    """Deep, large and odd objects get a verdict like any other, or one clear error; never a traceback."""
    (folder / "odd.yaml").write_bytes(ACCEPTED[name])
    done = run(folder, "apply", "policy.yaml", "-r", "odd.yaml", "-r", "good.yaml")
    assert "Traceback" not in done.stderr + done.stdout
    assert ("pass: 2" in done.stdout, done.returncode) == (True, 0) or (
        done.returncode == 1 and ("Error:" in done.stderr or "fail: 1" in done.stdout)
    ), done.stderr[:500]
    assert "pass: " in done.stdout


BAD_POLICIES: dict[str, tuple[str, str]] = {
    "unknown-field": (POLICY.replace("message:", "massage:"), "odd.yaml:14:7"),
    "wrong-type": (POLICY.replace("rules:", "rules: text\n  x:"), "odd.yaml:6:"),
    "duplicate-key": (
        POLICY.replace("      message: team is required\n", "      message: a\n      message: b\n"),
        "odd.yaml:15:",
    ),
    "unparsable": ("a: [", "odd.yaml:"),
    "unparsable-expression": (POLICY.replace("team is required", "'{{ a. }}'"), "odd.yaml:"),
    "unknown-kind": (POLICY.replace("kind: ClusterPolicy", "kind: ClusterPolice"), "odd.yaml:"),
    "not-yet": (
        POLICY.replace("kyverno.io/v1", "policies.kyverno.io/v1").replace("ClusterPolicy", "ValidatingPolicy"),
        "odd.yaml",
    ),
}


@pytest.mark.parametrize("name", sorted(BAD_POLICIES))
def test_a_bad_policy_is_an_error_and_the_others_judge(name: str, folder: Path) -> None:
    """Exit code 1 and the place of the problem; the good policy still judges."""
    text, place = BAD_POLICIES[name]
    (folder / "odd.yaml").write_text(text.replace("needs-team", "odd"))
    done = run(folder, "apply", "odd.yaml", "policy.yaml", "-r", "good.yaml")
    assert "Traceback" not in done.stderr + done.stdout
    assert (1, True) == (done.returncode, place in done.stderr), done.stderr
    assert "pass: 1" in done.stdout


CONTEXTS = {
    "self-reference": "- name: a\n  variable:\n    jmesPath: a",
    "circle": "- name: a\n  variable:\n    value: '{{ b }}'\n- name: b\n  variable:\n    value: '{{ a }}'",
    "doubling": "- name: a\n  variable:\n    value: xxxxxxxxxx\n"
    + "".join(
        f"- name: a{n}\n  variable:\n    jmesPath: join('', [a{n - 1 or ''}, a{n - 1 or ''}])\n" for n in range(1, 41)
    )
    + "- name: z\n  variable:\n    jmesPath: a40",
}


@pytest.mark.parametrize("name", sorted(CONTEXTS))
def test_a_runaway_policy_ends_quickly(name: str, folder: Path) -> None:
    """Self-reference, circles and doubling are errors, and the run continues."""
    last = "z" if name == "doubling" else "a"
    context = "".join(f"    {line}\n" for line in CONTEXTS[name].splitlines())
    text = POLICY.replace("needs-team", "odd").replace("    validate:\n", f"    context:\n{context}    validate:\n")
    text = text.replace('      pattern:\n        metadata:\n          labels:\n            team: "?*"\n', "")
    text += (
        "      deny:\n        conditions:\n          all:\n"
        f"          - key: '{{{{ {last} }}}}'\n            operator: Equals\n            value: x\n"
    )
    (folder / "odd.yaml").write_text(text)
    done = run(folder, "apply", "odd.yaml", "policy.yaml", "-r", "good.yaml")
    assert "Traceback" not in done.stderr + done.stdout
    assert name != "doubling" or "exceeds" in done.stdout, "a limit ends it, not the memory of the machine"
    assert (1, True) == (done.returncode, "pass: 1" in done.stdout), done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("apply", "nothing.yaml", "-r", "good.yaml"), "nothing.yaml"),
        (("apply", "policy.yaml", "-r", "nothing.yaml", "-r", "good.yaml"), "nothing.yaml"),
        (("apply", "policy.yaml", "-r", "no*.yaml", "-r", "good.yaml"), "no*.yaml"),
        (("apply", "policy.yaml", "-r", "good.yaml", "-f", "nothing.yaml"), "nothing.yaml"),
        (("apply", "policy.yaml", "-r", "good.yaml", "-u", "policy.yaml"), "policy.yaml"),
        (("apply", "policy.yaml", "-r", "good.yaml", "-e", "nothing.yaml"), "nothing.yaml"),
        (("apply", "policy.yaml"), "resource"),
        (("apply",), "policy"),
        (("test", "nothing"), "nothing"),
        (("jp", "query", "a["), ""),
        (("nonsense",), "unknown command"),
        (("apply", "--nonsense"), "unknown flag"),
    ],
)
def test_what_is_not_there_is_said(arguments: tuple[str, ...], text: str, folder: Path) -> None:
    """Missing files and wrong words: exit code 1, the name in the error, no traceback."""
    done = run(folder, *arguments)
    assert "Traceback" not in done.stderr + done.stdout
    assert (True, True) == (done.returncode != 0, text in done.stderr), done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read every folder")
def test_an_unreadable_folder_is_said(folder: Path) -> None:
    """A folder without permission is one error; the others are judged."""
    (folder / "closed").mkdir(mode=0o000)
    done = run(folder, "apply", "policy.yaml", "-r", "closed", "-r", "good.yaml")
    assert (1, True) == (done.returncode, "permission denied" in done.stderr)
    assert "pass: 1" in done.stdout


def test_a_folder_in_place_of_a_file_is_said(folder: Path) -> None:
    """A folder in place of an input file is one error."""
    (folder / "values").mkdir()
    done = run(folder, "apply", "policy.yaml", "-r", "good.yaml", "-f", "values")
    assert "Traceback" not in done.stderr
    assert (True, True) == (done.returncode != 0, "values" in done.stderr)


def test_a_link_that_leads_nowhere_is_said(folder: Path) -> None:
    """A broken link within a folder is one error; the files beside it are judged."""
    objects = folder / "objects"
    objects.mkdir()
    (objects / "gone.yaml").symlink_to("nothing")
    (objects / "good.yaml").write_text(GOOD)
    done = run(folder, "apply", "policy.yaml", "-r", "objects")
    assert "Traceback" not in done.stderr
    assert (1, True, True) == (done.returncode, "gone.yaml" in done.stderr, "pass: 1" in done.stdout), done.stderr


def test_generated_names_never_leave_the_output_folder(folder: Path) -> None:
    """An object named like a path is not written elsewhere."""
    (folder / "out").mkdir()
    change = (
        POLICY.split("    validate:", maxsplit=1)[0] + "    mutate:\n      patchStrategicMerge:\n"
        "        data:\n          b: c\n"
    )
    (folder / "change.yaml").write_text(change)
    (folder / "odd.yaml").write_text(GOOD.replace("name: good", "name: ../../escaped"))
    done = run(folder, "apply", "change.yaml", "-r", "odd.yaml", "-o", "out")
    assert "Traceback" not in done.stderr
    assert [] == sorted(path.name for path in folder.parent.rglob("escaped*"))
    assert 0 == run(folder, "apply", "change.yaml", "-r", "good.yaml", "-o", "out").returncode
    written = sorted(path.name for path in (folder / "out").iterdir())
    assert ["good-mutated.yaml", True] == [written[-1], written[0].startswith("_._.._escaped-mutated-")]
