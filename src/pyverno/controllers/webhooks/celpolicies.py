"""The webhooks of policies in CEL: shared by selectors and failurePolicy, or a policy's own. (Kyverno:
pkg/controllers/webhook/validating.go)
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from pyverno.compiler.autogen.cel import copies_of
from pyverno.compiler.cel.webhookconditions import webhook_conditions
from pyverno.controllers.webhooks.rules import ALL_OPERATIONS, constraint_rules, sorted_rules
from pyverno.controllers.webhooks.sources import FAILURES, Hook, Sources, key_of
from pyverno.kube.json import JSONObject, encode
from pyverno.policy.cel.constraints import MatchConstraints
from pyverno.policy.cel.imagepolicy import ImageValidatingPolicy
from pyverno.policy.cel.policies import CelPolicy, GeneratingPolicy
from pyverno.value import dataclass
from pyverno.webhook.configuration import Configuration
from pyverno.webhook.routes import CEL_ROUTES, Route

__all__ = ["cel_hooks"]

_MAX_CONDITIONS = 64
"""Kubernetes accepts no more for one webhook."""


@dataclass(frozen=True, slots=True)
class _Selectors:
    namespace: JSONObject | None
    object: JSONObject | None

    @property
    def digest(self) -> str:
        return hashlib.sha256(encode([self.namespace, self.object]).encode()).hexdigest()[:8]


def cel_hooks(sources: Sources) -> Iterator[Hook]:
    """Yield the webhooks of the CEL policies, cluster-wide kinds before their namespaced twins."""
    for prefix, route in CEL_ROUTES.items():
        [kind] = route.kinds
        policies = sorted(
            (policy for policy in sources.cel if policy.kind == kind and _needs_webhook(policy, prefix)),
            key=lambda policy: (policy.namespace, policy.name),
        )
        yield from _cel_hooks(route, _base_name(prefix), policies, sources)


def _needs_webhook(policy: CelPolicy, prefix: str) -> bool:
    spec = policy.spec
    if not spec.evaluation.admission or spec.match_constraints is None or spec.evaluation.mode.value != "Kubernetes":
        return False
    if prefix.endswith("/mutate") and isinstance(policy, ImageValidatingPolicy):
        return policy.spec.validation_configurations.mutate_digest
    return True


def _base_name(prefix: str) -> str:
    """Return the first part of a webhook's name: `vpol.validate.kyverno.svc`."""
    word, _, webhook_type = prefix.removeprefix("/").partition("/")
    return f"{word.removeprefix('n') if word == 'nivpol' else word}.{webhook_type or 'validate'}.kyverno.svc"


def _cel_hooks(route: Route, base: str, policies: Sequence[CelPolicy], sources: Sources) -> Iterator[Hook]:
    groups: dict[str, tuple[_Selectors, list[CelPolicy]]] = {}
    for policy in policies:
        conditions = _conditions(policy, sources)
        if conditions is not None or _has_wishes(policy):
            yield _own_hook(route, base, policy, conditions or (), sources)
        else:
            selectors = _selectors(policy, sources.configuration)
            groups.setdefault(selectors.digest, (selectors, []))[1].append(policy)
    for digest, (selectors, members) in groups.items():
        suffix = f"-{digest}" if len(groups) > 1 else ""
        for failure in FAILURES:
            asked = [policy for policy in members if _cel_failure(policy, sources) == failure]
            if asked:
                yield Hook(
                    name=f"{base}-{failure.lower()}{suffix}",
                    webhook_type=route.webhook_type,
                    path=route.with_names(tuple(policy.name for policy in members)).path,
                    rules=_cel_rules(asked, sources),
                    failure_policy=failure,
                    policies=tuple(key_of(policy) for policy in asked),
                    namespace_selector=selectors.namespace,
                    object_selector=selectors.object,
                )


def _own_hook(route: Route, base: str, policy: CelPolicy, conditions: tuple[JSONObject, ...], sources: Sources) -> Hook:
    spec = policy.spec
    failure = _cel_failure(policy, sources)
    selectors = _selectors(policy, sources.configuration)
    place = f"{policy.namespace}-{policy.name}" if policy.is_namespaced else policy.name
    return Hook(
        name=f"{base}-{failure.lower()}-finegrained-{place}",
        webhook_type=route.webhook_type,
        path=route.with_names((policy.name,)).path,
        rules=_cel_rules([policy], sources),
        failure_policy=failure,
        policies=(key_of(policy),),
        timeout=spec.timeout_seconds,
        match_policy="Exact" if _is_exact(policy) else "",
        namespace_selector=selectors.namespace,
        object_selector=selectors.object,
        conditions=conditions,
    )


def _is_exact(policy: CelPolicy) -> bool:
    match_policy = _select(policy).match_policy
    return match_policy is not None and match_policy.value == "Exact"


def _has_wishes(policy: CelPolicy) -> bool:
    """Return whether a policy needs its own webhook: a timeout or exact matching."""
    return policy.spec.timeout_seconds is not None or _is_exact(policy)


def _conditions(policy: CelPolicy, sources: Sources) -> tuple[JSONObject, ...] | None:
    """Return the conditions for the API server; None when the engine has to judge them, or there are none.

    The engine judges conditions that are left out here: in a configuration they only save calls.
    """
    spec = policy.spec
    if not spec.match_conditions or key_of(policy) in sources.unconditional:
        return None
    found = sources.memo.get("conditions", policy, partial(webhook_conditions, policy))
    if found is None:
        return None
    most = _MAX_CONDITIONS - sources.settings.excludes_bootstrap
    written = tuple({"name": each.name, "expression": each.expression} for each in found)
    return written if len(written) <= most else ()


def _cel_failure(policy: CelPolicy, sources: Sources) -> str:
    if sources.settings.forces_ignore:
        return "Ignore"
    if isinstance(policy, GeneratingPolicy):
        return "Ignore"
    return policy.spec.failure_policy.value


def _cel_rules(policies: Iterable[CelPolicy], sources: Sources) -> tuple[JSONObject, ...]:
    found = (sources.memo.get("rules", policy, partial(_rules_of, policy)) for policy in policies)
    return sorted_rules(rule for rules in found for rule in rules)


def _rules_of(policy: CelPolicy) -> tuple[JSONObject, ...]:
    operations = ALL_OPERATIONS if isinstance(policy, GeneratingPolicy) else ()
    found = (constraint_rules(constraints.resource_rules, operations) for constraints in _constraints(policy))
    return tuple(rule for rules in found for rule in rules)


def _constraints(policy: CelPolicy) -> Iterator[MatchConstraints]:
    """Yield the resources of the copies for pod controllers, then those of the policy itself."""
    for copy in copies_of(policy):
        yield _select(copy.policy)
    yield _select(policy)


def _select(policy: CelPolicy) -> MatchConstraints:
    constraints = policy.spec.match_constraints
    assert constraints is not None  # noqa: S101  # `_is_asked` saw to that
    return constraints


def _selectors(policy: CelPolicy, configuration: Configuration) -> _Selectors:
    constraints = _select(policy)
    namespace = constraints.namespace_selector
    if policy.is_namespaced:
        own = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [policy.namespace]}
        namespace = {"matchExpressions": [own]}
    # Kyverno: the policy's own selector of namespaces counts for cluster-wide policies only
    return _Selectors(
        _merge(namespace, configuration.namespace_selector),
        _merge(constraints.object_selector, configuration.object_selector),
    )


def _merge(own: JSONObject | None, general: JSONObject | None) -> JSONObject | None:
    """Unite two label selectors; the ConfigMap's wins where both name a label."""
    if not own or not general:
        return general or own
    labels = {**(own.get("matchLabels") or {}), **(general.get("matchLabels") or {})}
    expressions = [*(own.get("matchExpressions") or ()), *(general.get("matchExpressions") or ())]
    return {
        **({"matchLabels": labels} if labels else {}),
        **({"matchExpressions": expressions} if expressions else {}),
    }
