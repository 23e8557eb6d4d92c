"""UpdateRequests that follow from an admission request: which work is handed to the background, and with what.

Pure functions. Rules of one legacy policy that make objects share a request, a rule that changes existing objects has
one of its own, and so has every policy in CEL. This module must never write to a cluster. (Kyverno:
pkg/webhooks/resource)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Final

from pyverno.cluster.informer import slim
from pyverno.engine.request import Request
from pyverno.engine.rule import PolicyInfo
from pyverno.engine.triggers import Trigger as SetInMotion
from pyverno.kube.gvk import parse_api_version
from pyverno.kube.json import JSON, JSONObject
from pyverno.policy.kinds import RULE_KINDS
from pyverno.policy.updaterequest import AdmissionContext, RequestType, RuleContext, Trigger, UpdateRequestSpec

__all__ = ["is_made_or_copied", "of_downstream", "source_selector", "update_requests"]

_PREFIX: Final = "generate.kyverno.io/"
_CLONE_SOURCE: Final = f"{_PREFIX}clone-source"
_POLICY: Final = f"{_PREFIX}policy-name"
_MANAGED: Final = "app.kubernetes.io/managed-by"


def update_requests(
    triggers: Iterable[SetInMotion], request: Request, admission: JSONObject
) -> Iterator[UpdateRequestSpec]:
    """Yield the work that rules which a request set in motion ask for; `admission` is the request as it came."""
    context = _context(request, admission)
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
    for rules in (kept, lapsed):
        if rules:
            yield UpdateRequestSpec(RequestType.GENERATE, policy.key, rule_context=tuple(rules), context=context)


def _of_cel(policy: PolicyInfo, trigger: SetInMotion, request: Request, context: AdmissionContext) -> UpdateRequestSpec:
    if not trigger.generates:
        return UpdateRequestSpec(RequestType.CEL_MUTATE, policy.key, context=context)
    rule = RuleContext(
        policy.key,
        _trigger(request.subject),
        delete_downstream=trigger.deletes,
        synchronize=trigger.synchronizes,
    )
    return UpdateRequestSpec(RequestType.CEL_GENERATE, policy.key, rule_context=(rule,), context=context)


# ------------------------------------------------------------------------------------ what was made, and what is copied


def is_made_or_copied(request: Request) -> bool:
    """Tell whether the object was made by a generate rule, or is one that such a rule copies."""
    labels = _labels(request.old)
    return _CLONE_SOURCE in labels or bool(labels.get(_POLICY))


def source_selector(request: Request) -> Mapping[str, str]:
    """Return the labels of the copies of a source; empty for an object that was made itself.

    >>> from pyverno.engine.request import Request
    >>> made = {"metadata": {"labels": {"app.kubernetes.io/managed-by": "kyverno"}}}
    >>> source_selector(Request.from_manifest({"kind": "Secret"}, old=made))
    {}
    """
    if _labels(request.old).get(_MANAGED) == "kyverno":
        return {}
    source = _trigger(request.old)
    group, version = parse_api_version(source.api_version)
    return {
        f"{_PREFIX}source-group": group,
        f"{_PREFIX}source-version": version,
        f"{_PREFIX}source-kind": source.kind,
        f"{_PREFIX}source-namespace": source.namespace,
        f"{_PREFIX}source-uid": source.uid,
    }


def of_downstream(labels: Mapping[str, str], *, deletes: bool) -> UpdateRequestSpec | None:
    """Return the work on one object that was made, by its labels; None where they name no rule of a legacy policy.

    `deletes`: the source that it was copied from is gone.
    """
    rule = labels.get(f"{_PREFIX}rule-name")
    name = labels.get(_POLICY)
    if not rule or not name:
        return None
    namespace = labels.get(f"{_PREFIX}policy-namespace")
    group, version = (labels.get(f"{_PREFIX}trigger-{part}", "") for part in ("group", "version"))
    trigger = Trigger(
        f"{group}/{version}" if group else version,
        *(labels.get(f"{_PREFIX}trigger-{part}", "") for part in ("kind", "namespace", "name", "uid")),
    )
    context = RuleContext(rule, trigger, delete_downstream=deletes)
    key = f"{namespace}/{name}" if namespace else name
    return UpdateRequestSpec(RequestType.GENERATE, key, rule_context=(context,))


# ---------------------------------------------------------------------------------------------------------------- parts


def _context(request: Request, admission: JSONObject) -> AdmissionContext:
    user = request.user
    objects = {name: admission.get(name) for name in ("object", "oldObject")}
    sent = {**admission, **{name: slim(body) if isinstance(body, dict) else None for name, body in objects.items()}}
    return AdmissionContext(
        user=user.to_json(),
        roles=user.roles,
        cluster_roles=user.cluster_roles,
        request=sent,
        operation=request.operation.value,
    )


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
