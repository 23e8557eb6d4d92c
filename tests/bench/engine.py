"""B1, B2, B3, B5, B6: the engine on admission reviews that are already parsed."""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from pyverno.engine.engine import Engine
from pyverno.engine.phases import VALIDATING
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.kube.json import JSONObject
from tests.bench.inputs import (
    compiled_policies,
    failing_review,
    generated_policies,
    mutated_pods,
    passing_review,
    policy_documents,
    scattered_policies,
)
from tests.bench.measure import compare
from tests.bench.naive_engine import Said, naive_review

__all__ = ["count_differences", "differing_pods", "fail_ratio", "linearity", "naive_ratio", "pass_ratio", "selection"]

_SEED = 20_260_105


def pass_ratio() -> float:
    """B1: all policies on a pod that passes, by the time that orjson takes for the request."""
    return _against_parsing(passing_review(), "pass")


def fail_ratio() -> float:
    """B2: the same on a pod that fails every rule, with all its messages."""
    return _against_parsing(failing_review(), "fail")


def _against_parsing(body: bytes, expected: str) -> float:
    engine, request = Engine(PolicySet(compiled_policies())), _request(body)
    statuses = {result.status.value for result in engine.review(request, VALIDATING).results}
    assert statuses == {expected}, statuses
    return compare(lambda: engine.review(request, VALIDATING), lambda: orjson.loads(body)).ratio


def naive_ratio() -> float:
    """B3: a naive interpreter by the compiled engine, on the pod that passes."""
    engine, request = Engine(PolicySet(compiled_policies())), _request(passing_review())
    written = [document.value for document in policy_documents()]
    pair = compare(lambda: naive_review(written, request.object), lambda: engine.review(request, VALIDATING))
    return pair.ratio


def count_differences() -> int:
    """B3: the number of randomly changed pods on which the naive interpreter and the compiled engine disagree."""
    return len(differing_pods(mutated_pods(_SEED, 2000)))


def differing_pods(pods: Iterable[JSONObject]) -> list[JSONObject]:
    """Return the pods on which the naive interpreter and the compiled engine disagree."""
    engine = Engine(PolicySet(compiled_policies()))
    written = [document.value for document in policy_documents()]
    return [pod for pod in pods if sorted(naive_review(written, pod)) != sorted(_said(engine, pod))]


def _said(engine: Engine, pod: JSONObject) -> list[Said]:
    results = engine.review(Request.from_manifest(pod), VALIDATING).results
    return [(result.rule.policy.name, result.rule.name, result.status.value, result.message) for result in results]


def selection() -> float:
    """B5: ten thousand policies by ten, of which the same five match."""
    many, few = (Engine(PolicySet(scattered_policies(count))) for count in (10_000, 10))
    request = _request(passing_review())
    assert len(many.review(request, VALIDATING).results) == len(few.review(request, VALIDATING).results) == 5
    return compare(lambda: many.review(request, VALIDATING), lambda: few.review(request, VALIDATING)).ratio


def linearity() -> float:
    """B6: a thousand policies that match by a hundred."""
    many, few = (Engine(PolicySet(generated_policies(count))) for count in (1000, 100))
    request = _request(passing_review())
    found = [len(engine.review(request, VALIDATING).results) for engine in (many, few)]
    assert found[0] >= 1000, found
    return compare(lambda: many.review(request, VALIDATING), lambda: few.review(request, VALIDATING)).ratio


def _request(body: bytes) -> Request:
    return Request.from_admission_review(orjson.loads(body))
