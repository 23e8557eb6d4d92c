"""Slices: one thread evaluates objects of several namespaces together, each with its own context."""

from __future__ import annotations

import asyncio

from pyverno.cluster.access import Access
from pyverno.cluster.client import Client
from pyverno.controllers.reports.evaluation import Evaluation, Evaluator, ReportFilter, ScanContext
from pyverno.controllers.reports.objects import BucketKey, ObjectStore
from pyverno.controllers.reports.slices import Piece, Slices
from pyverno.engine.host import NO_HOST, Host
from pyverno.kube.gvk import GVK, GVR
from pyverno.kube.json import JSONObject
from tests.unit.controllers.reports.policies import pod, policy
from tests.unit.controllers.reports.test_evaluation import contexts

PODS = GVR("", "v1", "pods")
POD = GVK("", "v1", "Pod")


class NotingEvaluator(Evaluator):
    """Records the namespaces of objects and contexts."""

    def __init__(self) -> None:
        """Start without records."""
        super().__init__(ReportFilter())
        self.seen: list[tuple[str, str]] = []

    def evaluate(self, body: JSONObject, context: ScanContext, host: Host, began: float | None = None) -> Evaluation:
        """Record the namespaces and evaluate."""
        labels = dict(context.namespace_labels or {})
        self.seen.append((body["metadata"]["namespace"], labels.get("name", "")))
        return super().evaluate(body, context, host, began)


def stored(*namespaces: str) -> ObjectStore:
    """Return a store with two Pods in each namespace."""
    store = ObjectStore()
    for number, namespace in enumerate(namespace for namespace in namespaces for _ in range(2)):
        body = pod(f"web-{number}")
        body["metadata"] |= {"namespace": namespace, "uid": f"00000000-0000-4000-8000-{number:012d}"}
        store.put(PODS, POD, body)
    return store


def test_pieces_of_several_namespaces_are_evaluated_each_with_its_context() -> None:
    """One call of a thread evaluates all objects; each comes back once, in order."""
    names = ("a", "b", "c")
    store, evaluator = stored(*names), NotingEvaluator()
    labels = {name: {"metadata": {"name": name, "labels": {"name": name}}} for name in names}
    made = contexts(policy("a"), namespaces=labels)
    slices = Slices(Client(Access("https://192.0.2.1")), store, evaluator, lambda: NO_HOST, 1)
    pieces = []
    for bucket in store.buckets():
        context = made.find(BucketKey(PODS, bucket.key.namespace), POD)
        pieces.append(Piece(bucket, context, [(uid, entry, entry.blob) for uid, entry in bucket.entries.items()]))

    async def evaluated() -> list[tuple[str, bytes, str]]:
        return [
            (piece.bucket.key.namespace, work[0], evaluation.ref.namespace)
            async for piece, found in slices.evaluate(pieces)
            for work, evaluation, _ in found
        ]

    found = asyncio.run(evaluated())
    slices.close()
    expected = [
        (piece.bucket.key.namespace, work[0], piece.bucket.key.namespace) for piece in pieces for work in piece.work
    ]
    assert expected == found
    assert [(name, name) for name in names for _ in range(2)] == evaluator.seen
