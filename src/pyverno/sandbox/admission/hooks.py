"""Webhook configurations, compiled: which requests each webhook is about, and in which version it wants them.

Compiled when a configuration changes, and remembered per kind of request. This module must never call a webhook.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from pyverno.engine.constraints import ResourceRule
from pyverno.engine.request import Operation
from pyverno.errors import EvaluationError, ValueSyntaxError
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.selector import LabelTest, compile_selector
from pyverno.kube.status import internal_error, not_found
from pyverno.sandbox.admission.questions import kind_in, labels_of, namespace_object, question, refused
from pyverno.sandbox.attributes import Attributes
from pyverno.sandbox.authorization.access import Authorizer
from pyverno.sandbox.resources import ResourceTable, ResourceType
from pyverno.sandbox.view import ClusterView
from pyverno.value import dataclass

if TYPE_CHECKING:
    from pyverno.sandbox.admission.conditions import MatchConditions

__all__ = ["ClientConfig", "Hook", "HookSource", "Invocation"]

MUTATING = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
VALIDATING = "validatingwebhookconfigurations.admissionregistration.k8s.io"
_DEFAULT_TIMEOUT = 10


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """Where a webhook is: a URL, or a service with a port and a path; and whom to trust (`ca_bundle`, base64)."""

    url: str = ""
    namespace: str = ""
    service: str = ""
    port: int = 443
    path: str = ""
    ca_bundle: str = ""

    @classmethod
    def of(cls, body: JSONObject) -> ClientConfig:
        """Read a `clientConfig`.

        >>> ClientConfig.of({"service": {"namespace": "a", "name": "b", "path": "/x"}}).address
        'https://b.a.svc:443/x'
        """
        service: JSON = body.get("service")
        bundle = str(body.get("caBundle") or "")
        if not isinstance(service, dict):
            return cls(url=str(body.get("url") or ""), ca_bundle=bundle)
        return cls(
            namespace=str(service.get("namespace") or ""),
            service=str(service.get("name") or ""),
            port=int(service.get("port") or 443),
            path=str(service.get("path") or ""),
            ca_bundle=bundle,
        )

    @property
    def server_name(self) -> str:
        """The name that the certificate of a service must have."""
        return f"{self.service}.{self.namespace}.svc"

    @property
    def address(self) -> str:
        """The URL as messages show it, without a query."""
        if self.url:
            return self.url
        return f"https://{self.server_name}:{self.port}/{self.path.lstrip('/')}"


class Hook:
    """One webhook of a configuration."""

    def __init__(self, configuration: str, position: int, body: JSONObject, kube_version: tuple[int, int]) -> None:
        """Compile rules and selectors; raises StatusError 500 for a selector that Kubernetes refuses."""
        self.configuration = configuration
        self.name = str(body.get("name") or "")
        self.key = f"{configuration}/{position}/{self.name}"
        self.rules = tuple(map(_rule, body.get("rules") or ()))
        self.is_equivalent = body.get("matchPolicy", "Equivalent") == "Equivalent"
        self.namespace_selector = _selector(body.get("namespaceSelector"))
        self.object_selector = _selector(body.get("objectSelector"))
        self.ignores_failures = body.get("failurePolicy", "Fail") == "Ignore"
        self.has_side_effects = body.get("sideEffects") not in ("None", "NoneOnDryRun")
        self.reinvokes = body.get("reinvocationPolicy") == "IfNeeded"
        self.timeout = int(body.get("timeoutSeconds") or _DEFAULT_TIMEOUT)
        self.versions = tuple(map(str, body.get("admissionReviewVersions") or ()))
        self.client = ClientConfig.of(body.get("clientConfig") or {})
        self._body = body
        self._kube_version = kube_version

    @cached_property
    def conditions(self) -> MatchConditions | None:
        """The match conditions, compiled when they are first asked; most servers never need the language."""
        if not self._body.get("matchConditions"):
            return None
        from pyverno.sandbox.admission.conditions import MatchConditions

        return MatchConditions(self._body, self._kube_version)


@dataclass(frozen=True, slots=True)
class Invocation:
    """A webhook that is to be called, with the type and kind in whose version it wants the objects."""

    hook: Hook
    type: ResourceType
    kind: GVK


class HookSource:
    """The webhooks of one kind of configuration, in the order in which they are called."""

    def __init__(
        self, resource: str, cluster: ClusterView, authorizer: Authorizer, kube_version: tuple[int, int]
    ) -> None:
        """Take the storage key of the configurations, and where they are."""
        self._resource = resource
        self._cluster = cluster
        self._authorizer = authorizer
        self._kube_version = kube_version
        self._made_at = -1
        self._table: ResourceTable | None = None
        self._hooks: tuple[Hook, ...] = ()
        self._candidates: dict[tuple[object, ...], tuple[tuple[Hook, ResourceType], ...]] = {}

    def invocations(self, attributes: Attributes) -> Iterator[Invocation]:
        """Yield the webhooks that a request is about, each judged when it is asked for.

        Between two of them the object may change: send the changed attributes. Raises StatusError.
        """
        for hook, type in self.candidates(attributes):
            found = self.invocation(hook, type, attributes)
            if found is not None:
                yield found

    def candidates(self, attributes: Attributes) -> tuple[tuple[Hook, ResourceType], ...]:
        """Return the webhooks whose rules are about such requests, with the type that the rule names."""
        revision, table = self._cluster.changed_at(self._resource), self._cluster.table
        if revision != self._made_at or table is not self._table:
            self._hooks = tuple(self._compiled())
            self._made_at, self._table, self._candidates = revision, table, {}
        if not self._hooks:
            return ()
        key = (attributes.type.gvr, attributes.subresource, attributes.operation, bool(attributes.namespace))
        found = self._candidates.get(key)
        if found is None:
            pairs = ((hook, self._matched(hook, attributes)) for hook in self._hooks)
            found = self._candidates[key] = tuple((hook, type) for hook, type in pairs if type is not None)
        return found

    def invocation(self, hook: Hook, type: ResourceType, attributes: Attributes) -> Invocation | None:
        """Return how a webhook is to be called for a request, None when selectors or conditions say no."""
        if not self._namespace_selected(hook, attributes) or not _object_selected(hook, attributes):
            return None
        if hook.conditions is not None:
            try:
                if not hook.conditions.hold(question(attributes, self._cluster, type=type), self._authorizer):
                    return None
            except EvaluationError as error:
                if hook.ignores_failures:
                    return None
                raise refused(attributes, error.message) from None
        return Invocation(hook, type, kind_in(attributes, type))

    def _compiled(self) -> Iterator[Hook]:
        for stored in self._cluster.all(self._resource):
            for position, body in enumerate(stored.body.get("webhooks") or ()):
                yield Hook(stored.key.name, position, body, self._kube_version)

    def _matched(self, hook: Hook, attributes: Attributes) -> ResourceType | None:
        """Return the type through which a rule of the webhook is about such requests: its own, else an equal one."""
        if self._fits(hook.rules, attributes.type, attributes):
            return attributes.type
        if not hook.is_equivalent:
            return None
        others = [each for each in self._cluster.table.versions_of(attributes.type.key) if each != attributes.type]
        for rule in hook.rules:
            for other in others:
                if self._fits((rule,), other, attributes):
                    return other
        return None

    @staticmethod
    def _fits(rules: tuple[ResourceRule, ...], type: ResourceType, attributes: Attributes) -> bool:
        operation, namespace = attributes.operation.value, attributes.namespace
        return any(rule.fits(type.gvr, attributes.subresource, operation, namespace) for rule in rules)

    def _namespace_selected(self, hook: Hook, attributes: Attributes) -> bool:
        if hook.namespace_selector is None:
            return True
        is_namespace = attributes.type.key == "namespaces"
        if not attributes.namespace and not is_namespace:
            return True
        body: JSON = namespace_object(attributes, self._cluster)
        if is_namespace and not attributes.subresource and attributes.operation is not Operation.DELETE:
            body = attributes.object
        if body is None:
            raise not_found("", "namespaces", attributes.namespace)
        return hook.namespace_selector(labels_of(body))


def _object_selected(hook: Hook, attributes: Attributes) -> bool:
    if hook.object_selector is None:
        return True
    present = (body for body in (attributes.object, attributes.old) if body is not None)
    return any(hook.object_selector(labels_of(body)) for body in present)


def _rule(body: Mapping[str, JSON]) -> ResourceRule:
    return ResourceRule.of(
        groups=body.get("apiGroups") or (),
        versions=body.get("apiVersions") or (),
        operations=body.get("operations") or (),
        resources=body.get("resources") or (),
        scope=body.get("scope") or "",
    )


def _selector(body: JSON) -> LabelTest | None:
    """Compile a selector; None when it selects everything."""
    if not body or not (body.get("matchLabels") or body.get("matchExpressions")):
        return None
    try:
        return compile_selector(body)
    except ValueSyntaxError as error:
        raise internal_error(error.message) from None
