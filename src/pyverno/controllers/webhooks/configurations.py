"""The webhook configurations for the API server: whole objects, computed from policies and settings.

A pure function: the same policies always give the same bytes, so that unchanged configurations are not written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from pyverno.controllers.state.policystore import own_paths
from pyverno.controllers.webhooks.celpolicies import cel_hooks
from pyverno.controllers.webhooks.rules import ALL_OPERATIONS, Entry, legacy_entries, write_rules
from pyverno.controllers.webhooks.sources import FAILURES, Endpoint, Hook, PolicyKey, Settings, Sources, key_of
from pyverno.kube.json import JSONObject, encode
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.kinds import RULE_KINDS
from pyverno.value import dataclass, replace
from pyverno.webhook.routes import Route, WebhookType

__all__ = [
    "MUTATING_CONFIGURATION",
    "VALIDATING_CONFIGURATION",
    "Endpoint",
    "Plan",
    "Settings",
    "Sources",
    "configurations",
    "plan",
]

VALIDATING_CONFIGURATION = "kyverno-resource-validating-webhook-cfg"
MUTATING_CONFIGURATION = "kyverno-resource-mutating-webhook-cfg"
_MANAGED = {"webhook.kyverno.io/managed-by": "kyverno"}
_MAX_TIMEOUT = 30
_MAX_NAME = 253
_BOOTSTRAP = {
    "name": "kyverno-exclude-bootstrap-resources",
    "expression": (
        "!(request.resource.group == '' && request.resource.resource == 'nodes') && "
        "!(request.resource.group == 'certificates.k8s.io' && "
        "request.resource.resource == 'certificatesigningrequests')"
    ),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """The validating and the mutating configuration for resources, and which policies their webhooks ask, by name."""

    configurations: tuple[JSONObject, JSONObject]
    policies: Mapping[str, tuple[PolicyKey, ...]]


def configurations(sources: Sources) -> tuple[JSONObject, JSONObject]:
    """Return the validating and the mutating configuration for resources; without policies they have no webhooks."""
    return plan(sources).configurations


def plan(sources: Sources) -> Plan:
    """Return the configurations and the policies that they cover."""
    found = (*_legacy(sources), *cel_hooks(sources)) if sources.settings.updates else tuple(_static(sources))
    hooks = tuple(_with_names_of_their_own(found))
    return Plan(
        (
            _configuration("Validating", VALIDATING_CONFIGURATION, WebhookType.VALIDATE, hooks, sources),
            _configuration("Mutating", MUTATING_CONFIGURATION, WebhookType.MUTATE, hooks, sources),
        ),
        {hook.name: hook.policies for hook in hooks},
    )


def _with_names_of_their_own(hooks: Iterable[Hook]) -> Iterator[Hook]:
    """Yield the webhooks, each with a name that no other has and that is not too long: the API server wants both.

    Kyverno's can be equal: those of policies about images and their namespaced twins, `a` in `b-c` and `c-a` in `b`.
    """
    names: set[str] = set()
    for hook in hooks:
        name = hook.name
        if name in names or len(name) > _MAX_NAME:
            digest = hashlib.sha256(encode([hook.path, hook.namespace_selector]).encode()).hexdigest()[:8]
            name = f"{name[: _MAX_NAME - len(digest) - 1].rstrip('.-')}-{digest}"
        names.add(name)
        yield hook if name == hook.name else replace(hook, name=name)


def _configuration(
    word: str, name: str, webhook_type: WebhookType, hooks: Sequence[Hook], sources: Sources
) -> JSONObject:
    written = [_render_webhook(hook, sources) for hook in hooks if hook.webhook_type is webhook_type]
    metadata: JSONObject = {"name": name, "labels": {**sources.configuration.webhook_labels, **_MANAGED}}
    if sources.configuration.webhook_annotations:
        metadata["annotations"] = dict(sources.configuration.webhook_annotations)
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{word}WebhookConfiguration",
        "metadata": metadata,
        "webhooks": sorted(written, key=lambda hook: hook["name"]),
    }


def _render_webhook(hook: Hook, sources: Sources) -> JSONObject:
    failure_policy = "Ignore" if sources.settings.forces_ignore else hook.failure_policy
    conditions = list(hook.conditions)
    is_there = any(each.get("name") == _BOOTSTRAP["name"] for each in conditions)
    if sources.settings.excludes_bootstrap and failure_policy == "Fail" and not is_there:
        conditions.append(_BOOTSTRAP)
    optional = {
        "timeoutSeconds": hook.timeout,
        "matchPolicy": hook.match_policy or None,
        "namespaceSelector": hook.namespace_selector,
        "objectSelector": hook.object_selector,
        "matchConditions": conditions or None,
        "reinvocationPolicy": "IfNeeded" if hook.reinvokes else None,
    }
    return {
        "name": hook.name,
        "clientConfig": sources.endpoint.client_config(hook.path),
        "rules": list(hook.rules),
        "failurePolicy": failure_policy,
        "sideEffects": hook.side_effects,
        "admissionReviewVersions": ["v1"],
        **{key: value for key, value in optional.items() if value is not None},
    }


# ------------------------------------------------------------------------------------------- ClusterPolicy and Policy


def _legacy(sources: Sources) -> Iterator[Hook]:
    active = [policy for policy in sources.legacy if policy.spec.admission]
    owners = own_paths(active)
    for webhook_type in WebhookType:
        for failure in FAILURES:
            group = [policy for policy in active if _failure(policy, sources) == failure]
            shared = [policy for policy in group if (policy.kind, policy.key) not in owners]
            route = Route(webhook_type, RULE_KINDS, failure)
            yield from _legacy_hook(route, f"{webhook_type.value}.kyverno.svc-{failure.lower()}", shared, sources)
            for policy in group:
                if (policy.kind, policy.key) in owners:
                    yield from _own_hook(route, policy, sources)


def _failure(policy: ClusterPolicy, sources: Sources) -> str:
    return "Ignore" if sources.settings.forces_ignore else policy.spec.failure_policy.value


def _own_hook(shared: Route, policy: ClusterPolicy, sources: Sources) -> Iterator[Hook]:
    namespace = (policy.namespace or "") if policy.is_namespaced else ""
    route = Route(
        shared.webhook_type, shared.kinds, shared.failure_policy, (policy.name,), namespace, is_finegrained=True
    )
    name = f"{shared.webhook_type.value}.kyverno.svc-{shared.failure_policy.lower()}-finegrained-"
    name += f"{namespace}-{policy.name}" if namespace else policy.name
    conditions = tuple(
        {"name": each.name, "expression": each.expression} for each in policy.spec.webhook.match_conditions
    )
    yield from _legacy_hook(route, name, [policy], sources, conditions)


def _legacy_hook(
    route: Route,
    name: str,
    policies: Sequence[ClusterPolicy],
    sources: Sources,
    conditions: tuple[JSONObject, ...] | None = None,
) -> Iterator[Hook]:
    asked: set[Entry] = set()
    found: list[PolicyKey] = []
    timeout = sources.settings.timeout
    for policy in policies:
        entries = sources.memo.get(
            route.webhook_type,
            policy,
            partial(legacy_entries, policy, route.webhook_type, sources.kinds),
            given=sources.kinds,
        )
        asked.update(entries)
        if entries:
            found.append(key_of(policy))
            timeout = max(timeout, policy.spec.webhook.timeout_seconds or 0)
    if not asked:
        return
    settings = sources.configuration
    silent = route.webhook_type is WebhookType.VALIDATE and not sources.settings.reports_admission
    yield Hook(
        name=name,
        webhook_type=route.webhook_type,
        path=route.path,
        rules=tuple(write_rules(asked)),
        failure_policy=route.failure_policy,
        policies=tuple(found),
        side_effects="None" if silent else "NoneOnDryRun",
        timeout=min(timeout, _MAX_TIMEOUT),
        match_policy="Equivalent",
        namespace_selector=settings.namespace_selector,
        object_selector=settings.object_selector or {},
        conditions=settings.match_conditions if conditions is None else conditions,
        reinvokes=route.webhook_type is WebhookType.MUTATE,
    )


def _static(sources: Sources) -> Iterator[Hook]:
    """Yield webhooks for all resources, for installations whose configurations do not follow the policies."""
    for webhook_type in WebhookType:
        operations = ALL_OPERATIONS if webhook_type is WebhookType.VALIDATE else ("CREATE", "UPDATE")
        silent = webhook_type is WebhookType.VALIDATE and not sources.settings.reports_admission
        rule = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": list(operations)}
        for failure in FAILURES:
            route = Route(webhook_type, RULE_KINDS, failure)
            yield Hook(
                name=f"{webhook_type.value}.kyverno.svc-{failure.lower()}",
                webhook_type=webhook_type,
                path=route.path,
                rules=({**rule, "scope": "*"},),
                failure_policy=failure,
                side_effects="None" if silent else "NoneOnDryRun",
                timeout=sources.settings.timeout,
                match_policy="Equivalent",
                reinvokes=webhook_type is WebhookType.MUTATE,
            )
