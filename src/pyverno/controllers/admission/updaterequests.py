"""UpdateRequests that follow from an admission request: the work for the background controller, and its data.

Pure functions. Objects are referenced, never copied: more people may read UpdateRequests than Secrets. Rules of one
legacy policy that make objects share a request, each rule that changes existing objects has its own, and so has every
policy in CEL. (Kyverno: pkg/webhooks/resource)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Final

from pyverno.cluster.informer import slim
from pyverno.engine.origin import CLONE_SOURCE, KYVERNO, MANAGED_BY, POLICY_LABELS, Origin, copy_labels
from pyverno.engine.request import Operation, Request
from pyverno.engine.rule import PolicyInfo
from pyverno.engine.triggers import Trigger as SetInMotion
from pyverno.kube.json import JSON, JSONObject
from pyverno.policy.kinds import RULE_KINDS
from pyverno.policy.updaterequest import (
    UNCHANGED,
    AdmissionContext,
    RequestType,
    RuleContext,
    Trigger,
    UpdateRequestSpec,
)
from pyverno.value import replace

__all__ = ["is_made_or_copied", "of_downstream", "reference_of", "source_selector", "update_requests"]

_REFERENCE: Final = (
    "name",
    "namespace",
    "generateName",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
)
_VOLATILE: Final = frozenset({"managedFields", "resourceVersion", "generation", "selfLink"})


def update_requests(
    triggers: Iterable[SetInMotion], request: Request, admission: JSONObject
) -> Iterator[UpdateRequestSpec]:
    """Yield the work of the rules that a request triggers; `admission` is the request as received."""
    context = _context(request, admission)
    if request.operation is Operation.DELETE and isinstance(request.old, dict):
        context = replace(context, kept=slim(request.old))
    for policy, group in groupby(triggers, lambda trigger: trigger.rule.policy):
        found = tuple(group)
        if policy.kind in RULE_KINDS:
            yield from _of_rules(policy, found, request, context)
        else:
            yield _of_cel(policy, found[0], request, context)


def _of_rules(
    policy: PolicyInfo, triggers: Iterable[SetInMotion], request: Request, context: AdmissionContext
) -> Iterator[UpdateRequestSpec]:
    current, former = _trigger(request.subject), _trigger(request.old)
    kept: list[RuleContext] = []
    lapsed: list[RuleContext] = []
    for trigger in triggers:
        name = trigger.rule.name
        if not trigger.generates:
            yield UpdateRequestSpec(
                RequestType.MUTATE, policy.key, rule=name, resource=_trigger(request.subject), context=context
            )
        elif trigger.deletes:
            lapsed.append(RuleContext(name, former, delete_downstream=True))
        else:
            kept.append(RuleContext(name, current))
    for rules, seen in ((kept, context), (lapsed, replace(context, kept=None))):
        if rules:
            yield UpdateRequestSpec(RequestType.GENERATE, policy.key, rule_context=tuple(rules), context=seen)


def _of_cel(policy: PolicyInfo, trigger: SetInMotion, request: Request, context: AdmissionContext) -> UpdateRequestSpec:
    if not trigger.generates:
        return UpdateRequestSpec(RequestType.CEL_MUTATE, policy.key, context=context)
    rule = RuleContext(
        policy.key,
        _trigger(request.subject),
        delete_downstream=trigger.deletes,
        synchronize=trigger.synchronizes,
    )
    context = replace(context, kept=None) if trigger.deletes else context
    return UpdateRequestSpec(RequestType.CEL_GENERATE, policy.key, rule_context=(rule,), context=context)


# ------------------------------------------------------------------------------------ what was made, and what is copied


def is_made_or_copied(request: Request) -> bool:
    """Return whether the object was made by a generate rule, or is one that such a rule copies.

    An update that takes the label of its policy off a generated object ends the synchronization.
    """
    labels = _labels(request.old)
    is_made = bool(labels.get(POLICY_LABELS[0])) and (
        request.object is None or POLICY_LABELS[0] in _labels(request.object)
    )
    return CLONE_SOURCE in labels or is_made


def source_selector(request: Request) -> Mapping[str, str]:
    """Return the labels of the copies of a source; empty for an object that was made itself.

    >>> from pyverno.engine.request import Request
    >>> made = {"metadata": {"labels": {"app.kubernetes.io/managed-by": "kyverno"}}}
    >>> source_selector(Request.from_manifest({"kind": "Secret"}, old=made))
    {}
    """
    if _labels(request.old).get(MANAGED_BY) == KYVERNO or not isinstance(request.old, dict):
        return {}
    return copy_labels(request.old)


def of_downstream(labels: Mapping[str, str], *, deletes: bool) -> UpdateRequestSpec | None:
    """Return the work on one object that was made, by its labels; None where they name no rule of a legacy policy.

    `deletes`: the source that it was copied from is gone.
    """
    origin = Origin.of(labels)
    if origin is None or not origin.rule:
        return None
    found = origin.trigger
    trigger = Trigger(found.api_version, found.kind, found.namespace, found.name, origin.trigger_uid)
    context = RuleContext(origin.rule, trigger, delete_downstream=deletes)
    key = f"{origin.policy_namespace}/{origin.policy}" if origin.policy_namespace else origin.policy
    return UpdateRequestSpec(RequestType.GENERATE, key, rule_context=(context,))


# ---------------------------------------------------------------------------------------------------------------- parts


def _context(request: Request, admission: JSONObject) -> AdmissionContext:
    user = request.user
    sent: JSONObject = dict(admission)
    if _is_stored(request):  # guard: an UpdateRequest references its objects
        sent |= {name: reference_of(admission.get(name)) for name in ("object", "oldObject")}
        if request.operation is Operation.UPDATE and _essence(admission, "object") == _essence(admission, "oldObject"):
            sent[UNCHANGED] = True
    return AdmissionContext(
        user=user.to_json(),
        roles=user.roles,
        cluster_roles=user.cluster_roles,
        request=sent,
        operation=request.operation.value,
    )


def reference_of(body: JSON) -> JSONObject | None:
    """Return what names an object and its version, None where there is none.

    >>> reference_of({"kind": "Secret", "metadata": {"name": "a", "labels": {"b": "c"}}, "data": {"d": "ZQ=="}})
    {'kind': 'Secret', 'metadata': {'name': 'a'}}
    """
    if not isinstance(body, dict):
        return None
    metadata = body.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    named: JSONObject = {key: body[key] for key in ("apiVersion", "kind") if key in body}
    return {**named, "metadata": {key: metadata[key] for key in _REFERENCE if key in metadata}}


def _is_stored(request: Request) -> bool:
    """Return whether the object of a request can be read again; that of an eviction or `exec` cannot."""
    if request.operation is Operation.CONNECT:
        return False
    return not request.subresource or request.operation is Operation.UPDATE


def _essence(admission: JSONObject, name: str) -> JSON:
    body = admission.get(name)
    metadata = body.get("metadata") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(metadata, dict):
        return body
    return {**body, "metadata": {key: value for key, value in metadata.items() if key not in _VOLATILE}}


def _trigger(body: JSON) -> Trigger:
    body = body if isinstance(body, dict) else {}
    metadata = body.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}

    def text(source: JSONObject, key: str) -> str:
        found = source.get(key)
        return found if isinstance(found, str) else ""

    return Trigger(
        text(body, "apiVersion"),
        text(body, "kind"),
        text(metadata, "namespace"),
        text(metadata, "name"),
        text(metadata, "uid"),
    )


def _labels(body: JSON) -> Mapping[str, str]:
    metadata = body.get("metadata") if isinstance(body, dict) else None
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return labels if isinstance(labels, dict) else {}
