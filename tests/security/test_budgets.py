"""I9: limits of the security reference that no other module tests, each at N and at N + 1."""

from __future__ import annotations

import json

import pytest

from pyverno.compiler.cel.environment import environment_of_kind
from pyverno.engine.request import Request
from pyverno.errors import BudgetExceededError, EvaluationError
from pyverno.kube.admissionreview import (
    MAX_MESSAGE_BYTES,
    MAX_VALUES,
    AdmissionRequest,
    AdmissionResponse,
    BadReviewError,
    read_admission_review,
    shortened,
)
from pyverno.kube.json import JSONObject
from pyverno.lang.cel.libraries.kyverno.data import MAX_RATIO
from pyverno.lang.jmespath import compile_expression
from pyverno.lang.jmespath.functions.regex import compile_pattern
from pyverno.lang.regex.compiler import MAX_PATTERN
from pyverno.lang.regex.generator import MAX_LENGTH
from pyverno.lang.runtime import Budget, Runtime
from pyverno.webhook.server import Limits
from tests.security.test_limits import Clock


def _review(values: int, text: str = "") -> bytes:
    """Return an AdmissionReview with so many JSON values, and a text of any length."""
    review: JSONObject = {"request": {"uid": "1", "operation": "CREATE", "object": {"items": [], "text": text}}}
    own = 7  # the maps, the list, and the three texts
    review["request"]["object"]["items"] = [0] * (values - own)
    return json.dumps(review, separators=(",", ":")).encode()


def test_an_admission_review_has_so_many_values() -> None:
    """At most a million; commas and brackets inside of strings are not counted."""
    assert "1" == read_admission_review(_review(MAX_VALUES)).uid
    with pytest.raises(BadReviewError, match="values") as refused:
        read_admission_review(_review(MAX_VALUES + 1))
    assert 413 == refused.value.status
    assert "1" == read_admission_review(_review(7, ',{[\\"' * 700_000)).uid


def test_the_text_of_a_denial_has_a_length() -> None:
    """Up to 8 KiB pass whole; a longer text is cut at a whole character and marked as cut."""
    exact, more = "é" * (MAX_MESSAGE_BYTES // 2), "é" * (MAX_MESSAGE_BYTES // 2) + "!"
    assert exact == shortened(exact)
    told = json.loads(AdmissionResponse(allowed=False, message=more).to_bytes(AdmissionRequest("v1", "1", {})))
    message = told["response"]["status"]["message"]
    assert len(message.encode()) <= MAX_MESSAGE_BYTES
    assert message.endswith(f"é (cut off, {MAX_MESSAGE_BYTES + 1} bytes)")


def test_random_text_has_a_length() -> None:
    """At most 64 KiB."""
    runtime = Runtime(Clock(), Budget())
    whole = "[a]{1000}" * 65 + "[a]{536}"
    assert MAX_LENGTH == len(compile_expression(f"random('{whole}')").evaluate({}, runtime))
    with pytest.raises(BudgetExceededError):
        compile_expression(f"random('{whole}b')").evaluate({}, runtime)


def test_a_regular_expression_has_a_length() -> None:
    """At most 1 KiB."""
    assert compile_pattern("a" * MAX_PATTERN).search(b"a" * MAX_PATTERN)
    with pytest.raises(EvaluationError, match="longer than"):
        compile_pattern("a" * (MAX_PATTERN + 1))


def test_gzip_does_not_grow_without_end() -> None:
    """Decompressed data may be at most a hundred times the compressed size."""
    environment = environment_of_kind("ValidatingPolicy")

    def size(length: int) -> object:
        text = "a" * length
        return environment.compile(f"gzip.decompress(gzip.compress('{text}')).size()").evaluate({})

    assert 4096 == size(4096)
    with pytest.raises(EvaluationError, match="exceeds"):
        size(10_000 * MAX_RATIO // 25)


def test_the_server_accepts_what_the_reference_lists() -> None:
    """7 MiB of a body and 64 MiB in work, 10 s for heads, bodies and reviews, 2,000 connections."""
    limits = Limits()
    assert (7 << 20, 64 << 20) == (limits.body_bytes, limits.bytes_in_work)
    assert (10.0, 10.0, 10.0, 2000) == (
        limits.head_seconds,
        limits.body_seconds,
        limits.review_seconds,
        limits.connections,
    )


def test_deep_objects_are_within_the_limit_of_reviews() -> None:
    """10,000 levels of a review are read, 10,001 are refused."""
    opening = b'{"request": {"uid": "1", "operation": "CREATE", "object": {"a": '
    for levels, is_good in ((9_997, True), (9_998, False)):
        body = opening + b"[" * levels + b"]" * levels + b"}}}"
        if is_good:
            assert "1" == read_admission_review(body).uid
            continue
        with pytest.raises(BadReviewError) as refused:
            read_admission_review(body)
        assert 417 == refused.value.status
    assert Request.from_admission_review(read_admission_review(opening + b"1}}}").request).object == {"a": 1}
