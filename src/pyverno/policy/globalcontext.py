"""GlobalContextEntry, as written (`kyverno.io/v2`, `v2beta1`, `v2alpha1`).

This module must not fetch or cache anything.
"""

from __future__ import annotations

from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.fieldpath import Path
from pyverno.policy.context import API_CALL_FIELDS, Method, RequestData, ServiceCall
from pyverno.policy.document import PolicyDocument, policy_record
from pyverno.policy.schema import Field, Record, integer, list_of, text
from pyverno.value import dataclass, field

__all__ = [
    "GLOBAL_CONTEXT_ENTRY",
    "ExternalApiCall",
    "GlobalContextEntry",
    "GlobalContextSpec",
    "KubernetesResource",
    "Projection",
]


@dataclass(frozen=True, slots=True)
class KubernetesResource:
    """All objects of one resource, in one namespace or everywhere."""

    version: str = ""
    resource: str = ""
    group: str = ""
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class ExternalApiCall:
    """An API that is polled; `refresh_interval` is a Go duration."""

    url_path: str = ""
    method: Method = Method.GET
    data: tuple[RequestData, ...] = ()
    service: ServiceCall | None = None
    refresh_interval: str = "10m"
    retry_limit: int = 3


@dataclass(frozen=True, slots=True)
class Projection:
    """A named JMESPath query over the data."""

    name: str
    jmes_path: str
    path: Path = ()


@dataclass(frozen=True, slots=True)
class GlobalContextSpec:
    """The source of the data: exactly one of `kubernetes_resource` and `api_call` is meant to be set."""

    kubernetes_resource: KubernetesResource | None = None
    api_call: ExternalApiCall | None = None
    projections: tuple[Projection, ...] = ()
    raw: JSONObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalContextEntry(PolicyDocument):
    """Cached data that rules and CEL expressions can look up by name."""

    spec: GlobalContextSpec


_SPEC = Record(
    GlobalContextSpec,
    Field(
        "kubernetes_resource",
        Record(
            KubernetesResource,
            Field("group", text),
            Field("version", text, required=True),
            Field("resource", text, required=True),
            Field("namespace", text),
        ),
    ),
    Field(
        "api_call",
        Record(
            ExternalApiCall,
            *API_CALL_FIELDS,
            Field("refresh_interval", text),
            Field("retry_limit", integer),
        ),
    ),
    Field(
        "projections",
        list_of(Record(Projection, Field("name", text, required=True), Field("jmes_path", text, required=True))),
    ),
)

GLOBAL_CONTEXT_ENTRY = policy_record(GlobalContextEntry, _SPEC)
