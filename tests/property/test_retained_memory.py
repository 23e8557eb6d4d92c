"""What reviews leave behind: nothing that grows with their number or with the texts of their objects.

Ten thousand distinct reviews in `make nightly`, a few hundred in the run of a pull request.
"""

from __future__ import annotations

import gc
import os
import tracemalloc

from pyverno.engine.request import Request
from pyverno.kube.json import JSONObject
from tests.bench.worst import library_engine

NIGHTLY = bool(os.environ.get("PYVERNO_NIGHTLY"))
COUNT = 10_000 if NIGHTLY else 150
TEXT = 200_000 if NIGHTLY else 20_000
WARM = 60
RETAINED = 2 * 1024 * 1024
PEAK = 128 * 1024 * 1024


def _pod(number: int, size: int) -> JSONObject:
    """Return a pod with its own text in every place that a policy of the library reads."""
    text = f"{number:07d}" + "x" * size
    container = {
        "name": text,
        "image": f"r.example.com/{text}:latest",
        "env": [{"name": "E", "value": text}],
        "resources": {"limits": {"memory": text, text: "1Gi"}},
        "securityContext": {"capabilities": {"add": [text]}, "seLinuxOptions": {"user": text}},
    }
    texts = {text: text, "app": text}
    metadata = {"name": f"p{number}", "namespace": "default", "labels": texts, "annotations": texts}
    volume = {"name": "v", "hostPath": {"path": f"/{text}"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], "volumes": [volume]},
    }


def test_distinct_reviews_leave_nothing_behind() -> None:
    """The traced memory after all reviews is that after the first ones: no cache keeps the texts of requests."""
    engine = library_engine()

    def review(number: int) -> None:
        _ = engine.review(Request.from_manifest(_pod(number, TEXT))).decision

    for number in range(WARM):
        review(number)
    gc.collect()
    tracemalloc.start()
    try:
        before = _retained()
        for number in range(WARM, WARM + COUNT):
            review(number)
        grown = _retained() - before
    finally:
        tracemalloc.stop()
    assert grown < RETAINED, f"{grown} bytes are kept after {COUNT} reviews"


def test_one_review_of_a_mebibyte_takes_little_memory() -> None:
    """An object of 1 MiB that fails everything takes at most 128 MiB while it is judged by the whole library."""
    engine = library_engine()
    request = Request.from_manifest(_pod(1, (1 << 20) // 12))
    tracemalloc.start()
    try:
        _ = engine.review(request).decision
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= PEAK


def _retained() -> int:
    gc.collect()
    current, _ = tracemalloc.get_traced_memory()
    return current
