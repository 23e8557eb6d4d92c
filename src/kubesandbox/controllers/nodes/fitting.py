"""Whether a pod fits on a node, and how a scheduler says why it does not.

Functions of what is seen. Preferences (affinity weights, spreading) play no part: there is one node. This module must
never write.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from kubesandbox.admission.plugins.usage import Amounts, add, amounts_of, pod_amounts
from kubesandbox.controllers.objects import at, labels_of, name_of
from pyverno.kube.json import JSONObject
from pyverno.kube.quantity import Quantity
from pyverno.kube.selector import compile_selector

__all__ = ["fits", "no_room_message", "tolerates", "unfit_reasons"]

UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
NONE = Quantity(0)
_FULL = ("Insufficient", "Too many")


def unfit_reasons(pod: JSONObject, node: JSONObject, others: Iterable[JSONObject]) -> list[str]:
    """Return why a pod can not be on a node beside the pods that run there, nothing when it can.

    >>> unfit_reasons({"spec": {"nodeSelector": {"disk": "ssd"}}}, {"metadata": {"name": "n"}}, [])
    ["node(s) didn't match Pod's node affinity/selector"]
    """
    spec: JSONObject = pod.get("spec") or {}
    tolerations: list[JSONObject] = spec.get("tolerations") or []
    if spec.get("nodeName") not in (None, "", name_of(node)):
        return ["node(s) didn't match the requested node name"]
    if at(node, "spec", "unschedulable", default=False) and not tolerates(tolerations, UNSCHEDULABLE):
        return ["node(s) were unschedulable"]
    for taint in at(node, "spec", "taints", default=[]):
        if taint.get("effect") in ("NoSchedule", "NoExecute") and not tolerates(tolerations, taint):
            return ["node(s) had untolerated taint(s)"]
    if not _matches_node(spec, node):
        return ["node(s) didn't match Pod's node affinity/selector"]
    return _lacking(pod, node, others)


def fits(pod: JSONObject, node: JSONObject) -> bool:
    """Tell whether a pod may be on a node, however full it is."""
    return all(reason.startswith(_FULL) for reason in unfit_reasons(pod, node, ()))


def no_room_message(reasons: Sequence[Sequence[str]]) -> str:
    """Return the scheduler's text about nodes of which none will do, for each its reasons.

    >>> no_room_message([["node(s) were unschedulable"]])
    '0/1 nodes are available: 1 node(s) were unschedulable. preemption: 0/1 nodes are available: 1 Preemption is not \
helpful for scheduling.'
    """
    if not reasons:
        return "no nodes available to schedule pods"
    counts = Counter(reason for found in reasons for reason in found)
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    head = f"0/{len(reasons)} nodes are available: "
    full = sum(all(reason.startswith(_FULL) for reason in found) for found in reasons)
    preemption = {
        "No preemption victims found for incoming pod": full,
        "Preemption is not helpful for scheduling": len(reasons) - full,
    }
    told = ", ".join(sorted(f"{count} {text}" for text, count in preemption.items() if count))
    return f"{head}{listed}. preemption: {head}{told}."


def tolerates(tolerations: Iterable[JSONObject], taint: JSONObject) -> bool:
    """Tell whether one of the tolerations is for a taint.

    >>> tolerates([{"operator": "Exists"}], {"key": "a", "effect": "NoSchedule"})
    True
    """
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: JSONObject, taint: JSONObject) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("key") not in (None, "", taint.get("key")):
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")


def _matches_node(spec: JSONObject, node: JSONObject) -> bool:
    labels = labels_of(node)
    selector: Mapping[str, str] = spec.get("nodeSelector") or {}
    if not selector.items() <= labels.items():
        return False
    required = at(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(_term(term, node, labels) for term in required.get("nodeSelectorTerms") or ())


def _term(term: JSONObject, node: JSONObject, labels: Mapping[str, str]) -> bool:
    expressions: list[JSONObject] = term.get("matchExpressions") or []
    fields: list[JSONObject] = term.get("matchFields") or []
    if not expressions and not fields:
        return False
    named = {"metadata.name": name_of(node)}
    return all(_matches(item, labels) for item in expressions) and all(_matches(item, named) for item in fields)


def _matches(expression: JSONObject, values: Mapping[str, str]) -> bool:
    operator, key = expression.get("operator"), str(expression.get("key", ""))
    if operator not in ("Gt", "Lt"):
        if key == "metadata.name":
            return (values[key] in (expression.get("values") or ())) == (operator == "In")
        return compile_selector({"matchExpressions": [expression]})(values)
    wanted = (expression.get("values") or [""])[0]
    if not values.get(key, "").lstrip("-").isdigit() or not str(wanted).lstrip("-").isdigit():
        return False
    return int(values[key]) > int(wanted) if operator == "Gt" else int(values[key]) < int(wanted)


def _lacking(pod: JSONObject, node: JSONObject, others: Iterable[JSONObject]) -> list[str]:
    room = amounts_of(at(node, "status", "allocatable", default={}))
    present = list(others)
    wanted = {name: amount for name, amount in pod_amounts(pod.get("spec") or {}, "requests").items() if amount.sign()}
    total: Amounts = dict(wanted)
    if wanted:
        for item in present:
            total = add(total, pod_amounts(item.get("spec") or {}, "requests"))
    lacking = [f"Insufficient {name}" for name in wanted if total[name] > room.get(name, NONE)]
    if "pods" in room and Quantity(len(present) + 1) > room["pods"]:
        lacking.append("Too many pods")
    return lacking
