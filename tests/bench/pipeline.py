"""B18: a million results through the pipeline of reports while no controller aggregates them."""

from __future__ import annotations

import asyncio
from functools import cache

from tests.bench.inputs import policy_documents
from tests.support.reportpipeline import Flow, send_through

__all__ = ["stored_share", "unmetered", "wrong_reports"]

_REQUESTS = 47_620
_CAP = 10_000
_PODS = 500


@cache
def _flow() -> Flow:
    policies = [document.value for document in policy_documents()]
    flow = asyncio.run(send_through(policies, requests=_REQUESTS, cap=_CAP, pods=_PODS))
    assert flow.results >= 1_000_000, flow
    return flow


def stored_share() -> float:
    """B18: ephemeral reports in the cluster by the most that there may be."""
    return _flow().most_stored / _CAP


def unmetered() -> float:
    """Return how many requests have neither a report nor are counted as dropped."""
    flow = _flow()
    return abs(flow.requests - flow.most_stored - flow.dropped)


def wrong_reports() -> float:
    """Return how many objects have reports other than the library's results once a controller runs again."""
    return _flow().differences + _flow().left
