"""`make demo`: runs the real command line on the manifests of docs/guide/demo and checks what comes back.

After that `demo_cluster` shows policies at work in a cluster. Exit code 0 means that every outcome was the expected
one. Prints plain text when its output is not a terminal. It must never judge by itself: everything shown was printed by
`pyverno`.
"""

from __future__ import annotations

import difflib
import os
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from scripts.demo_cluster import SCENES, play
from scripts.demo_images import play as play_images

ROOT = Path(__file__).resolve().parent.parent
DEMO = "docs/guide/demo"
_BOLD, _DIM, _RED, _GREEN, _END = "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[0m"


@dataclass(frozen=True, slots=True)
class Step:
    """One command with what it must end with and print; `before` names the manifest to show a diff with."""

    title: str
    why: str
    arguments: tuple[str, ...]
    code: int
    prints: tuple[str, ...]
    before: str = ""


STEPS = (
    Step(
        "Pod Security Standards",
        "Our policy library on a pod that keeps to the standards and on one that does not.",
        ("apply", "policies/pod-security/*/*/clusterpolicy.yaml", "-r", f"{DEMO}/pods.yaml", "--table"),
        1,
        ("disallow-privileged-containers", "shop/Pod/careless", "shop/Pod/careful", "Pass", "Fail"),
    ),
    Step(
        "A denial and its reason",
        "The rule is about Pods; the Deployment is caught through its pod template, and the path says where.",
        ("apply", f"{DEMO}/policies/require-labels.yaml", "-r", f"{DEMO}/deployment.yaml"),
        1,
        ("autogen-check-team", "label 'team' is required", "/spec/template/metadata/labels/team/"),
    ),
    Step(
        "A mutation",
        "The label is added because it is missing.",
        ("apply", f"{DEMO}/policies/add-labels.yaml", "-r", f"{DEMO}/redis.yaml", "--stdin"),
        0,
        ("+    team: bravo",),
        f"{DEMO}/redis.yaml",
    ),
    Step(
        "A mutation that computes",
        "The label of the pod asks for 40 seconds: it sleeps that long before it stops, and may take 50.",
        (
            *("apply", f"{DEMO}/policies/pre-stop.yaml", "-r", f"{DEMO}/web.yaml"),
            *("-f", f"{DEMO}/values.yaml", "--stdin"),
        ),
        0,
        ("sleep 40", "+  terminationGracePeriodSeconds: 50"),
        f"{DEMO}/web.yaml",
    ),
    Step(
        "A generated resource",
        "A new Namespace gets its own copy of the pull secret.",
        ("apply", f"{DEMO}/policies/sync-secrets.yaml", "-r", f"{DEMO}/namespace.yaml"),
        0,
        ("kind: Secret", "namespace: mytestns", "Generation completed successfully."),
    ),
)


def main() -> int:
    """Run all steps; return 1 when an outcome is not the expected one."""
    started = time.perf_counter()
    wrong = [problem for number, step in enumerate(STEPS, 1) for problem in _show(number, step)]
    wrong += play(_heading)
    wrong += play_images(_heading)
    seconds = time.perf_counter() - started
    _heading("Result")
    for problem in wrong:
        print(_painted(_RED, f"unexpected: {problem}"))
    if not wrong:
        count = len(STEPS) + sum(len(scene.acts) for scene in SCENES)
        print(_painted(_GREEN, f"All {count} outcomes are the expected ones ({seconds:.1f} s)."))
    return 1 if wrong else 0


def _show(number: int, step: Step) -> list[str]:
    _heading(f"{number}. {step.title}")
    print(f"{step.why}\n")
    print(_painted(_BOLD, f"$ pyverno {shlex.join(step.arguments)}"), flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "pyverno", *step.arguments],
        cwd=ROOT,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "160"},
        capture_output=True,
        text=True,
        check=False,
    )
    shown = done.stdout if not step.before else _difference(step.before, done.stdout)
    print(_coloured(shown.strip("\n")) if step.before else shown.strip("\n"))
    if done.stderr.strip():
        print(done.stderr.strip(), file=sys.stderr)
    print(_painted(_DIM, f"(exit code {done.returncode})"))
    wrong = [f"step {number} does not print `{text}`" for text in step.prints if text not in shown]
    if done.returncode != step.code:
        wrong.append(f"step {number} ends with {done.returncode}, expected {step.code}")
    return wrong


def _difference(before: str, after: str) -> str:
    """Return what changed, as a unified diff of the objects written in one style."""
    from pyverno.kube.yaml.documents import load_documents
    from pyverno.kube.yaml.writer import dump_yaml

    old = [dump_yaml(each.value) for each in load_documents((ROOT / before).read_bytes())]
    new = [dump_yaml(each.value) for each in load_documents(after.encode()) if each.value is not None]
    lines = difflib.unified_diff(
        "---\n".join(old).splitlines(), "---\n".join(new).splitlines(), before, "after the mutation", lineterm="", n=2
    )
    return "\n".join(lines)


def _heading(text: str) -> None:
    print(f"\n{_painted(_BOLD, text)}\n{'=' * len(text)}")


def _coloured(text: str) -> str:
    colours = {"+": _GREEN, "-": _RED}
    return "\n".join(_painted(colours[line[0]], line) if line[:1] in colours else line for line in text.splitlines())


def _painted(code: str, text: str) -> str:
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        return text
    return f"{code}{text}{_END}"


if __name__ == "__main__":
    sys.exit(main())
