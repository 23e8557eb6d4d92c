"""The work for one changed object: the same in a small cluster and in one with many times as many objects."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from kubesandbox.storage.store import Key
from pyverno.kube.reportapis import POLICY_REPORTS
from tests.unit.controllers.reports.policies import policy
from tests.unit.controllers.reports.test_cluster import CLUSTER_POLICIES, Stage, pod, stage

_ROOMS = ("/pyverno/controllers/reports/", "/pyverno/cluster/informer.py", "/pyverno/controllers/runtime/workqueue.py")
_PERIODIC = ("Scanner._tour", ".is_settled", ".is_idle", ".is_synced")
"""What runs by the clock and not because of a change."""
_FEW, _MANY = 20, 220
_NOISE = 150
"""Lines that depend on how often a task wakes; one look at each further object would be more."""


def test_the_cost_of_a_changed_object_does_not_grow_with_the_cluster() -> None:
    """Lines that run in the event loop's thread are counted, and the requests that the controller sends."""
    sent: list[str] = []

    async def check() -> tuple[tuple[int, set[str]], tuple[int, set[str]]]:
        async with stage(log_request=sent.append) as made:
            fill(made, range(_FEW))
            await made.client.create(CLUSTER_POLICIES, policy("no-latest"))
            await made.settle()
            few = await change(made, 1, sent)
            fill(made, range(_FEW, _MANY))
            await made.settle()
            return few, await change(made, 2, sent)

    (few, requests), (many, later) = asyncio.run(check())
    assert (True, {"GET", "PUT"}, {"GET", "PUT"}) == (abs(many - few) < _NOISE, requests, later), (few, many)


def fill(made: Stage, numbers: Iterable[int], image: str = "nginx:1") -> None:
    """Store Pods, as if they had been created or changed."""
    for number in numbers:
        body = pod(f"web-{number}", image)
        body["metadata"] |= {"uid": f"uid-{number:08}", "creationTimestamp": "2026-01-01T00:00:00Z"}
        made.sandbox.server.store.put(Key("pods", "team", f"web-{number}"), body)


async def change(made: Stage, number: int, sent: list[str]) -> tuple[int, set[str]]:
    """Have a Pod violate the policy; return the lines and requests until its report is another one."""
    uid = f"uid-{number:08}"
    version = (await made.client.get(POLICY_REPORTS.namespaced, uid, "team"))["metadata"]["resourceVersion"]
    sent.clear()
    with counted_lines() as lines:
        fill(made, [number], "nginx:latest")
        await made.until(lambda: is_another(made, uid, version))
    return sum(lines.values()), {each for line in sent if (each := request_of(line, uid))}


def request_of(line: str, uid: str) -> str:
    """Return the method of a request for the report, and others whole; "" for leases, events and watches."""
    if any(part in line for part in ("/leases", "/events", "watch=1")):
        return ""
    method, path, _ = line.split(" ", 2)
    return method if path.endswith(f"/policyreports/{uid}") else f"{method} {path}"


async def is_another(made: Stage, uid: str, version: str) -> bool:
    """Return whether a report was written since that version."""
    report = await made.client.get(POLICY_REPORTS.namespaced, uid, "team")
    return bool(report["metadata"]["resourceVersion"] != version)


@contextmanager
def counted_lines() -> Iterator[Counter[CodeType]]:
    """Count the lines of the controller that run in this thread, by function."""
    lines: Counter[CodeType] = Counter()

    def count(frame: FrameType, event: str, _argument: object) -> Any:
        if event == "line":
            lines[frame.f_code] += 1
        return count

    def begin(frame: FrameType, _event: str, _argument: object) -> Any:
        code = frame.f_code
        is_counted = any(room in code.co_filename for room in _ROOMS)
        return count if is_counted and not any(name in code.co_qualname for name in _PERIODIC) else None

    before = sys.gettrace()
    sys.settrace(begin)
    try:
        yield lines
    finally:
        sys.settrace(before)
