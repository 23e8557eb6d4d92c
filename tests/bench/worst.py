"""B22: the review that costs most of all adversarial objects of 64 KiB, by the median of ordinary ones."""

from __future__ import annotations

import statistics
import time

import orjson

from pyverno.compiler import compile_documents
from pyverno.engine.engine import Engine
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import load_documents
from tests.bench.adversary import adversarial_objects, ordinary_objects
from tests.bench.inputs import POD_SECURITY

__all__ = ["library_engine", "worst_ratio"]

SIZE = 64 * 1024
ORDINARY = 200


def library_engine() -> Engine:
    """Return an engine with every policy of our library, those in CEL included."""
    library = POD_SECURITY.parent
    paths = sorted([*library.rglob("clusterpolicy.yaml"), *library.rglob("validatingpolicy.yaml")])
    compilation = compile_documents(
        each for path in paths for each in load_documents(path.read_bytes(), file=str(path))
    )
    assert not compilation.errors, compilation.errors
    return Engine(PolicySet(compilation.policies))


def worst_ratio() -> float:
    """B22: the longest review, with its decision, by the median review."""
    engine = library_engine()
    usual = statistics.median(_seconds(engine, each) for each in ordinary_objects(SIZE, ORDINARY))
    slowest = sorted(
        ((_seconds(engine, each, rounds=1), each) for _, each in adversarial_objects(SIZE)), key=lambda pair: -pair[0]
    )
    return max(_seconds(engine, each) for _, each in slowest[:5]) / usual


def _seconds(engine: Engine, resource: JSONObject, *, rounds: int = 3) -> float:
    best, body = float("inf"), orjson.dumps(resource)
    for _ in range(rounds):
        request = Request.from_manifest(orjson.loads(body))
        started = time.thread_time()
        _ = engine.review(request).decision
        best = min(best, time.thread_time() - started)
    return best
