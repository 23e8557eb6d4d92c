"""Memory after reviews does not grow with their number or with the texts of their objects.

Ten thousand distinct reviews in `make nightly`, a few hundred in the run of a pull request.
"""

from __future__ import annotations

import gc
import os
import tracemalloc
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from pyverno.engine.engine import Engine
from pyverno.engine.request import Request
from pyverno.kube.json import JSONObject
from tests.bench.adversary import adversarial_objects
from tests.bench.worst import library_engine
from tests.cases.case import all_cases
from tests.cases.snapshot import PHASES
from tests.support.images import image_stage, signed_images

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
    """The traced memory after all reviews is that after the first ones, because no cache keeps texts of requests."""
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


def test_a_review_leaves_no_reference_cycle() -> None:
    """In every golden case reference counting alone frees all objects of a review, without a garbage collection."""
    cases = [case for case in all_cases() if not case.compilation.errors]
    runs = {case.name: (Engine(case.compilation.policy_set(), case.host), list(case.requests())) for case in cases}
    assert {} == _left_in_cycles(runs)


def test_reviews_of_odd_objects_leave_no_reference_cycle() -> None:
    """Nulls, wrong types and long lists at every place that the library reads: errors keep no frame of a review."""
    engine = library_engine()
    assert {} == _left_in_cycles(
        {name: (engine, [Request.from_manifest(body)]) for name, body in adversarial_objects(500)}
    )


class Body(dict[str, Any]):
    """A document that weak references can observe."""


@pytest.mark.parametrize("kind", ["ClusterPolicy", "ImageValidatingPolicy"])
@pytest.mark.parametrize("tag", ["signed", "unsigned", "missing"])
def test_a_review_that_reads_a_registry_frees_its_object(kind: str, tag: str) -> None:
    """The object is freed after an error of the registry too: its event loop keeps no reference to the review."""
    with image_stage() as stage:
        stage.sign(stage.push("signed"))
        stage.push("unsigned")
        policy = stage.policy() if kind == "ClusterPolicy" else signed_images(stage.signer.public_pem)
        for _ in range(2):
            body = Body(stage.pod(stage.image(tag)))
            gone = weakref.ref(body)
            with _without_collector():
                assert (tag == "signed") is stage.review(policy, pod=body).decision.allowed
                del body
                assert gone() is None


def _left_in_cycles(runs: Mapping[str, tuple[Engine, Sequence[Request]]]) -> dict[str, int]:
    """Return how many objects of a second review only a garbage collection would free, where there are any."""
    for engine, requests in runs.values():
        _review_all(engine, requests)
    found: dict[str, int] = {}
    with _without_collector():
        for name, (engine, requests) in runs.items():
            _review_all(engine, requests)
            found[name] = gc.collect()
    return {name: count for name, count in found.items() if count}


def _review_all(engine: Engine, requests: Sequence[Request]) -> None:
    for request in requests:
        _ = engine.review(request, PHASES).decision


@contextmanager
def _without_collector() -> Iterator[None]:
    """Exclude existing objects from collections, now and later, and run no collection inside the block."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _retained() -> int:
    gc.collect()
    current, _ = tracemalloc.get_traced_memory()
    return current
