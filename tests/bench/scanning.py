"""B14: the cost of a background scan relative to reading the JSON of the same objects, and its memory.

The pods are those of deployments: alike but for names, addresses, nodes and digests.
"""

from __future__ import annotations

import asyncio
import copy
import gc
import random
import uuid
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import orjson

from pyverno.cluster.access import Access
from pyverno.cluster.client import Client
from pyverno.controllers.reports.contexts import Contexts
from pyverno.controllers.reports.evaluation import Evaluator, ReportFilter
from pyverno.controllers.reports.objects import ObjectStore
from pyverno.controllers.reports.plan import make_plan
from pyverno.controllers.reports.slices import CHUNK, Piece, Slices
from pyverno.engine.host import NO_HOST
from pyverno.kube.gvk import GVK, GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS
from tests.bench import inputs
from tests.bench.measure import compare

__all__ = ["memory", "pods", "rescan_share", "scan_ratio"]

_PODS = GVR("", "v1", "pods")
_POD = GVK("", "v1", "Pod")
_COUNT = 1_000
_MANY = 100_000
_DEPLOYMENTS = 200
_NAMESPACES = 50
_ROUNDS = 25


def pods(count: int) -> Iterator[JSONObject]:
    """Yield pods of deployments that pass all policies of the benchmarks."""
    chance = random.Random(14)  # noqa: S311 - the same pods every time
    base: JSONObject = orjson.loads(inputs.passing_review())["request"]["object"]
    for number in range(count):
        body = copy.deepcopy(base)
        deployment, digits = number % _DEPLOYMENTS, f"{chance.getrandbits(40):010x}"
        body["metadata"] |= {
            "name": f"web-{deployment}-{digits[:5]}-{digits[5:]}",
            "namespace": f"team-{deployment % _NAMESPACES}",
            "uid": str(uuid.UUID(int=chance.getrandbits(128), version=4)),
            "resourceVersion": str(number),
        }
        body["spec"]["nodeName"] = f"node-{chance.randrange(500)}"
        image = f"sha256:{chance.getrandbits(256):064x}"
        address = ".".join(["10", *(str(chance.randrange(256)) for _ in range(3))])
        body["status"] = {"phase": "Running", "podIP": address, "containerStatuses": [{"name": "a", "imageID": image}]}
        yield body


class _Scan:
    """A store of pods and the policies of a scan."""

    def __init__(self, count: int) -> None:
        self.store = ObjectStore()
        for body in pods(count):
            self.store.put(_PODS, _POD, body)
        self.contexts = Contexts(lambda name: {"metadata": {"name": name, "labels": {}}})
        self.contexts.follow(make_plan(inputs.compiled_policies(), (), BUILTIN_KINDS))
        self.slices = Slices(
            Client(Access("https://192.0.2.1")), self.store, Evaluator(ReportFilter()), lambda: NO_HOST, 2
        )

    def forget(self) -> None:
        """Make every evaluation out of date."""
        for bucket in self.store.buckets():
            self.contexts.forget(bucket.key)

    async def sweep(self) -> int:
        """Evaluate the outdated objects, as the scanner does; return their number."""
        evaluated, chunk = 0, list[Piece]()
        for bucket in self.store.buckets():
            context = self.contexts.find(bucket.key, bucket.gvk)
            work = [(uid, entry, entry.blob) for uid, entry in bucket.entries.items() if entry.context is not context]
            for first in range(0, len(work), CHUNK):
                chunk.append(Piece(bucket, context, work[first : first + CHUNK]))
                if sum(len(piece.work) for piece in chunk) >= CHUNK:
                    evaluated += await self._evaluate(chunk)
                    chunk = []
        return evaluated + await self._evaluate(chunk)

    async def _evaluate(self, pieces: Sequence[Piece]) -> int:
        async for piece, evaluated in self.slices.evaluate(pieces):
            for (_, entry, _), evaluation, _ in evaluated:
                entry.context, entry.outcome = piece.context, evaluation.outcome
        return sum(len(piece.work) for piece in pieces)


@cache
def _scan() -> _Scan:
    return _Scan(_COUNT)


def _scan_anew() -> None:
    _scan().forget()
    assert _COUNT == asyncio.run(_scan().sweep())


def _scan_again() -> None:
    assert not asyncio.run(_scan().sweep())


def scan_ratio() -> float:
    """Return the processor time of a full scan divided by that of reading the objects' JSON."""
    texts = [orjson.dumps(body) for body in pods(_COUNT)]

    def read() -> None:
        for text in texts:
            orjson.loads(text)

    return compare(_scan_anew, read, rounds=_ROUNDS).ratio


def rescan_share() -> float:
    """Return the processor time of a scan that finds nothing changed as a share of a full one, in percent."""
    _scan_anew()
    return 100 * compare(_scan_again, _scan_anew, rounds=3).ratio


def memory() -> float:
    """Return the megabytes that 100,000 evaluated pods take."""
    small = _Scan(10)
    asyncio.run(small.sweep())
    small.slices.close()
    gc.collect()
    before = _resident()
    scan = _Scan(_MANY)
    asyncio.run(scan.sweep())
    gc.collect()
    after = _resident()
    scan.slices.close()
    return (after - before) / 2**20


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096
