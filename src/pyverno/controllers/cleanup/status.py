"""The status of deleting policies: their last execution, and a condition with its outcome."""

from __future__ import annotations

from enum import StrEnum

from pyverno.controllers.cleanup.schedule import write_time
from pyverno.kube.json import JSONObject
from pyverno.value import dataclass

__all__ = ["PolicyCondition", "Reason", "status_of"]


class Reason(StrEnum):
    """The readiness of a policy, with its reason."""

    SCHEDULED = "Scheduled"
    SUCCEEDED = "Succeeded"
    INVALID = "Invalid"
    FAILED = "Failed"
    INCOMPLETE = "Incomplete"
    CONFIRMATION = "ConfirmationRequired"

    @property
    def is_ready(self) -> bool:
        """Return whether nothing has to be done about the policy."""
        return self in (Reason.SCHEDULED, Reason.SUCCEEDED)


@dataclass(frozen=True, slots=True)
class PolicyCondition:
    """The content of the condition `Ready`; `executed` is the time of the last run (None = never)."""

    reason: Reason
    message: str
    executed: float | None = None


def status_of(condition: PolicyCondition, *, is_cel: bool, generation: int, now: float) -> JSONObject:
    """Return the status of a policy; policies in CEL keep their conditions one level lower.

    >>> status_of(PolicyCondition(Reason.SCHEDULED, "ok"), is_cel=False, generation=1, now=0)["conditions"][0]["status"]
    'True'
    """
    written: JSONObject = {
        "type": "Ready",
        "status": "True" if condition.reason.is_ready else "False",
        "reason": condition.reason.value,
        "message": condition.message,
        "observedGeneration": generation,
        "lastTransitionTime": write_time(now),
    }
    status: JSONObject = {"conditions": [written]}
    if is_cel:
        status = {"conditionStatus": {**status, "ready": condition.reason.is_ready, "message": condition.message}}
    if condition.executed is not None:
        status["lastExecutionTime"] = write_time(condition.executed)
    return status
