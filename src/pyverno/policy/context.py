"""Context entries: named data that a rule loads before it runs, as written.

This module must not load anything (see the engine's context loader).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, TypeAlias

from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.fieldpath import Path
from pyverno.policy.schema import Cursor, Field, Record, boolean, choice, free, list_of, text
from pyverno.value import dataclass

__all__ = [
    "API_CALL_FIELDS",
    "CONTEXT",
    "REGISTRY_CREDENTIALS",
    "ApiCall",
    "ConfigMap",
    "ContextEntry",
    "GlobalReference",
    "Header",
    "ImageRegistry",
    "Method",
    "RegistryCredentials",
    "RequestData",
    "ServiceCall",
    "Variable",
]


class Method(StrEnum):
    """The HTTP method of a call of an API."""

    GET = "GET"
    POST = "POST"


@dataclass(frozen=True, slots=True)
class Variable:
    """A value, or a query over a value or over the whole context. None means not written."""

    name: str
    path: Path
    value: JSON = None
    jmes_path: str = ""
    default: JSON = None


@dataclass(frozen=True, slots=True)
class ConfigMap:
    """The data and metadata of a ConfigMap; an empty namespace means the policy's own, or `default`."""

    name: str
    path: Path
    config_map: str = ""
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class RequestData:
    """One member of the JSON body of an API call."""

    key: str
    value: JSON


@dataclass(frozen=True, slots=True)
class Header:
    """One HTTP header."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class ServiceCall:
    """An HTTP service outside of the API server."""

    url: str
    headers: tuple[Header, ...] = ()
    ca_bundle: str = ""


@dataclass(frozen=True, slots=True)
class ApiCall:
    """A call of the Kubernetes API (`url_path`) or of a service."""

    name: str
    path: Path
    url_path: str = ""
    method: Method = Method.GET
    data: tuple[RequestData, ...] = ()
    service: ServiceCall | None = None
    jmes_path: str = ""
    default: JSON = None


@dataclass(frozen=True, slots=True)
class RegistryCredentials:
    """Sources of credentials for an image registry."""

    allow_insecure_registry: bool = False
    providers: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImageRegistry:
    """The data of an image in its registry."""

    name: str
    path: Path
    reference: str = ""
    jmes_path: str = ""
    credentials: RegistryCredentials | None = None


@dataclass(frozen=True, slots=True)
class GlobalReference:
    """Data of a global context entry; `reference` is `entry` or `entry.projection`."""

    name: str
    path: Path
    reference: str = ""
    jmes_path: str = ""


ContextEntry: TypeAlias = Variable | ConfigMap | ApiCall | ImageRegistry | GlobalReference


class _Provider(StrEnum):
    DEFAULT = "default"
    AMAZON = "amazon"
    AZURE = "azure"
    GOOGLE = "google"
    GITHUB = "github"


REGISTRY_CREDENTIALS = Record(
    RegistryCredentials,
    Field("allow_insecure_registry", boolean),
    Field("providers", list_of(choice(_Provider))),
    Field("secrets", list_of(text)),
)

_SERVICE = Record(
    ServiceCall,
    Field("url", text, required=True),
    Field(
        "headers",
        list_of(Record(Header, Field("key", text, required=True), Field("value", text, required=True))),
    ),
    Field("ca_bundle", text, json="caBundle"),
)

API_CALL_FIELDS = (
    Field("url_path", text),
    Field("method", choice(Method)),
    Field(
        "data",
        list_of(Record(RequestData, Field("key", text, required=True), Field("value", free, required=True))),
    ),
    Field("service", _SERVICE),
)

_PARTS: dict[str, tuple[type[Any], Record]] = {
    "variable": (
        Variable,
        Record(dict, Field("value", free), Field("jmes_path", text), Field("default", free)),
    ),
    "configMap": (
        ConfigMap,
        Record(dict, Field("config_map", text, json="name", required=True), Field("namespace", text)),
    ),
    "apiCall": (
        ApiCall,
        Record(dict, *API_CALL_FIELDS, Field("jmes_path", text), Field("default", free)),
    ),
    "imageRegistry": (
        ImageRegistry,
        Record(
            dict,
            Field("reference", text, required=True),
            Field("jmes_path", text),
            Field("credentials", REGISTRY_CREDENTIALS, json="imageRegistryCredentials"),
        ),
    ),
    "globalReference": (
        GlobalReference,
        Record(dict, Field("reference", text, json="name", required=True), Field("jmes_path", text)),
    ),
}


def _exactly_one(values: dict[str, Any], cursor: Cursor) -> None:
    if len(values.keys() & _PARTS.keys()) != 1:
        cursor.error(
            "context-entry",
            "exactly one of configMap or apiCall or imageRegistry or variable is required for context entries",
        )


def _entry(*, path: Path, name: str, **parts: JSONObject) -> ContextEntry:
    ((kind, values),) = parts.items()
    entry: ContextEntry = _PARTS[kind][0](name=name, path=path, **values)
    return entry


_ENTRY = Record(
    _entry,
    Field("name", text, required=True),
    *(Field(kind, shape, json=kind) for kind, (_, shape) in _PARTS.items()),
    check=_exactly_one,
    extras=("path",),
)

CONTEXT = list_of(_ENTRY)
