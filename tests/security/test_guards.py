"""The register of guards is whole: it names every security test, and every guard occurs at its stated place.

`python -m tests.security.mutants` removes all of them, one after the other; this module removes a few, so that a
broken harness is seen at once.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.security.guards import GUARDS, WITHOUT_GUARD, Edit, Guard
from tests.security.guards.guard import marks, without
from tests.security.mutants import missing_edits

HERE = Path(__file__).parent
FEW = ("policies of a namespace only read", "dot segments are refused", "addresses are held against the ranges")


def _tests() -> set[str]:
    """Return the node ids of all security tests that need a guard."""
    found = set()
    for path in HERE.rglob("test_*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found.add(f"tests/security/{path.relative_to(HERE).as_posix()}::{node.name}")
    return {each for each in found if not any(each.endswith(name) or f"/{name}::" in each for name in WITHOUT_GUARD)}


def test_every_security_test_has_a_guard() -> None:
    """A test that no removed guard makes fail proves nothing."""
    named = {test.partition("[")[0] for guard in GUARDS for test in guard.tests}
    assert set() == _tests() - named


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_a_guard_is_in_the_module_it_names(guard: Guard) -> None:
    """The text of each guard is in the source exactly once; a change that moves a guard must move its entry."""
    assert [] == missing_edits(guard)


def test_every_guard_that_the_source_names_is_in_the_table() -> None:
    """A comment `# guard: NAME` without a row claims a proof that nobody runs."""
    source = HERE.parents[1] / "src" / "pyverno"
    named = {
        (path.relative_to(source).as_posix(), name)
        for path in source.rglob("*.py")
        for name in marks(path.read_text(encoding="utf-8"))
    }
    assert named == {(edit.module, edit.mark) for guard in GUARDS for edit in guard.edits if edit.mark}


PLACES = (
    ("if a:  # guard: x\n    b()\n", "", "if (False):  # guard: x\n    b()\n"),
    ("if a:  # guard: x\n    b()\n", "c", "if (c):  # guard: x\n    b()\n"),
    ("return a(  # guard: x\n    b)\n", "c", "return (c)\n"),
    ("a = b  # guard: x\n", "c", "a = (c)  # guard: x\n"),
    ("check(a)  # guard: x\nb()\n", "", "pass\nb()\n"),
    ("def f(a):  # guard: x\n    'Say.'\n    return a\nb()\n", "1", "def f(a):  # guard: x\n    return 1\nb()\n"),
)


@pytest.mark.parametrize(("text", "new", "left"), PLACES, ids=[text.split()[0] for text, _, _ in PLACES])
def test_a_guard_that_the_source_names_is_taken_away(text: str, new: str, left: str) -> None:
    """The statement with the comment changes, and nothing else."""
    assert left == without(text, Edit("module", "", new, mark="x"))


@pytest.mark.parametrize("name", FEW)
def test_without_its_guard_a_test_fails(name: str) -> None:
    """This test removes a few guards; `make nightly` removes all of them."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.security.mutants", "--only", name],
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stdout + done.stderr
