"""Compiled webhook configurations: the requests that each webhook receives, and their version.

Compiled when a configuration changes, and remembered per kind of request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from kubesandbox.admission.matching import is_namespace_selected, is_object_selected, matched_type
from kubesandbox.admission.policies.requests import Versions, kind_in
from kubesandbox.attributes import Attributes
from kubesandbox.authorization.access import Authorizer
from kubesandbox.types.resources import ResourceTable, ResourceType
from kubesandbox.view import ClusterView
from pyverno.engine.cel.constraints import ResourceRule
from pyverno.errors import EvaluationError, ValueSyntaxError
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.selector import LabelTest, compile_selector
from pyverno.kube.status import forbidden, internal_error
from pyverno.value import dataclass

if TYPE_CHECKING:
    from kubesandbox.admission.webhooks.conditions import MatchConditions

__all__ = ["ClientConfig", "Hook", "HookSource", "Invocation"]

MUTATING = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
VALIDATING = "validatingwebhookconfigurations.admissionregistration.k8s.io"
_DEFAULT_TIMEOUT = 10


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """Address of a webhook: a URL, or a service with port and path; `ca_bundle` (base64) holds its authorities."""

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

    def __init__(
        self, configuration: str, position: int, body: JSONObject, kube_version: tuple[int, int], *, index: int = 0
    ) -> None:
        """Compile rules and selectors; raises StatusError 500 for a selector that Kubernetes refuses.

        `position` is that in the configuration, `index` that among all webhooks of its kind.
        """
        self.configuration = configuration
        self.index = index
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
        """The match conditions, compiled at their first use, because most servers never need CEL."""
        if not self._body.get("matchConditions"):
            return None
        from kubesandbox.admission.webhooks.conditions import MatchConditions

        return MatchConditions(self._body, self._kube_version)


@dataclass(frozen=True, slots=True)
class Invocation:
    """A webhook to call, with the type and kind in whose version it receives the objects."""

    hook: Hook
    type: ResourceType
    kind: GVK


class HookSource:
    """The webhooks of one kind of configuration, in the order in which they are called."""

    def __init__(
        self, resource: str, cluster: ClusterView, authorizer: Authorizer, kube_version: tuple[int, int]
    ) -> None:
        """Take the storage key of the configurations, and the cluster."""
        self._resource = resource
        self._cluster = cluster
        self._authorizer = authorizer
        self._kube_version = kube_version
        self._made_at = -1
        self._table: ResourceTable | None = None
        self._hooks: tuple[Hook, ...] = ()
        self._candidates: dict[tuple[object, ...], tuple[tuple[Hook, ResourceType], ...]] = {}

    def candidates(self, attributes: Attributes) -> tuple[tuple[Hook, ResourceType], ...]:
        """Return the webhooks whose rules match such requests, with the type that the rule names."""
        revision, table = self._cluster.changed_at(self._resource), self._cluster.table
        if revision != self._made_at or table is not self._table:
            self._hooks = tuple(self._compile())
            self._made_at, self._table, self._candidates = revision, table, {}
        if not self._hooks:
            return ()
        key = (attributes.type.gvr, attributes.subresource, attributes.operation, bool(attributes.namespace))
        found = self._candidates.get(key)
        if found is None:
            pairs = ((hook, self._matched(hook, attributes)) for hook in self._hooks)
            found = self._candidates[key] = tuple((hook, type) for hook, type in pairs if type is not None)
        return found

    async def invocation(self, hook: Hook, type: ResourceType, versions: Versions) -> Invocation | None:
        """Return the call of a webhook for a request, None if selectors or conditions exclude it.

        Raises StatusError.
        """
        attributes = versions.attributes
        if not is_namespace_selected(hook.namespace_selector, attributes, self._cluster):
            return None
        if not is_object_selected(hook.object_selector, attributes):
            return None
        if hook.conditions is not None:
            try:
                if not hook.conditions.hold(await versions.question(type), self._authorizer):
                    return None
            except EvaluationError as error:
                if hook.ignores_failures:
                    return None
                # Kubernetes: conditions see no name before the server generates it
                raise forbidden(attributes.type.group, attributes.type.plural, attributes.name, error.message) from None
        return Invocation(hook, type, kind_in(attributes, type))

    def _compile(self) -> Iterator[Hook]:
        index = 0
        for stored in self._cluster.all(self._resource):
            for position, body in enumerate(stored.body.get("webhooks") or ()):
                yield Hook(stored.key.name, position, body, self._kube_version, index=index)
                index += 1

    def _matched(self, hook: Hook, attributes: Attributes) -> ResourceType | None:
        return matched_type(hook.rules, attributes, self._cluster.table, is_equivalent=hook.is_equivalent)


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
