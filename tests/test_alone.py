"""The second run of failed tests in CI: chance does not fail it, and everything else does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
from pathlib import Path

def test_passes_alone():
    pass

def test_fails_always():
    assert False

def test_is_not_run():
    Path("run").touch()
"""


@pytest.mark.parametrize(
    ("failed", "code", "printed"),
    [
        (
            ["test_a.py::test_passes_alone"],
            0,
            "FLAKY, to be mended (the failure is shown above):\n  test_a.py::test_passes",
        ),
        (["test_a.py::test_passes_alone", "test_a.py::test_fails_always"], 1, "1 failed, 1 passed"),
        (["test_a.py::test_is_gone"], 4, "not found"),
        (
            [f"test_a.py::test_{number}" for number in range(6)],
            1,
            "6 tests failed, more than 5: they are not run again",
        ),
        ([], 1, "no test is known to have failed: the run itself did"),
    ],
    ids=["chance", "fault", "unknown", "many", "none"],
)
def test_only_a_few_failures_that_pass_alone_are_forgiven(
    failed: list[str], code: int, printed: str, tmp_path: Path
) -> None:
    """The exit code is that of the second run, and of a failed run where there is none."""
    (tmp_path / "test_a.py").write_text(TESTS)
    cache = tmp_path / ".pytest_cache/v/cache"
    cache.mkdir(parents=True)
    (cache / "lastfailed").write_text(json.dumps(dict.fromkeys(failed, True)))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    command = [sys.executable, "-m", "scripts.alone"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert code == done.returncode, done.stdout + done.stderr
    assert printed in done.stdout + done.stderr
    assert not (tmp_path / "run").exists()
