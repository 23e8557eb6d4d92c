"""B20 and B21: a million results in the store of the pages, and a review of the playground."""

from __future__ import annotations

import asyncio
import gzip
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from statistics import median

import orjson

from pyverno.engine.result import ResourceRef
from pyverno.report.collected import STATUSES, Collected
from pyverno.report.finding import Finding
from pyverno.ui.playground.workers import PlaygroundWorkers
from pyverno.ui.server.staticfiles import web_root
from pyverno.ui.store.filters import read_filter
from pyverno.ui.store.reader import Reader
from pyverno.ui.store.schema import create_tables
from pyverno.ui.store.seriescolumns import SeriesColumns
from pyverno.ui.store.writer import Report, Writer
from tests.bench.inputs import POD_SECURITY

__all__ = [
    "facet_milliseconds",
    "ingested_per_second",
    "page_kilobytes",
    "page_milliseconds",
    "playground_milliseconds",
    "store_megabytes",
]

RESULTS = int(os.environ.get("PYVERNO_BENCH_RESULTS", "1000000"))
RULES = 25
BATCH = 500
FILTERS = (
    "",
    "status=fail",
    "status=fail,error&severity=high",
    "namespace=ns-7",
    "policy=policy-3&status=pass",
    "namespace=ns-1*&kind=Pod",
    "severity=critical",
    "cluster=c&status=!pass",
    "name=object-123",
    "search=object-77",
    "since=1h",
    "property.team=t1",
)


def _reports() -> Iterator[Report]:
    chance = random.Random(7)  # noqa: S311 - the same data in every run
    weights = (6, 1, 3, 10, 80)
    for number in range(RESULTS // RULES):
        namespace = f"ns-{number % 400}"
        ref = ResourceRef("v1", "Pod" if number % 3 else "Service", namespace, f"object-{number}")
        statuses = chance.choices(STATUSES, weights, k=RULES)
        results = [
            Collected(
                Finding(
                    f"policy-{index % 17}",
                    f"rule-{index}",
                    ref,
                    status,
                    f"validation of rule-{index} gives {status}",
                    ("high", "medium", "low", "critical", "")[index % 5],
                    "Pod Security",
                    properties={"team": f"t{number % 50}"},
                ),
                "kyverno",
            )
            for index, status in enumerate(statuses)
        ]
        yield Report("c", f"PolicyReport/{namespace}/{number}", results, {})


def _fill(path: str) -> float:
    """Write all results, in the batches of a server that follows a cluster; return results a second."""
    create_tables(path)
    writer, spent, batch = Writer(path), 0.0, []

    def write() -> None:
        nonlocal spent
        started = time.process_time()
        writer.write(batch, 1000)
        spent += time.process_time() - started
        batch.clear()

    for report in _reports():
        batch.append(report)
        if len(batch) == BATCH:
            write()
    write()
    writer.close()
    return RESULTS / spent


def _measure(path: str) -> dict[str, float]:
    """Fill a store and ask it everything, as one process does."""
    found = {"ingest": _fill(path)}
    columns = SeriesColumns()
    readers = [Reader(path, columns) for _ in range(4)]
    chosen = [read_filter([tuple(part.split("=", 1)) for part in text.split("&") if part], 5000) for text in FILTERS]  # type: ignore[misc]
    found["page"], found["facets"] = 0.0, 0.0
    for each, text in zip(chosen, FILTERS, strict=True):
        page = _milliseconds(lambda each=each: readers[0].results(each))  # type: ignore[misc]
        facets = _milliseconds(lambda each=each: readers[0].facets(each))  # type: ignore[misc]
        keys = _milliseconds(lambda each=each: readers[0].facet_keys(each))  # type: ignore[misc]
        facets = max(facets, keys)  # a page asks for both
        sys.stderr.write(f"{text or 'everything':36} page {page:6.1f} ms, facets {facets:6.1f} ms\n")
        found["page"], found["facets"] = max(found["page"], page), max(found["facets"], facets)
    for reader in readers[1:]:
        reader.results(chosen[0])
        reader.facets(chosen[0])
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    found["memory"] = int(peak) / 1024
    return found


def _milliseconds(work: Callable[[], object]) -> float:
    work()
    spent = []
    for _ in range(5):
        started = time.process_time()
        work()
        spent.append(time.process_time() - started)
    return median(spent) * 1000


@cache
def _store() -> dict[str, float]:
    """Return the figures of a process of its own, whose memory is that of the store."""

    async def measure(path: str) -> dict[str, float]:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.bench.pages", path, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
        found: dict[str, float] = orjson.loads(out)
        return found

    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(measure(f"{folder}/store.db"))


def page_milliseconds() -> float:
    """B20: the slowest first page of a dozen filters, with a million results."""
    return _store()["page"]


def facet_milliseconds() -> float:
    """B20.facets: the slowest facets of these filters."""
    return _store()["facets"]


def ingested_per_second() -> float:
    """B20.ingest: results that are written a second."""
    return _store()["ingest"]


def store_megabytes() -> float:
    """B20.memory: the peak of the process that wrote and read all of them."""
    return _store()["memory"]


def page_kilobytes() -> float:
    """B20.weight: everything that a browser loads for the pages, compressed."""
    root = web_root()
    files = [path for path in root.rglob("*") if path.is_file()]
    return sum(len(gzip.compress(path.read_bytes(), mtime=0)) for path in files) / 1024


def playground_milliseconds() -> float:
    """B21: a review of a pod by the 17 Pod Security policies, from the request to the answer, in a warm server."""
    policies = "\n---\n".join(
        path.read_text(encoding="utf-8") for path in sorted(POD_SECURITY.rglob("clusterpolicy.yaml"))
    )
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: nginx}]}\n"

    async def play() -> float:
        async with PlaygroundWorkers(workers=1) as workers:
            request = {"policies": policies, "resources": pod}
            for _ in range(3):
                await workers.review(dict(request))
            spent = []
            for number in range(9):
                started = time.perf_counter()
                answer = await workers.review(
                    {**request, "resources": pod.replace("{name: a}", f"{{name: a{number}}}")}
                )
                spent.append(time.perf_counter() - started)
            assert not answer.get("problems"), answer
            return median(spent) * 1000

    return asyncio.run(play())


if __name__ == "__main__":
    sys.stdout.buffer.write(orjson.dumps(_measure(sys.argv[1])))
