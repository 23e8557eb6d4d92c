"""`python -m tests.bench [--json FILE] [ID ...]`: measure the ratios that the project holds itself to.

Prints a table and writes the ratios as a flat map, with the machine that they were measured on under `machine`. A limit
that is missed is marked clearly and is no error: the figures are a report.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench import (
    background,
    cel,
    cleanup,
    clusterpath,
    commands,
    engine,
    linting,
    migrating,
    pages,
    pipeline,
    sandbox,
    scanchange,
    scanning,
    server,
    verifying,
    worst,
)
from tests.bench.machine import described

__all__ = ["BENCHMARKS", "main"]

DEFAULT_FILE = Path("build/bench.json")


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One figure: its id, what it is, the limit, and on which side of the limit it must be.

    A figure without a limit is only reported.
    """

    id: str
    what: str
    run: Callable[[], float]
    limit: float | None = None
    is_least: bool = False

    def holds(self, value: float) -> bool:
        """Return whether a value keeps the limit."""
        if self.limit is None:
            return True
        return value >= self.limit if self.is_least else value <= self.limit

    def verdict(self, value: float) -> str:
        """Return the limit and whether the value keeps it, as the table shows them."""
        if self.limit is None:
            return f"{'':>8}  {'':<8}"
        sign = ">=" if self.is_least else "<="
        return f"{sign:>3}{self.limit:>5g}  {'ok' if self.holds(value) else 'MISSED':<8}"


BENCHMARKS = (
    Benchmark("B1", "Pod Security policies on a pod that passes / orjson.loads", engine.pass_ratio, 2.0),
    Benchmark("B2", "the same on a pod that fails every rule / orjson.loads", engine.fail_ratio, 4.0),
    Benchmark("B3", "naive interpreter / compiled engine", engine.naive_ratio, 30, is_least=True),
    Benchmark("B3.differences", "pods of 2,000 judged differently by the two", engine.count_differences, 0),
    Benchmark("B4", "Pod Security in CEL on a pod that passes / orjson.loads", cel.pass_ratio, 1.3),
    Benchmark("B4.compile", "compiling these policies / loading their YAML", cel.compile_ratio, 5.0),
    Benchmark("B5", "10,000 policies / 10, the same 5 match", engine.selection, 1.5),
    Benchmark("B6", "1,000 matching policies / 100", engine.linearity, 12.5),
    Benchmark("B7", "webhook with 17 policies / the same server with a constant answer", server.server_ratio, 3.0),
    Benchmark("B7.second", "reviews a second and core", server.reviews_per_second),
    Benchmark("B8", "that server / a TLS echo on the same server", server.floor_ratio, 3.0),
    Benchmark("B9", "p99 at a quarter of the load of one core / p50 of one connection", server.latency_ratio),
    Benchmark("B9.p99", "milliseconds at 50 connections that never pause", server.latency_milliseconds),
    Benchmark("B9.second", "reviews a second of one process at 50 connections", server.throughput),
    Benchmark(
        "B9.pause", "CPU ms of the longest garbage collection under load, 1,000 policies", server.longest_pause, 2
    ),
    Benchmark("B13.policy", "KB of memory for each of 1,000 policies", server.policy_kilobytes, 24),
    Benchmark("B13", "MB of memory of the webhook with 17 policies", server.webhook_megabytes, 80),
    Benchmark("B10", "apply on 10,000 pods as YAML / CSafeLoader", commands.yaml_ratio, 0.8),
    Benchmark("B11", "apply on 10,000 pods as a JSON List / orjson.loads", commands.json_ratio, 4.0),
    Benchmark("B12.version", "pyverno --version / python -c pass", commands.version_ratio, 1.3),
    Benchmark("B12.one", "apply of one policy on one resource / python -c pass", commands.one_ratio, 7.0),
    Benchmark("B12.lint", "linting 600 policies / CSafeLoader of their files", linting.lint_ratio, 3.0),
    Benchmark("B15", "a review with its report / a constant answer with a constant report", clusterpath.ratio, 4.0),
    Benchmark("B15.parse", "the same / a constant answer without a report", clusterpath.parse_ratio, None),
    Benchmark("B15.pass", "milliseconds of such a review without reports", clusterpath.pass_milliseconds, 0.35),
    Benchmark("B15.deny", "the same of one that denies, with its events", clusterpath.deny_milliseconds, 0.7),
    Benchmark("B15.reports", "the same of one that passes, with its report", clusterpath.report_milliseconds, 0.6),
    Benchmark("B19", "a keyless bundle / its bare signatures", verifying.bundle_ratio, 2.0),
    Benchmark("B19.kept", "microseconds of a verdict that is kept", verifying.kept_microseconds, 50),
    Benchmark("B18", "ephemeral reports while nothing aggregates 10^6 results / limit", pipeline.stored_share, 1.02),
    Benchmark("B18.unmetered", "requests that are neither reported nor counted as dropped", pipeline.unmetered, 0),
    Benchmark("B18.wrong", "objects whose reports are not exact afterwards", pipeline.wrong_reports, 0),
    Benchmark("B20", "milliseconds of the slowest first page among 10^6 results", pages.page_milliseconds, 50),
    Benchmark("B20.facets", "milliseconds of the slowest facets among them", pages.facet_milliseconds, 150),
    Benchmark("B20.ingest", "of these, written a second", pages.ingested_per_second, 20_000, is_least=True),
    Benchmark("B20.memory", "MB of the process that wrote and read them", pages.store_megabytes, 200),
    Benchmark("B20.weight", "KB of all pages, compressed", pages.page_kilobytes, 250),
    Benchmark("B21", "milliseconds of a playground review of 17 policies", pages.playground_milliseconds, 100),
    Benchmark("B22", "worst review of 64 KiB by the whole library / the median", worst.worst_ratio, 50),
    Benchmark("B23", "processor seconds to convert and test the slowest of 30 policies", migrating.one_seconds, 3.0),
    Benchmark("B23.many", "minutes for 300 policies with two workers", migrating.many_minutes, 5.0),
    Benchmark("B23.analyze", "processor seconds to analyze 300 policies", migrating.analysis_seconds, 60),
    Benchmark("B17", "bytes for each of 10,000 objects with a time to live", cleanup.bytes_for_each_object, 2048),
    Benchmark("B17.late", "most seconds that a deletion comes after it is due", cleanup.worst_lateness, 2.0),
    Benchmark("B14.start", "sandbox started and stopped / python -c pass", sandbox.start_ratio),
    Benchmark("B14.list", "list of 2,000 pods from the sandbox / orjson.dumps", sandbox.list_ratio, 5.0),
    Benchmark("B14.get", "GET of a pod per second of one core", sandbox.reads_per_second),
    Benchmark("B14.post", "POST of ConfigMaps per second of one core", sandbox.posts_per_second),
    Benchmark("B14.memory", "KiB of memory for a ConfigMap in the sandbox", sandbox.memory, 3.0),
    Benchmark("B14.memory.left", "MiB of memory left of 2,000 deleted Pods", sandbox.memory_left, 16.0),
    Benchmark("B14.pods", "POST of pods per second of one core", sandbox.pods_per_second),
    Benchmark("B14.patch", "merge PATCH of a pod per second of one core", sandbox.patches_per_second),
    Benchmark("B14.webhooks", "POST with two webhooks per second of one core", sandbox.webhook_posts_per_second),
    Benchmark("B14.scan", "background scan of stored pods with 17 policies / orjson.loads", scanning.scan_ratio, 3.0),
    Benchmark("B14.scan.again", "percent of that for a scan that finds nothing changed", scanning.rescan_share, 5.0),
    Benchmark("B14.scan.memory", "MB of memory for 100,000 scanned pods", scanning.memory, 64),
    Benchmark("B14.scan.change", "seconds until one changed pod of 100,000 is reported", scanchange.worst_seconds, 2.0),
    Benchmark("B16", "controller that generates 5,000 objects / writing them", background.processor_ratio, 3.0),
    Benchmark("B16.requests", "its requests to the API server / objects", background.request_ratio, 1.5),
    Benchmark("B16.again", "objects that a re-apply of the policy writes", background.writes_of_another_apply, 0),
)


def _shown(value: float) -> str:
    """Write a figure with three digits, or all digits before the point."""
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def main(arguments: Sequence[str]) -> int:
    """Run the requested benchmarks (`B12` stands for all its parts); return 0, or 2 for an unknown id."""
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
    machine = described()
    print(", ".join(f"{name} {value}" for name, value in machine.items()))
    print(f"{'id':<15} {'measured':>9} {'held':>8}  {'verdict':<8} {'took':>6}  what")
    for item in asked:
        started = time.monotonic()
        value = found[item.id] = round(item.run(), 3)
        took = f"{time.monotonic() - started:.0f} s"
        print(f"{item.id:<15} {_shown(value):>9} {item.verdict(value)} {took:>6}  {item.what}", flush=True)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps({"machine": machine, **found}, indent=2) + "\n")
    missed = [item.id for item in asked if not item.holds(found[item.id])]
    print(f"limits missed: {', '.join(missed)}" if missed else "all limits are held")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
