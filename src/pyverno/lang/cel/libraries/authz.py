"""Kyverno's libraries of the Envoy and HTTP evaluation modes: answers to authorization requests.

An answer is built step by step and finished with `Response()`; each step gives a new value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyverno.lang.cel.declarations import Library, function
from pyverno.lang.cel.messages import MessageTypes
from pyverno.lang.cel.types import (
    BOOL,
    BYTES,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
    opaque,
    struct,
)
from pyverno.lang.cel.values import StructValue, Value
from pyverno.lang.cel.work import instant

__all__ = [
    "ENVOY",
    "ENVOY_REQUEST",
    "ENVOY_RESPONSE",
    "ENVOY_TYPES",
    "HTTP_AUTHZ",
    "HTTP_REQUEST",
    "HTTP_RESPONSE",
    "HTTP_TYPES",
]

_V3: Final = "envoy.service.auth.v3."
_OK: Final = _V3 + "OkHttpResponse"
_DENIED: Final = _V3 + "DeniedHttpResponse"
_CHECK: Final = _V3 + "CheckResponse"
_HEADER: Final = "envoy.config.core.v3.HeaderValueOption"
_PARAM: Final = "envoy.config.core.v3.QueryParameter"
_HTTP_OK: Final = "http.CheckResponseOk"
_HTTP_DENIED: Final = "http.CheckResponseDenied"
_HTTP_CHECK: Final = "http.CheckResponse"
PERMISSION_DENIED: Final = 7

_CORE: Final = "envoy.config.core.v3."
_TEXTS: Final = map_of(STRING, STRING)
_METADATA: Final = map_of(STRING, DYN)
_ATTRIBUTES: Final = "http.CheckRequestAttributes"

ENVOY_REQUEST: Final = struct(_V3 + "CheckRequest")
"""The type of `object` in Envoy mode."""

HTTP_REQUEST: Final = struct("http.CheckRequest")
"""The type of `object` in HTTP mode."""

# envoyproxy/envoy: api/envoy/service/auth/v3 (external_auth, attribute_context) and api/envoy/config/core/v3
_ENVOY_MESSAGES: Final[Mapping[str, Mapping[str, Type]]] = {
    ENVOY_REQUEST.name: {"attributes": struct(_V3 + "AttributeContext")},
    _V3 + "AttributeContext": {
        "source": struct(_V3 + "AttributeContext.Peer"),
        "destination": struct(_V3 + "AttributeContext.Peer"),
        "request": struct(_V3 + "AttributeContext.Request"),
        "context_extensions": _TEXTS,
        "metadata_context": struct(_CORE + "Metadata"),
        "route_metadata_context": struct(_CORE + "Metadata"),
        "tls_session": struct(_V3 + "AttributeContext.TLSSession"),
    },
    _V3 + "AttributeContext.Peer": {
        "address": struct(_CORE + "Address"),
        "service": STRING,
        "labels": _TEXTS,
        "principal": STRING,
        "certificate": STRING,
    },
    _V3 + "AttributeContext.Request": {"time": TIMESTAMP, "http": struct(_V3 + "AttributeContext.HttpRequest")},
    _V3 + "AttributeContext.HttpRequest": {
        "id": STRING,
        "method": STRING,
        "headers": _TEXTS,
        "header_map": struct(_CORE + "HeaderMap"),
        "path": STRING,
        "host": STRING,
        "scheme": STRING,
        "query": STRING,
        "fragment": STRING,
        "size": INT,
        "protocol": STRING,
        "body": STRING,
        "raw_body": BYTES,
    },
    _V3 + "AttributeContext.TLSSession": {"sni": STRING},
    _CORE + "HeaderMap": {"headers": list_of(struct(_CORE + "HeaderValue"))},
    _CORE + "HeaderValue": {"key": STRING, "value": STRING, "raw_value": BYTES},
    _CORE + "Metadata": {"filter_metadata": _METADATA, "typed_filter_metadata": _METADATA},
    _CORE + "Address": {
        "socket_address": struct(_CORE + "SocketAddress"),
        "pipe": struct(_CORE + "Pipe"),
        "envoy_internal_address": struct(_CORE + "EnvoyInternalAddress"),
    },
    _CORE + "SocketAddress": {
        "protocol": INT,
        "address": STRING,
        "port_value": UINT,
        "named_port": STRING,
        "resolver_name": STRING,
        "ipv4_compat": BOOL,
        "network_namespace_filepath": STRING,
    },
    _CORE + "Pipe": {"path": STRING, "mode": UINT},
    _CORE + "EnvoyInternalAddress": {"server_listener_name": STRING, "endpoint_id": STRING},
}

ENVOY_TYPES: Final = MessageTypes(_ENVOY_MESSAGES, enums={(_CORE + "SocketAddress", "protocol"): ("TCP", "UDP")})
"""The message types of Envoy's authorization requests."""

HTTP_TYPES: Final = MessageTypes(
    {
        HTTP_REQUEST.name: {"attributes": struct(_ATTRIBUTES)},
        _ATTRIBUTES: {
            "method": STRING,
            "header": map_of(STRING, list_of(STRING)),
            "host": STRING,
            "protocol": STRING,
            "contentLength": INT,
            "body": BYTES,
            "scheme": STRING,
            "path": STRING,
            "query": map_of(STRING, list_of(STRING)),
            "fragment": STRING,
        },
    },
    is_strict=False,
)
"""The types of HTTP authorization requests."""

ENVOY_RESPONSE: Final = opaque(_CHECK)
"""The result type of a validation in Envoy mode (or null)."""

HTTP_RESPONSE: Final = opaque(_HTTP_CHECK)
"""The result type of a validation in HTTP mode (or null)."""


def _with(answer: StructValue, field: str, value: Value) -> StructValue:
    """Return an answer with one field set."""
    return StructValue(answer.cel_type, {**answer.fields, field: value})


def _and(answer: StructValue, field: str, item: Value) -> StructValue:
    """Return an answer with an item appended to a list field."""
    return _with(answer, field, [*answer.fields.get(field, ()), item])


def _header(args: tuple[Value, ...]) -> StructValue:
    return StructValue(_HEADER, args[0].fields) if len(args) == 1 else _header_option(*args)


def _header_option(key: str, value: str) -> StructValue:
    return StructValue(_HEADER, {"header": {"key": key, "value": value}})


@function("envoy.Allowed", f"() -> {_OK}", work=instant)
def allowed() -> StructValue:
    """An answer that lets the request through."""
    return StructValue(_OK, {})


@function("envoy.Denied", f"(int) -> {_DENIED}", work=instant)
def denied(status: int) -> StructValue:
    """An answer that refuses the request with an HTTP status."""
    return StructValue(_DENIED, {"status": {"code": status}})


@function("envoy.Header", f"(string, string) -> {_HEADER}", work=instant)
def header(key: str, value: str) -> StructValue:
    """A header with its value."""
    return _header_option(key, value)


@function("KeepEmptyValue", f"{_HEADER}.() -> {_HEADER}", f"{_HEADER}.(bool) -> {_HEADER}", work=instant)
def keep_empty_value(option: StructValue, *keep: bool) -> StructValue:
    """The header, sent even when its value is empty."""
    return _with(option, "keepEmptyValue", keep[0] if keep else True)


@function("envoy.QueryParam", f"(string, string) -> {_PARAM}", work=instant)
def query_param(key: str, value: str) -> StructValue:
    """A query parameter with its value."""
    return StructValue(_PARAM, {"key": key, "value": value})


@function("WithHeader", f"{_OK}.({_HEADER}) -> {_OK}", f"{_OK}.(string, string) -> {_OK}", work=instant)
def with_header(answer: StructValue, *args: Value) -> StructValue:
    """The answer with a header added to the request."""
    return _and(answer, "headers", _header(args))


@function("WithHeader", f"{_DENIED}.({_HEADER}) -> {_DENIED}", f"{_DENIED}.(string, string) -> {_DENIED}", work=instant)
def with_denied_header(answer: StructValue, *args: Value) -> StructValue:
    """The refusal with a header added to the response."""
    return _and(answer, "headers", _header(args))


@function("WithoutHeader", f"{_OK}.(string) -> {_OK}", work=instant)
def without_header(answer: StructValue, name: str) -> StructValue:
    """The answer with a header taken from the request."""
    return _and(answer, "headersToRemove", name)


@function("WithResponseHeader", f"{_OK}.({_HEADER}) -> {_OK}", f"{_OK}.(string, string) -> {_OK}", work=instant)
def with_response_header(answer: StructValue, *args: Value) -> StructValue:
    """The answer with a header added to the response."""
    return _and(answer, "responseHeadersToAdd", _header(args))


@function("WithQueryParam", f"{_OK}.({_PARAM}) -> {_OK}", f"{_OK}.(string, string) -> {_OK}", work=instant)
def with_query_param(answer: StructValue, *args: Value) -> StructValue:
    """The answer with a query parameter set on the request."""
    return _and(answer, "queryParametersToSet", args[0] if len(args) == 1 else query_param(*args))


@function("WithoutQueryParam", f"{_OK}.(string) -> {_OK}", work=instant)
def without_query_param(answer: StructValue, name: str) -> StructValue:
    """The answer with a query parameter taken from the request."""
    return _and(answer, "queryParametersToRemove", name)


@function("WithBody", f"{_DENIED}.(string) -> {_DENIED}", work=instant)
def with_body(answer: StructValue, body: str) -> StructValue:
    """The refusal with a body."""
    return _with(answer, "body", body)


@function("Response", f"{_OK}.() -> {_CHECK}", work=instant)
def ok_response(answer: StructValue) -> StructValue:
    """The finished answer, with status code 0."""
    return StructValue(_CHECK, {"status": {"code": 0}, "okResponse": answer})


@function("Response", f"{_DENIED}.() -> {_CHECK}", work=instant)
def denied_response(answer: StructValue) -> StructValue:
    """The finished refusal, with status code 7."""
    return StructValue(_CHECK, {"status": {"code": PERMISSION_DENIED}, "deniedResponse": answer})


@function("WithMessage", f"{_CHECK}.(string) -> {_CHECK}", work=instant)
def with_message(answer: StructValue, message: str) -> StructValue:
    """The finished answer with a message in its status."""
    return _with(answer, "status", {**(answer.fields.get("status") or {}), "message": message})


@function("WithMetadata", f"{_CHECK}.(map(string, any)) -> {_CHECK}", work=instant)
def with_metadata(answer: StructValue, metadata: Value) -> StructValue:
    """The finished answer with dynamic metadata."""
    return _with(answer, "dynamicMetadata", metadata)


ENVOY: Final = Library(
    "kyverno.authz.envoy",
    (
        allowed, denied, header, keep_empty_value, query_param, with_header, with_denied_header, without_header,
        with_response_header, with_query_param, without_query_param, with_body, ok_response, denied_response,
        with_message, with_metadata,
    ),
    types=tuple(opaque(name) for name in (_OK, _DENIED, _CHECK, _HEADER, _PARAM)),
    introduced="1.16",
    doc="Answers to Envoy's authorization requests.",
)  # fmt: skip


@function("http.Allowed", f"() -> {_HTTP_OK}", work=instant)
def http_allowed() -> StructValue:
    """An answer that lets the request through."""
    return StructValue(_HTTP_OK, {})


@function("http.Denied", f"(string) -> {_HTTP_DENIED}", work=instant)
def http_denied(reason: str) -> StructValue:
    """An answer that refuses the request for a reason."""
    return StructValue(_HTTP_DENIED, {"reason": reason})


@function("Response", f"{_HTTP_OK}.() -> {_HTTP_CHECK}", work=instant)
def http_ok_response(answer: StructValue) -> StructValue:
    """The finished answer."""
    return StructValue(_HTTP_CHECK, {"ok": answer})


@function("Response", f"{_HTTP_DENIED}.() -> {_HTTP_CHECK}", work=instant)
def http_denied_response(answer: StructValue) -> StructValue:
    """The finished refusal."""
    return StructValue(_HTTP_CHECK, {"denied": answer})


@function("Header", f"object({_ATTRIBUTES}).(string) -> list(string)", work=instant)
def request_header(attributes: StructValue, name: str) -> list[str]:
    """The values of a request header, whatever the case of its name."""
    found: Mapping[str, list[str]] = attributes.fields["header"]
    return next((values for key, values in found.items() if key.lower() == name.lower()), [])


@function("QueryParam", f"object({_ATTRIBUTES}).(string) -> list(string)", work=instant)
def request_query_param(attributes: StructValue, name: str) -> list[str]:
    """The values of a query parameter."""
    found: Mapping[str, list[str]] = attributes.fields["query"]
    return found.get(name, [])


HTTP_AUTHZ: Final = Library(
    "kyverno.authz.http",
    (http_allowed, http_denied, http_ok_response, http_denied_response, request_header, request_query_param),
    types=tuple(opaque(name) for name in (_HTTP_OK, _HTTP_DENIED, _HTTP_CHECK)),
    introduced="1.17",
    doc="Answers to HTTP authorization requests.",
)
