"""Operations on pods through their subresources: binding to a node, eviction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from kubesandbox.apiserver import ApiServer
from kubesandbox.objects.metadata import metadata_of, timestamp
from kubesandbox.objects.subresources import bound
from kubesandbox.parsing.requests import DeleteOptions
from kubesandbox.storage.store import Stored
from kubesandbox.submissions import submitted
from kubesandbox.writes import Outcome, Write
from pyverno.errors import ValueSyntaxError
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSONObject
from pyverno.kube.selector import compile_selector
from pyverno.kube.status import Cause, StatusError, bad_request, internal_error, too_many_requests

__all__ = ["POSTED", "bind", "evict"]

_BUDGETS = "poddisruptionbudgets.policy"
_DONE: JSONObject = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
_UNPROTECTED = frozenset({"Succeeded", "Failed", "Pending"})


async def bind(server: ApiServer, write: Write, binding: JSONObject) -> Outcome:
    """Put a pod on the node that a Binding names; raises StatusError 409 when it is on one already."""
    binding = await submitted(server, write, binding, GVK("", "v1", "Binding"))
    if not (binding.get("target") or {}).get("name"):
        raise bad_request("a Binding needs the name of its target")

    async def make(current: JSONObject) -> tuple[JSONObject, bool]:
        return bound(current, binding, timestamp(server.now())), False

    # the Binding has been admitted, and what it sets has no manager
    pods = server.table.versions_of("pods")[0]
    await server.rewritten(replace(write, type=pods, manager=""), make, is_admitted=True, is_checked=False)
    return Outcome(_DONE, 201)


async def evict(server: ApiServer, write: Write, eviction: JSONObject) -> Outcome:
    """Delete a pod if its disruption budget allows; raises StatusError 429 when it does not."""
    eviction = await submitted(server, write, eviction, GVK("policy", "v1", "Eviction"))
    options = DeleteOptions.from_json(eviction.get("deleteOptions") or {})
    options = replace(options, dry_run=options.dry_run or write.options.dry_run)
    pod = server.get(write.type, write.namespace, write.name)
    phase = (pod.body.get("status") or {}).get("phase")
    if phase not in _UNPROTECTED and not metadata_of(pod.body).get("deletionTimestamp"):
        _disrupt(server, pod, is_dry=options.dry_run)
    if not options.dry_run:
        _mark(server, pod)
    await server.delete(replace(write, subresource=""), options)
    return Outcome(_DONE, 201)


def _mark(server: ApiServer, pod: Stored) -> None:
    """Set the condition `DisruptionTarget` of an evicted pod, which Job policies and disruption budgets read."""
    status: JSONObject = pod.body.get("status") or {}
    others = [item for item in status.get("conditions") or () if item.get("type") != "DisruptionTarget"]
    condition: JSONObject = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(server.now()),
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    server.store.put(pod.key, {**pod.body, "status": {**status, "conditions": [*others, condition]}})


def _disrupt(server: ApiServer, pod: Stored, *, is_dry: bool) -> None:
    """Take one disruption out of the budget of a pod."""
    budgets = [state for state in server.store.all(_BUDGETS, pod.key.namespace) if _selects(state.body, pod.body)]
    if not budgets:
        return
    if len(budgets) > 1:
        raise internal_error(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    budget = budgets[0].body
    status: JSONObject = budget.get("status") or {}
    name = metadata_of(budget)["name"]
    if (status.get("observedGeneration") or 0) < (metadata_of(budget).get("generation") or 0):
        raise _refused(f"The disruption budget {name} is still being processed by the server.", retry_after=10)
    allowed = status.get("disruptionsAllowed") or 0
    if allowed <= 0:
        wanted, present = status.get("desiredHealthy") or 0, status.get("currentHealthy") or 0
        raise _refused(f"The disruption budget {name} needs {wanted} healthy pods and has {present} currently")
    if is_dry:
        return
    disrupted = {**(status.get("disruptedPods") or {}), pod.key.name: timestamp(server.now())}
    after = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}
    server.store.put(budgets[0].key, {**budget, "status": after})


def _refused(why: str, retry_after: int = 0) -> StatusError:
    text = "Cannot evict pod as it would violate the pod's disruption budget."
    return too_many_requests(text, retry_after, causes=[Cause("DisruptionBudget", why)])


def _selects(budget: JSONObject, pod: JSONObject) -> bool:
    selector = (budget.get("spec") or {}).get("selector")
    try:
        return compile_selector(selector)(metadata_of(pod).get("labels") or {})
    except ValueSyntaxError:
        return False


POSTED: Mapping[tuple[str, str], Callable[[ApiServer, Write, JSONObject], Awaitable[Outcome]]] = {
    ("pods", "binding"): bind,
    ("pods", "eviction"): evict,
}
"""The effects of a POST to a subresource, by the resource and the subresource."""
