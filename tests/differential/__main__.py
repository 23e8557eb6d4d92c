"""`python -m tests.differential`: run pyverno and a Kyverno executable on the batches of some seeds and compare."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from tests.differential.classes import classify
from tests.differential.compare import Difference, differences
from tests.differential.generate.batches import FAMILIES, Batch, batch_of
from tests.differential.runs import Command, answers_of
from tests.differential.shrink import shrink
from tests.differential.summary import Summary

VARIABLE = "KYVERNO_EXECUTABLE"
_ROOT = Path(__file__).resolve().parents[2]
_REPORT = Path("build") / "differential.json"
_SHRUNK = 40


def main(words: list[str] | None = None) -> int:
    """Compare, print a summary and return 1 if something is unexplained."""
    flags = _parse(words)
    executable = shutil.which(os.environ.get(VARIABLE, ""))
    if executable is None:
        print(f"skipped: {VARIABLE} names no Kyverno executable")
        return 0
    first, _, last = flags.seeds.partition("-")
    seeds = list(range(int(first), int(last or first) + 1))
    families = flags.family or list(FAMILIES)
    ours, theirs = own_command(), Command((str(Path(executable).absolute()),))
    summary, started = Summary(seeds=seeds), time.monotonic()
    with ProcessPoolExecutor(flags.workers) as pool:
        tasks = [(seed, family) for seed in seeds for family in families]
        for (seed, family), (count, found) in zip(
            tasks, pool.map(partial(_compare_seed, ours, theirs), tasks), strict=True
        ):
            summary.add(family, count, found)
            note = (
                f"{family} {seed}: {count} verdicts, {len(found)} differences, {summary.unexplained} unexplained so far"
            )
            print(f"[{time.monotonic() - started:.0f}s] {note}", file=sys.stderr)
        if not flags.no_shrink:
            groups = sorted(summary.groups.items(), key=lambda item: -len(item[1]))[:_SHRUNK]
            smaller = pool.map(partial(_shrink, ours, theirs), [found[0] for _, found in groups])
            for (group, found), small in zip(groups, smaller, strict=True):
                summary.groups[group] = [small, *found[1:]]
    _REPORT.parent.mkdir(exist_ok=True)
    _REPORT.write_text(json.dumps(summary.as_json(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print(summary.as_text())
    return 1 if summary.unexplained else 0


def own_command(*extra: str) -> Command:
    """Return the command of this working tree, which reads and prints as Kyverno's does."""
    environment = {**os.environ, "PYTHONPATH": str(_ROOT / "src")}
    return Command((sys.executable, "-m", "pyverno"), ("--compat", "kyverno", *extra), environment)


def compare_batch(ours: Command, theirs: Command, batch: Batch) -> list[Difference]:
    """Return the differences of one batch."""
    return list(differences(batch, answers_of(ours, batch), answers_of(theirs, batch)))


def _compare_seed(ours: Command, theirs: Command, task: tuple[int, str]) -> tuple[int, list[Difference]]:
    batch = batch_of(*task)
    mine, other = answers_of(ours, batch), answers_of(theirs, batch)
    found = list(differences(batch, mine, other))
    if any(classify(each) is None for each in found):
        found = list(differences(batch, mine, other, answers_of(theirs, batch)))
    return len({*mine, *other}), found


def _shrink(ours: Command, theirs: Command, difference: Difference) -> Difference:
    return shrink(difference, partial(compare_batch, ours, theirs))


def _parse(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.differential", description=__doc__)
    parser.add_argument("--seeds", default="1-9", help="first and last seed, for example 1-200")
    parser.add_argument("--family", action="append", choices=list(FAMILIES), help="only batches of this family")
    parser.add_argument("--workers", type=int, default=2, help="number of batches at a time")
    parser.add_argument("--no-shrink", action="store_true", help="print unexplained differences as they were found")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
