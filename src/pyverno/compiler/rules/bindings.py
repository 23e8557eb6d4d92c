"""Lowering of context entries to bindings; imported by `context` when a rule has any."""

from __future__ import annotations

from pyverno.compiler.parser import Parser
from pyverno.engine.rule import Binding
from pyverno.engine.rules.bindings import (
    ApiCallBinding,
    ConfigMapBinding,
    GlobalReferenceBinding,
    ImageRegistryBinding,
    ServiceCall,
    VariableBinding,
)
from pyverno.policy.context import ApiCall, ConfigMap, ContextEntry, GlobalReference, ImageRegistry, Variable

__all__ = ["lower_entry"]


def lower_entry(entry: ContextEntry, parser: Parser) -> tuple[Binding, ...]:
    """Compile one entry; no binding when it is not complete, which is reported where it matters."""
    path = entry.path
    match entry:
        case Variable():
            at = (*path, "variable")
            if entry.value is None and not entry.jmes_path:
                return ()
            query = parser.query(entry.jmes_path, (*at, "jmesPath"))
            if entry.value is None and query is None:
                return ()
            value = None if entry.value is None else parser.template(entry.value, (*at, "value"))
            default = None if entry.default is None else parser.template(entry.default, (*at, "default"))
            return (VariableBinding(entry.name, value, query, default),)
        case ConfigMap():
            at = (*path, "configMap")
            name = parser.template(entry.config_map, (*at, "name"))
            return (ConfigMapBinding(entry.name, name, parser.optional(entry.namespace, (*at, "namespace"))),)
        case ApiCall():
            return (_api_call(entry, parser),)
        case ImageRegistry():
            at = (*path, "imageRegistry")
            credentials = None
            if entry.credentials is not None:
                credentials = {
                    "allowInsecureRegistry": entry.credentials.allow_insecure_registry,
                    "providers": list(entry.credentials.providers),
                    "secrets": list(entry.credentials.secrets),
                }
            reference = parser.template(entry.reference, (*at, "reference"))
            query = parser.query(entry.jmes_path, (*at, "jmesPath"))
            return (ImageRegistryBinding(entry.name, reference, query, credentials),)
        case GlobalReference():
            at = (*path, "globalReference")
            reference = parser.template(entry.reference, (*at, "name"))
            return (GlobalReferenceBinding(entry.name, reference, parser.query(entry.jmes_path, (*at, "jmesPath"))),)


def _api_call(entry: ApiCall, parser: Parser) -> ApiCallBinding:
    at = (*entry.path, "apiCall")
    service = None
    if entry.service is not None:
        inside = (*at, "service")
        headers = tuple(
            (
                parser.template(header.key, (*inside, "headers", index, "key")),
                parser.template(header.value, (*inside, "headers", index, "value")),
            )
            for index, header in enumerate(entry.service.headers)
        )
        service = ServiceCall(
            parser.template(entry.service.url, (*inside, "url")),
            headers,
            parser.optional(entry.service.ca_bundle, (*inside, "caBundle")),
        )
    return ApiCallBinding(
        name=entry.name,
        url_path=parser.optional(entry.url_path, (*at, "urlPath")),
        service=service,
        method=entry.method.value,
        data=tuple(
            (item.key, parser.template(item.value, (*at, "data", index, "value")))
            for index, item in enumerate(entry.data)
        ),
        query=parser.query(entry.jmes_path, (*at, "jmesPath")),
        default=None if entry.default is None else parser.template(entry.default, (*at, "default")),
    )
