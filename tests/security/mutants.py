"""`python -m tests.security.mutants`: every guard is removed once, and its tests must then fail.

A copy of the package without one guard (`tests.security.guards`) is before the real one on the path; the tests run
in a process of their own, which shares nothing but libraries with the others. This module must never change the real
source.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.security.guards import GUARDS, Edit, Guard
from tests.security.guards.guard import without

__all__ = ["main", "missing_edits", "survivors"]

_ROOT = Path(__file__).parents[2]
_SOURCE = _ROOT / "src" / "pyverno"
_HEAVY = ("aiohttp", "cryptography.x509", "cryptography.hazmat.primitives.serialization", "orjson", "re2",
          "yaml", "click", "prometheus_client", "asyncio", "ssl", "http.client")  # fmt: skip
"""Libraries that are imported once, before the processes part."""

_MEMORY_BYTES, _CPU_SECONDS, _SHORT_SECONDS = 3 << 30, 30, 6
"""Limits of a process: without some guards it would use the whole machine."""


def missing_edits(guard: Guard) -> list[str]:
    """Return the edits of a guard whose mark or text is not in the source exactly once: it is not where it was."""
    return [
        f"{edit.module}: {edit.mark or edit.old!r}"
        for edit in guard.edits
        if without((_SOURCE / edit.module).read_text(encoding="utf-8"), edit) is None
    ]


@contextmanager
def _without(guard: Guard) -> Iterator[Path]:
    """Make a folder with the package as it would be without a guard."""
    with tempfile.TemporaryDirectory(prefix="pyverno-mutant-", ignore_cleanup_errors=True) as folder:
        edits: dict[Path, list[Edit]] = {}
        for edit in guard.edits:
            edits.setdefault(Path(edit.module), []).append(edit)
        opened = {parent for module in edits for parent in module.parents}
        for place in sorted(opened, key=lambda each: len(each.parts)):
            target = Path(folder) / "pyverno" / place
            target.mkdir(exist_ok=True, parents=True)
            for item in (_SOURCE / place).iterdir():
                relative = place / item.name
                if relative in opened or item.name == "__pycache__":
                    continue
                if relative in edits:
                    text = item.read_text(encoding="utf-8")
                    for edit in edits[relative]:
                        text = without(text, edit) or text
                    (target / item.name).write_text(text, encoding="utf-8")
                else:
                    (target / item.name).symlink_to(item)
        yield Path(folder)


class _Outcomes:
    """A pytest plugin: which test functions failed, and which ran at all.

    A function that failed with one of its parameters is not run with the others: each of them might wait for a minute.
    """

    def __init__(self) -> None:
        self.failed: set[str] = set()
        self.ran: set[str] = set()

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if item.nodeid.partition("[")[0] in self.failed:
            pytest.skip("it failed with another parameter")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid.partition("[")[0]
        if report.when == "call":
            self.ran.add(name)
            if report.failed:
                self.failed.add(name)


def _run(folder: Path, tests: Sequence[str]) -> tuple[set[str], set[str], str]:
    """Run tests with the package of a folder; returns those that failed, those that ran, and what was printed."""
    sys.path.insert(0, str(folder))
    os.environ["PYTHONPATH"] = os.pathsep.join((str(folder), str(_ROOT)))
    outcomes = _Outcomes()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        own = f"--basetemp={folder / 'temporary'}"  # what a program without end writes disturbs no other tests
        pytest.main(["-q", "--no-header", "--tb=line", "-p", "no:cacheprovider", own, *tests], plugins=[outcomes])
    return outcomes.failed, outcomes.ran, printed.getvalue()


def _end_leftovers(folder: Path) -> None:
    """End the programs that a test started and could not end without the guard: they name the folder."""
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if os.fsencode(folder) in place.read_bytes() and (number := int(place.parent.name)) != os.getpid():
                os.kill(number, signal.SIGKILL)


def survivors(guard: Guard) -> list[str]:
    """Return the tests that still pass without a guard, or that did not run; empty when the guard is proven."""
    with _without(guard) as folder:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:  # pragma: no cover - the other process
            os.close(reading)
            status = 1
            try:
                os.chdir(_ROOT)
                resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
                seconds = _SHORT_SECONDS if guard.may_hang else _CPU_SECONDS
                resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
                functions = [test.partition("[")[0] for test in guard.tests]
                failed, ran, printed = _run(folder, guard.tests)
                left = [
                    f"{test}: {'passes' if test in ran else 'did not run'}" for test in functions if test not in failed
                ]
                told = [*left, *(printed.splitlines()[-5:] if any("did not" in each for each in left) else ())]
                with os.fdopen(writing, "wb") as pipe:
                    pipe.write("\n".join(told).encode())
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            told_by_child = pipe.read().decode()
        _, status = os.waitpid(child, 0)
        _end_leftovers(folder)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
        return [] if guard.may_hang else ["the tests did not end"]
    return told_by_child.splitlines() if not status else [f"the process ended with {status}"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Remove the guards one by one, print a table, and return 1 when a test still passes."""
    parser = argparse.ArgumentParser(prog="python -m tests.security.mutants", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="only guards whose name or row contains this")
    options = parser.parse_args(arguments)
    for name in _HEAVY:
        importlib.import_module(name)
    assert "pyverno" not in sys.modules, "the package must be imported by the processes, not here"
    bad = 0
    began = time.monotonic()
    chosen = [guard for guard in GUARDS if options.only in f"{guard.row} {guard.name}"]
    for guard in chosen:
        problems = [f"is not where it was: {each}" for each in missing_edits(guard)] or survivors(guard)
        bad += bool(problems)
        print(f"{guard.row:<5} {guard.name:<76} {'NOT PROVEN' if problems else f'{len(guard.tests)} fail'}", flush=True)
        for problem in problems:
            print(f"      {problem}")
    seconds = time.monotonic() - began
    tests = len({test for guard in chosen for test in guard.tests})
    print(f"{len(chosen)} guards taken away, {tests} tests, {bad} not proven, {seconds:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
