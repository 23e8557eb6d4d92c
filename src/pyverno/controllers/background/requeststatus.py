"""The status of an UpdateRequest: Kyverno's fields, and a condition with the reason why it is not completed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, NamedTuple

from pyverno.kube.json import JSONObject

__all__ = ["Progress", "progress_of", "status_of"]

_CONDITION: Final = "Completed"
_MAX_MESSAGE: Final = 4096
_MAX_COUNT: Final = 2**31 - 1


class Progress(NamedTuple):
    """The part of a status that another controller may have written: conditions are ours."""

    state: str
    message: str
    retries: int


def progress_of(body: JSONObject) -> Progress:
    """Return the progress of a request.

    >>> progress_of({"status": {"state": "Failed", "retryCount": 2}})
    Progress(state='Failed', message='', retries=2)
    """
    status = body.get("status")
    status = status if isinstance(status, dict) else {}
    return Progress(str(status.get("state") or ""), str(status.get("message") or ""), _retries(status))


def status_of(before: JSONObject, state: str, reason: str, message: str) -> JSONObject:
    """Return the status after work that did not complete the request; `reason` is that of the condition."""
    message = message[:_MAX_MESSAGE]
    condition = {
        "type": _CONDITION,
        "status": "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    found: JSONObject = {**before, "state": state, "message": message, "conditions": [condition]}
    if state == "Failed":
        found["retryCount"] = min(_retries(before) + 1, _MAX_COUNT)
    return found


def _retries(status: JSONObject) -> int:
    """Return the number of retries; the status may be of another writer."""
    found = status.get("retryCount")
    return found if isinstance(found, int) else 0
