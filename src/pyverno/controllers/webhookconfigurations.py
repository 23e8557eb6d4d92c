"""The webhook configurations that make the API server ask us: whole objects, computed from policies and settings.

A pure function of what is known: the same policies always give the same bytes, so that nothing is written that did not
change. This module must never talk to a cluster.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence

from pyverno.compiler.autogen_cel import expand_cel
from pyverno.controllers.webhookrules import (
    ALL_OPERATIONS,
    Entry,
    constraint_rules,
    legacy_entries,
    write_rules,
)
from pyverno.kube.json import JSONObject, encode
from pyverno.kube.kinds import KindTable
from pyverno.policy.celpolicy import CelPolicy, GeneratingPolicy, MutatingPolicy, ValidatingPolicy
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.constraints import MatchConstraints
from pyverno.policy.imagepolicy import ImageValidatingPolicy
from pyverno.value import dataclass, field
from pyverno.webhook.configuration import Configuration
from pyverno.webhook.routes import CEL_ROUTES, Door, Route

__all__ = ["MUTATING_CONFIGURATION", "VALIDATING_CONFIGURATION", "Endpoint", "Settings", "configurations", "own_paths"]

VALIDATING_CONFIGURATION = "kyverno-resource-validating-webhook-cfg"
MUTATING_CONFIGURATION = "kyverno-resource-mutating-webhook-cfg"
_LEGACY_KINDS = frozenset({"ClusterPolicy", "Policy"})
_MANAGED = {"webhook.kyverno.io/managed-by": "kyverno"}
_MAX_TIMEOUT = 30
_FAILURES = ("Ignore", "Fail")
_BOOTSTRAP = {
    "name": "kyverno-exclude-bootstrap-resources",
    "expression": (
        "!(request.resource.group == '' && request.resource.resource == 'nodes') && "
        "!(request.resource.group == 'certificates.k8s.io' && "
        "request.resource.resource == 'certificatesigningrequests')"
    ),
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the API server finds us: a service, or with `server` (`host:port`) a URL; and by which authority."""

    service: str = "kyverno-svc"
    namespace: str = "kyverno"
    port: int = 443
    server: str = ""
    ca_bundle: bytes = b""

    def client_config(self, path: str) -> JSONObject:
        """Return the `clientConfig` of a webhook."""
        config: JSONObject = {"caBundle": base64.b64encode(self.ca_bundle).decode()}
        if self.server:
            return {"url": f"https://{self.server}{path}", **config}
        service = {"name": self.service, "namespace": self.namespace, "path": path, "port": self.port}
        return {"service": service, **config}


@dataclass(frozen=True, slots=True)
class Settings:
    """What flags say about webhooks; `timeout` in seconds."""

    timeout: int = 10
    forces_ignore: bool = False
    excludes_bootstrap: bool = False
    reports_admission: bool = True
    updates: bool = True


@dataclass(frozen=True, slots=True)
class _Hook:
    """One webhook on its way into a configuration."""

    name: str
    door: Door
    path: str
    rules: tuple[JSONObject, ...]
    failure_policy: str
    side_effects: str = "NoneOnDryRun"
    timeout: int | None = None
    match_policy: str = ""
    namespace_selector: JSONObject | None = None
    object_selector: JSONObject | None = None
    conditions: tuple[JSONObject, ...] = ()
    reinvokes: bool = False


@dataclass(frozen=True, slots=True)
class Sources:
    """Everything that the configurations follow from."""

    legacy: tuple[ClusterPolicy, ...] = ()
    cel: tuple[CelPolicy, ...] = ()
    kinds: KindTable = field(default_factory=KindTable)
    configuration: Configuration = field(default_factory=Configuration)
    endpoint: Endpoint = field(default_factory=Endpoint)
    settings: Settings = field(default_factory=Settings)


def own_paths(policies: Iterable[ClusterPolicy | CelPolicy]) -> frozenset[tuple[str, str]]:
    """Return (kind, key) of the legacy policies that are asked on a path of their own."""
    return frozenset(
        (policy.kind, policy.key)
        for policy in policies
        if isinstance(policy, ClusterPolicy) and policy.spec.webhook.match_conditions
    )


def configurations(sources: Sources) -> tuple[JSONObject, JSONObject]:
    """Return the validating and the mutating configuration for resources; without policies they have no webhooks."""
    hooks = (*_legacy(sources), *_cel(sources)) if sources.settings.updates else tuple(_static(sources))
    return (
        _configuration("Validating", VALIDATING_CONFIGURATION, Door.VALIDATE, hooks, sources),
        _configuration("Mutating", MUTATING_CONFIGURATION, Door.MUTATE, hooks, sources),
    )


def _configuration(word: str, name: str, door: Door, hooks: Sequence[_Hook], sources: Sources) -> JSONObject:
    written = [_written(hook, sources) for hook in hooks if hook.door is door]
    metadata: JSONObject = {"name": name, "labels": {**sources.configuration.webhook_labels, **_MANAGED}}
    if sources.configuration.webhook_annotations:
        metadata["annotations"] = dict(sources.configuration.webhook_annotations)
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{word}WebhookConfiguration",
        "metadata": metadata,
        "webhooks": sorted(written, key=lambda hook: hook["name"]),
    }


def _written(hook: _Hook, sources: Sources) -> JSONObject:
    failure_policy = "Ignore" if sources.settings.forces_ignore else hook.failure_policy
    conditions = list(hook.conditions)
    if sources.settings.excludes_bootstrap and failure_policy == "Fail":
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


def _legacy(sources: Sources) -> Iterator[_Hook]:
    active = [policy for policy in sources.legacy if policy.spec.admission]
    owners = own_paths(active)
    for door in Door:
        for failure in _FAILURES:
            group = [policy for policy in active if _failure(policy, sources) == failure]
            shared = [policy for policy in group if (policy.kind, policy.key) not in owners]
            route = Route(door, _LEGACY_KINDS, failure)
            yield from _legacy_hook(route, f"{door.value}.kyverno.svc-{failure.lower()}", shared, sources)
            for policy in group:
                if (policy.kind, policy.key) in owners:
                    yield from _own_hook(route, policy, sources)


def _failure(policy: ClusterPolicy, sources: Sources) -> str:
    return "Ignore" if sources.settings.forces_ignore else policy.spec.failure_policy.value


def _own_hook(shared: Route, policy: ClusterPolicy, sources: Sources) -> Iterator[_Hook]:
    namespace = (policy.namespace or "") if policy.is_namespaced else ""
    route = Route(shared.door, shared.kinds, shared.failure_policy, (policy.name,), namespace, is_finegrained=True)
    name = f"{shared.door.value}.kyverno.svc-{shared.failure_policy.lower()}-finegrained-"
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
) -> Iterator[_Hook]:
    asked: set[Entry] = set()
    timeout = sources.settings.timeout
    for policy in policies:
        entries = legacy_entries(policy, route.door, sources.kinds)
        asked.update(entries)
        if entries:
            timeout = max(timeout, policy.spec.webhook.timeout_seconds or 0)
    if not asked:
        return
    settings = sources.configuration
    silent = route.door is Door.VALIDATE and not sources.settings.reports_admission
    yield _Hook(
        name=name,
        door=route.door,
        path=route.path,
        rules=tuple(write_rules(asked)),
        failure_policy=route.failure_policy,
        side_effects="None" if silent else "NoneOnDryRun",
        timeout=min(timeout, _MAX_TIMEOUT),
        match_policy="Equivalent",
        namespace_selector=settings.namespace_selector,
        object_selector=settings.object_selector or {},
        conditions=settings.match_conditions if conditions is None else conditions,
        reinvokes=route.door is Door.MUTATE,
    )


def _static(sources: Sources) -> Iterator[_Hook]:
    """Yield what asks about everything, for those who do not want the configurations to follow the policies."""
    for door in Door:
        operations = ALL_OPERATIONS if door is Door.VALIDATE else ("CREATE", "UPDATE")
        rule = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": list(operations)}
        for failure in _FAILURES:
            route = Route(door, _LEGACY_KINDS, failure)
            yield _Hook(
                name=f"{door.value}.kyverno.svc-{failure.lower()}",
                door=door,
                path=route.path,
                rules=({**rule, "scope": "*"},),
                failure_policy=failure,
                timeout=sources.settings.timeout,
                match_policy="Equivalent",
                reinvokes=door is Door.MUTATE,
            )


# ------------------------------------------------------------------------------------------------- policies in CEL


@dataclass(frozen=True, slots=True)
class _Selectors:
    namespace: JSONObject | None
    object: JSONObject | None

    @property
    def digest(self) -> str:
        return hashlib.sha256(encode([self.namespace, self.object]).encode()).hexdigest()[:8]


def _cel(sources: Sources) -> Iterator[_Hook]:
    for prefix, route in CEL_ROUTES.items():
        [kind] = route.kinds
        policies = sorted(
            (policy for policy in sources.cel if policy.kind == kind and _is_asked(policy, prefix)),
            key=lambda policy: (policy.namespace, policy.name),
        )
        yield from _cel_hooks(route, _base_name(prefix), policies, sources)


def _is_asked(policy: CelPolicy, prefix: str) -> bool:
    spec = policy.spec  # type: ignore[attr-defined]  # every kind has one
    if not spec.evaluation.admission or spec.match_constraints is None or spec.evaluation.mode.value != "Kubernetes":
        return False
    return not (prefix.endswith("/mutate") and not spec.validation_configurations.mutate_digest)


def _base_name(prefix: str) -> str:
    """Return the first part of a webhook's name: `vpol.validate.kyverno.svc`."""
    word, _, door = prefix.removeprefix("/").partition("/")
    return f"{word.removeprefix('n') if word == 'nivpol' else word}.{door or 'validate'}.kyverno.svc"


def _cel_hooks(route: Route, base: str, policies: Sequence[CelPolicy], sources: Sources) -> Iterator[_Hook]:
    groups: dict[str, tuple[_Selectors, list[CelPolicy]]] = {}
    for policy in policies:
        selectors = _selectors(policy, sources.configuration)
        if _has_own_entry(policy):
            yield _own_cel_hook(route, base, policy, selectors, sources)
        else:
            groups.setdefault(selectors.digest, (selectors, []))[1].append(policy)
    for digest, (selectors, members) in groups.items():
        suffix = f"-{digest}" if len(groups) > 1 else ""
        for failure in _FAILURES:
            asked = [policy for policy in members if _cel_failure(policy, sources) == failure]
            if asked:
                yield _Hook(
                    name=f"{base}-{failure.lower()}{suffix}",
                    door=route.door,
                    path=route.with_names(tuple(policy.name for policy in members)).path,
                    rules=_cel_rules(asked),
                    failure_policy=failure,
                    namespace_selector=selectors.namespace,
                    object_selector=selectors.object,
                )


def _own_cel_hook(route: Route, base: str, policy: CelPolicy, selectors: _Selectors, sources: Sources) -> _Hook:
    spec = policy.spec  # type: ignore[attr-defined]  # every kind has one
    failure = _cel_failure(policy, sources)
    place = f"{policy.namespace}-{policy.name}" if policy.is_namespaced else policy.name
    is_exact = spec.match_constraints.match_policy is not None and spec.match_constraints.match_policy.value == "Exact"
    return _Hook(
        name=f"{base}-{failure.lower()}-finegrained-{place}",
        door=route.door,
        path=route.with_names((policy.name,)).path,
        rules=_cel_rules([policy]),
        failure_policy=failure,
        timeout=spec.timeout_seconds,
        match_policy="Exact" if is_exact else "",
        namespace_selector=selectors.namespace,
        object_selector=selectors.object,
    )


def _has_own_entry(policy: CelPolicy) -> bool:
    spec = policy.spec  # type: ignore[attr-defined]  # every kind has one
    match_policy = spec.match_constraints.match_policy
    return spec.timeout_seconds is not None or (match_policy is not None and match_policy.value == "Exact")


def _cel_failure(policy: CelPolicy, sources: Sources) -> str:
    if sources.settings.forces_ignore:
        return "Ignore"
    if isinstance(policy, GeneratingPolicy):
        return "Ignore"
    failure: str = policy.spec.failure_policy.value  # type: ignore[attr-defined]  # every judging kind has one
    return failure


def _cel_rules(policies: Iterable[CelPolicy]) -> tuple[JSONObject, ...]:
    rules: list[JSONObject] = []
    for policy in policies:
        operations = ALL_OPERATIONS if isinstance(policy, GeneratingPolicy) else ()
        for constraints in _constraints(policy):
            rules.extend(constraint_rules(constraints.resource_rules, operations))
    return tuple({encode(rule): rule for rule in rules}.values())


def _constraints(policy: CelPolicy) -> Iterator[MatchConstraints]:
    """Yield what the copies for pod controllers are about, then what the policy itself is about."""
    if isinstance(policy, ValidatingPolicy | MutatingPolicy | ImageValidatingPolicy):
        expand: Callable[..., Iterable[object]] = expand_cel
        for copy in expand(policy):
            yield copy.policy.spec.match_constraints  # type: ignore[attr-defined]  # an AutogenConfig
    yield policy.spec.match_constraints  # type: ignore[attr-defined]  # `_is_asked` saw to that


def _selectors(policy: CelPolicy, configuration: Configuration) -> _Selectors:
    constraints: MatchConstraints = policy.spec.match_constraints  # type: ignore[attr-defined]  # see `_is_asked`
    namespace = constraints.namespace_selector
    if policy.is_namespaced:
        own = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [policy.namespace]}
        namespace = {"matchExpressions": [own]}
    return _Selectors(
        _merged(namespace, configuration.namespace_selector),
        _merged(constraints.object_selector, configuration.object_selector),
    )


def _merged(own: JSONObject | None, general: JSONObject | None) -> JSONObject | None:
    """Unite two label selectors; the ConfigMap's wins where both name a label."""
    if not own or not general:
        return general or own
    labels = {**(own.get("matchLabels") or {}), **(general.get("matchLabels") or {})}
    expressions = [*(own.get("matchExpressions") or ()), *(general.get("matchExpressions") or ())]
    return {
        **({"matchLabels": labels} if labels else {}),
        **({"matchExpressions": expressions} if expressions else {}),
    }
