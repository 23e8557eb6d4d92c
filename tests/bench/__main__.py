"""`python -m tests.bench [--json FILE] [ID ...]`: measure the ratios that the project holds itself to.

Prints a table and writes the ratios as a flat map. A limit that is missed is said clearly, and is no error: the figures
are a report.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench import cel, commands, engine

__all__ = ["BENCHMARKS", "main"]

DEFAULT_FILE = Path("build/bench.json")


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One figure: its id, what it is, the limit, and on which side of the limit it must be."""

    id: str
    what: str
    run: Callable[[], float]
    limit: float
    is_least: bool = False

    def holds(self, value: float) -> bool:
        """Tell whether a value keeps the limit."""
        return value >= self.limit if self.is_least else value <= self.limit


BENCHMARKS = (
    Benchmark("B1", "Pod Security policies on a pod that passes / orjson.loads", engine.pass_ratio, 2.0),
    Benchmark("B2", "the same on a pod that fails every rule / orjson.loads", engine.fail_ratio, 4.0),
    Benchmark("B3", "naive interpreter / compiled engine", engine.naive_ratio, 30, is_least=True),
    Benchmark("B3.differences", "pods of 2,000 judged differently by the two", engine.count_differences, 0),
    Benchmark("B4", "Pod Security in CEL on a pod that passes / orjson.loads", cel.pass_ratio, 1.3),
    Benchmark("B4.compile", "compiling these policies / loading their YAML", cel.compile_ratio, 5.0),
    Benchmark("B5", "10,000 policies / 10, the same 5 match", engine.selection, 1.5),
    Benchmark("B6", "1,000 matching policies / 100", engine.linearity, 12.5),
    Benchmark("B10", "apply on 10,000 pods as YAML / CSafeLoader", commands.yaml_ratio, 0.8),
    Benchmark("B11", "apply on 10,000 pods as a JSON List / orjson.loads", commands.json_ratio, 4.0),
    Benchmark("B12.version", "pyverno --version / python -c pass", commands.version_ratio, 1.3),
    Benchmark("B12.one", "apply of one policy on one resource / python -c pass", commands.one_ratio, 7.0),
)


def main(arguments: Sequence[str]) -> int:
    """Run the benchmarks that are asked for (`B12` stands for all its parts); return 0, or 2 for an unknown id."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("--json", type=Path, default=DEFAULT_FILE, help="where the ratios are written")
    parser.add_argument("ids", nargs="*", metavar="ID", help="benchmarks to run, all by default")
    options = parser.parse_args(arguments)
    asked = [item for item in BENCHMARKS if not options.ids or {item.id, item.id.partition(".")[0]} & {*options.ids}]
    unknown = {name for name in options.ids if not any(name in (item.id, item.id.partition(".")[0]) for item in asked)}
    if unknown:
        sys.stderr.write(f"no benchmark is called {', '.join(sorted(unknown))}\n")
        return 2
    found: dict[str, float] = {}
    print(f"{'id':<15} {'measured':>9} {'held':>8}  {'verdict':<8} {'took':>6}  what")
    for item in asked:
        started = time.monotonic()
        value = found[item.id] = round(item.run(), 3)
        verdict = "ok" if item.holds(value) else "MISSED"
        sign = ">=" if item.is_least else "<="
        took = f"{time.monotonic() - started:.0f} s"
        print(f"{item.id:<15} {value:>9.3g} {sign:>3}{item.limit:>5g}  {verdict:<8} {took:>6}  {item.what}", flush=True)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(found, indent=2) + "\n")
    missed = [item.id for item in asked if not item.holds(found[item.id])]
    print(f"limits missed: {', '.join(missed)}" if missed else "all limits are held")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
