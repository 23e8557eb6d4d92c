"""The policies of a Job: what a failed pod means (podFailurePolicy), and when enough has succeeded (successPolicy).

Functions of what is seen; upstream: `pkg/controller/job`. This module must never write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubesandbox.controllers.objects import at, is_deleting, name_of, namespace_of, number_at
from kubesandbox.controllers.pods import conditions_of, phase_of
from kubesandbox.controllers.workloads.jobindexes import indexes_of
from pyverno.kube.json import JSONObject
from pyverno.value import dataclass

__all__ = ["Failure", "failing_message", "failure_of", "is_failed_pod", "matched_success", "replaces_only_failed"]


@dataclass(frozen=True, slots=True)
class Failure:
    """What a failed pod means: the action of the rule that it matches, if any, and why the Job fails by it.

    A failure that is not counted is tried again without end.
    """

    action: str = ""
    message: str = ""

    @property
    def is_counted(self) -> bool:
        """Tell whether it counts against the limits of the Job."""
        return self.action != "Ignore"


def replaces_only_failed(job: JSONObject) -> bool:
    """Tell whether a pod that is being deleted is replaced only when it has come to its end."""
    return at(job, "spec", "podReplacementPolicy") == "Failed" or at(job, "spec", "podFailurePolicy") is not None


def is_failed_pod(pod: JSONObject, job: JSONObject) -> bool:
    """Tell whether a pod counts as a failure: it says so, or it is being deleted before it came to its end."""
    if phase_of(pod) == "Failed":
        return True
    return is_deleting(pod) and phase_of(pod) != "Succeeded" and not replaces_only_failed(job)


def failure_of(job: JSONObject, pod: JSONObject) -> Failure:
    """Return what the first rule that a failed pod matches makes of it.

    >>> rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
    >>> job = {"spec": {"podFailurePolicy": {"rules": [rule]}}}
    >>> state = {"terminated": {"exitCode": 42}}
    >>> pod = {"metadata": {"name": "p"}, "status": {"containerStatuses": [{"name": "c", "state": state}]}}
    >>> failure_of(job, pod).action
    'FailJob'
    """
    for number, rule in enumerate(at(job, "spec", "podFailurePolicy", "rules", default=())):
        action = str(rule.get("action", ""))
        if rule.get("onExitCodes") is not None:
            why = _matched_exit(pod, rule["onExitCodes"])
        else:
            why = _matched_condition(pod, rule.get("onPodConditions") or ())
        if not why:
            continue
        if action != "FailJob":
            return Failure(action)
        return Failure(action, f"{why} matching {action} rule at index {number}")
    return Failure()


def _matched_exit(pod: JSONObject, wanted: JSONObject) -> str:
    """Return which container ended with such a code, in the words of messages, or nothing."""
    values = wanted.get("values") or ()
    for status in _statuses(pod):
        code = number_at(status, "state", "terminated", "exitCode")
        if not code or wanted.get("containerName") not in (None, status.get("name")):
            continue
        if (code in values) == (wanted.get("operator") == "In"):
            return f"Container {status.get('name')} for pod {_place(pod)} failed with exit code {code}"
    return ""


def _statuses(pod: JSONObject) -> Iterator[JSONObject]:
    for group in ("containerStatuses", "initContainerStatuses"):
        yield from at(pod, "status", group, default=())


def _matched_condition(pod: JSONObject, patterns: Iterable[JSONObject]) -> str:
    wanted = {(item.get("type"), item.get("status") or "True") for item in patterns}
    for present in conditions_of(pod):
        if (present.get("type"), present.get("status")) in wanted:
            return f"Pod {_place(pod)} has condition {present['type']}"
    return ""


def _place(pod: JSONObject) -> str:
    return f"{namespace_of(pod)}/{name_of(pod)}"


def failing_message(job: JSONObject, pods: Iterable[JSONObject]) -> str:
    """Return why a pod of these fails the whole Job, empty when none does."""
    if at(job, "spec", "podFailurePolicy") is None:
        return ""
    messages = (failure_of(job, pod).message for pod in pods if is_failed_pod(pod, job))
    return next((message for message in messages if message), "")


def matched_success(job: JSONObject, succeeded: set[int]) -> str:
    """Return which rule of the success policy is met by these completions, in the words of messages, or nothing.

    >>> rules = [{"succeededIndexes": "0,2-3", "succeededCount": 2}]
    >>> job = {"spec": {"completions": 5, "successPolicy": {"rules": rules}}}
    >>> matched_success(job, {1, 2}), matched_success(job, {0, 3})
    ('', 'Matched rules at index 0')
    """
    for number, rule in enumerate(at(job, "spec", "successPolicy", "rules", default=()) if succeeded else ()):
        count, wanted = rule.get("succeededCount"), rule.get("succeededIndexes")
        if wanted is None:
            is_met = count is not None and len(succeeded) >= count
        else:
            needed = {index for index in indexes_of(wanted) if index < number_at(job, "spec", "completions")}
            met = needed & succeeded
            is_met = bool(needed) and (met == needed or (count is not None and len(met) >= count))
        if is_met:
            return f"Matched rules at index {number}"
    return ""
