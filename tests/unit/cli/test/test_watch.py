"""Suites that run again when one of their files changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyverno.cli.test.options import SuiteOptions
from pyverno.cli.test.watch import watch_tests
from tests.support.commandline import Run

SUITE = """
apiVersion: cli.kyverno.io/v1alpha1
kind: Test
metadata: {name: suite}
policies: [../latest.yaml]
resources: [../good.yaml]
results: [{policy: latest, rule: latest, resources: [good], result: pass}]
"""


class _Over(Exception):  # noqa: N818 - ends a watch
    pass


def test_files_that_suites_name_are_watched(folder: Path) -> None:
    """Policies and resources of a suite may be in other folders than the suite."""
    (folder / "suite").mkdir()
    (folder / "suite/kyverno-test.yaml").write_text(SUITE)
    edited = iter(["bad.yaml", "latest.yaml", "good.yaml", "suite/new.yaml"])
    runs: list[SuiteOptions] = []

    def wait(_: float) -> None:
        name = next(edited, None)
        if name is None:
            raise _Over
        with (folder / name).open("a") as file:
            file.write("# changed\n")

    def run(options: SuiteOptions) -> int:
        runs.append(options)
        return 0

    with pytest.raises(_Over):
        watch_tests(SuiteOptions(sources=("suite",)), run, wait=wait)
    assert 4 == len(runs)  # bad.yaml is part of no suite


@pytest.mark.parametrize(
    ("words", "other"),
    [(("suite", "--write"), "--write"), (("https://github.com/kyverno/policies",), "a git address")],
)
def test_suites_that_cannot_be_watched_are_an_error(cli: Run, words: tuple[str, ...], other: str) -> None:
    """A run that writes suites, and one that clones them, have no end or no file."""
    ran = cli("test", "--watch", *words)
    assert (1, f"Error: --watch and {other} cannot be used together\n") == (ran.code, ran.err)
