"""`pyverno version`: three forms, and little work."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from pyverno.version import __version__

if TYPE_CHECKING:
    from tests.support.commandline import Run


def test_text_names_version_time_and_commit(cli: Run) -> None:
    """An unknown time or commit is shown as `---`."""
    lines = cli("version").out.splitlines()
    assert [f"Version: {__version__}", "Time: ---"] == lines[:2]
    assert lines[2].startswith("Git commit ID: ")


def test_json_and_yaml_hold_the_same(cli: Run) -> None:
    """With Kyverno's keys; a blank line follows the YAML."""
    text = cli("version", "--output", "json").out
    assert text.startswith('{\n  "version": "')
    assert ["version", "time", "gitCommitId"] == list(json.loads(text))
    out = cli("version", "-o", "yaml").out
    assert out.endswith(f"version: {__version__}\n\n")
    assert "time: '---'\n" in out


def test_another_form_is_refused(cli: Run) -> None:
    """With the list of forms."""
    expected = "Error: invalid output format: xml (supported formats: json, yaml)\n"
    assert (1, expected) == (cli("version", "-o", "xml").code, cli("version", "-o", "xml").err)
    assert 'unknown command "x"' in cli("version", "x").err


def test_the_text_is_made_without_click() -> None:
    """So that the fastest way through the command line can use it."""
    code = (
        "import sys; from pyverno.cli.version_info import version_text; version_text(); print('click' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "False\n" == done.stdout
