"""A run that is repeated when its files change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyverno.cli.apply.options import ApplyOptions
from pyverno.cli.apply.run import run_apply
from pyverno.cli.apply.watch import watch_apply
from tests.support.documents import BAD, LATEST

if TYPE_CHECKING:
    from pathlib import Path

    from pyverno.offline.files import DocumentCache
    from tests.support.commandline import Run


class _Over(Exception):  # noqa: N818 - ends a watch
    pass


def test_a_change_runs_again_and_reads_only_the_file_that_changed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing happens while nothing changes; a policy that is broken for a while ends nothing."""
    steps = iter(["", "", "bad.yaml", "latest.yaml", "latest.yaml"])
    texts = iter([BAD.replace(":latest", ":1"), "a: [\n", LATEST])
    seen: list[tuple[int, int]] = []

    def run(options: ApplyOptions, cache: DocumentCache) -> int:
        before = cache.reads
        code = run_apply(options, cache)
        seen.append((code, cache.reads - before))
        return code

    def wait(_: float) -> None:
        name = next(steps, None)
        if name is None:
            raise _Over
        if name:
            (folder / name).write_text(next(texts))

    with pytest.raises(_Over):
        watch_apply(ApplyOptions(policies=("latest.yaml",), resources=("bad.yaml", "good.yaml")), run, wait=wait)
    assert [(1, 3), (0, 1), (1, 1), (0, 1)] == seen
    assert 4 == capsys.readouterr().err.count("note: waiting for changes")


def test_what_cannot_be_watched_is_an_error(cli: Run) -> None:
    """A cluster and standard input have no files."""
    for flags, other in ((("-r", "-"), "standard input"), (("-r", "bad.yaml", "--cluster"), "--cluster")):
        ran = cli("apply", "latest.yaml", "--watch", *flags)
        assert (1, f"Error: --watch and {other} cannot be used together\n") == (ran.code, ran.err)
