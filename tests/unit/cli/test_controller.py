"""`pyverno controller admission`: what its flags come to before there is a cluster."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.unit.cli.conftest import Run


def test_flags_with_capitals_reach_the_controller(tmp_path: Path) -> None:
    """Kyverno's flags are written in camel case; an access that is not there is told, and nothing before it."""
    missing = tmp_path / "kubeconfig"
    words = ["--kubeconfig", str(missing), "--protectManagedResources", "--removeWebhooks=false"]
    done = subprocess.run(  # in a process of its own, because a controller takes the log over
        [sys.executable, "-m", "pyverno", "controller", "admission", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert 1 == done.returncode
    assert done.stderr.startswith("Error: ")
    assert str(missing) in done.stderr


def test_an_unknown_form_of_log_lines_is_refused(cli: Run) -> None:
    """A controller that can not tell anything is not started."""
    result = cli("controller", "admission", "--loggingFormat", "xml")
    assert (1, 'Error: invalid argument "xml" for "--loggingFormat" flag: expected text or json\n') == (
        result.code,
        result.err,
    )
