"""F1, I11: for any bytes sent as a review, the answer is a review or a refusal, and the server keeps serving.

Real reviews are damaged: bytes and parts changed, dropped, doubled, and pieces put in that other parsers stumble over.
The same seed gives the same bytes; `make nightly` tries a hundred times as many.
"""

from __future__ import annotations

import itertools
import json
import os
import random
from collections.abc import Iterator

from pyverno.engine.host import NO_HOST
from pyverno.kube.json import JSONObject
from pyverno.offline.library import compile_policies
from pyverno.webhook.policies import Policies
from tests.e2e.admission.mixture import mixture
from tests.parity.standingserver import standing_server
from tests.support.webhookserver import MemoryWorld

COUNT = 100_000 if os.environ.get("PYVERNO_NIGHTLY") else 1_000
PIECES = (
    b"null", b"true", b"[]", b"{}", b'""', b"-0", b"1e400", b"1e-400", b"9" * 400, b"NaN", b"Infinity", b'"\\ud800"',
    b"\xff\xfe", b"\x00", b'"\\u0000"', b"[" * 300, b'{"a":' * 300, b'{"a":1,"a":2}',
    b"\\", b'"', b",", b":", b"}", b"]",
    b'"{{ request.object }}"', b'"$(./a)"', b'"DELETE"', b'"CONNECT"', b'"../.."', b'"\xe2\x80\xa8"',
)  # fmt: skip


def _damaged(chance: random.Random, body: bytes) -> bytes:
    for _ in range(chance.randint(1, 4)):
        start = chance.randrange(len(body) + 1)
        end = min(len(body), start + chance.choice((0, 1, 1, 4, 30)))
        match chance.randrange(5):
            case 0:
                body = body[:start] + chance.choice(PIECES) + body[end:]
            case 1:
                body = body[:start] + body[end:]
            case 2:
                body = body[:end] + body[start:end] + body[end:]
            case 3:
                body = body[:start] + bytes(chance.randrange(256) for _ in range(end - start)) + body[end:]
            case _:
                body = _with_other_value(chance, body)
    return body


def _with_other_value(chance: random.Random, body: bytes) -> bytes:
    """Put a piece in the place of a whole value, so that the rest is still JSON."""
    colons = [place for place, byte in enumerate(body) if byte == ord(":")]
    if not colons:
        return body
    start = chance.choice(colons) + 1
    end = min((place for mark in b",}" if (place := body.find(mark, start)) > 0), default=len(body))
    return body[:start] + chance.choice(PIECES) + body[end:]


def _bodies(seed: int) -> Iterator[tuple[str, bytes]]:
    chance = random.Random(seed)  # noqa: S311 - damage, no secret
    seeds = [each for each in itertools.islice(mixture(8).reviews(seed), 200) if each.request is not None]
    while True:
        asked = chance.choice(seeds)
        yield asked.path, _damaged(chance, asked.bytes_for("fuzz"))


def _is_answer(status: int, body: bytes) -> bool:
    told: JSONObject = json.loads(body)
    if status >= 500:
        # which policies apply to an unknown namespace or resource is undecidable: the failurePolicy decides
        return any(text in told["message"] for text in ("available to read Namespace", "is not known"))
    if status != 200:
        return status >= 400 and told["kind"] == "Status"
    response = told["response"]
    has_patch = ("patch" in response) == ("patchType" in response)
    return bool(response["uid"]) and isinstance(response["allowed"], bool) and has_patch


def test_damaged_reviews_are_answered_or_refused() -> None:
    """No internal error, broken connection or missing answer; the last review is judged like the first."""
    known = mixture(8)
    world = MemoryWorld(
        policies=Policies(compile_policies(known.policies)),
        namespaces={each["metadata"]["name"]: each for each in known.namespaces},
    )
    server = standing_server()
    recorded = server.judge_by(world, NO_HOST)
    whole = next(each for each in known.reviews(5) if each.request is not None and not each.asks_host)
    before = server.post(whole.path, whole.bytes_for("whole"))
    codes: set[int] = set()
    for path, body in itertools.islice(_bodies(seed=11), COUNT):
        status, answer = server.post(path, body)
        codes.add(status)
        assert _is_answer(status, answer), (path, body, status, answer)
    assert {200, 400, 417} <= codes
    assert before == server.post(whole.path, whole.bytes_for("whole"))
    assert [] == [error for _, error in recorded.failures if not hasattr(error, "status")]
