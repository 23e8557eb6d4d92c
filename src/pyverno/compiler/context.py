"""Lowering of context entries and conditions: to bindings and guards.

Every expression and template is parsed here, once. This module must never load an entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyverno.engine.bindings import (
    ApiCallBinding,
    ConfigMapBinding,
    GlobalReferenceBinding,
    ImageRegistryBinding,
    ServiceCall,
    VariableBinding,
)
from pyverno.engine.conditions import Conditions, compile_conditions
from pyverno.engine.guards import Preconditions
from pyverno.engine.rule import Binding
from pyverno.errors import ExpressionError, ExpressionSyntaxError, PolicyError
from pyverno.kube.json import JSON
from pyverno.lang.template import Template, compile_template
from pyverno.lang.template.expression_text import ExpressionText, compile_expression_text
from pyverno.policy.context import ApiCall, ConfigMap, ContextEntry, GlobalReference, ImageRegistry, Variable
from pyverno.policy.schema import Path, Source, locate, path_text

__all__ = ["Parser", "lower_conditions", "lower_context", "lower_preconditions"]


@dataclass(slots=True)
class Parser:
    """Parses the expressions of one policy and collects what does not parse."""

    source: Source
    errors: list[PolicyError] = field(default_factory=list)

    def template(self, document: JSON, path: Path) -> Template:
        """Compile a document with variables that stands at `path`."""
        template = compile_template(document, path=_pointer(path))
        for error in template.errors:
            self.report(error.message, path, code="expression-syntax")
        return template

    def optional(self, document: JSON, path: Path) -> Template | None:
        """Compile a document that may not be written."""
        return None if document is None or document == "" else self.template(document, path)

    def query(self, text: str, path: Path) -> ExpressionText | None:
        """Compile a JMESPath text; None when it is not written or does not parse (which is reported)."""
        if not text:
            return None
        try:
            return compile_expression_text(text)
        except ExpressionSyntaxError as error:
            self.report(f"failed to parse JMESPath {text}: {error.message}", path, code="expression-syntax")
            return None

    def report(self, message: str, path: Path, *, code: str) -> None:
        """Note one problem at a place of the policy."""
        self.errors.append(PolicyError(message, location=locate(self.source, path), path=path_text(path), code=code))


def _pointer(path: Path) -> str:
    """Return the path inside a rule: templates name places by it (`/mutate/patchStrategicMerge`)."""
    inside = path[3:] if path[:2] == ("spec", "rules") else path
    return "".join(f"/{step}" for step in inside)


def lower_context(entries: Sequence[ContextEntry], parser: Parser) -> tuple[Binding, ...]:
    """Compile the entries in order."""
    return tuple(binding for entry in entries for binding in _lowered(entry, parser))


def _lowered(entry: ContextEntry, parser: Parser) -> tuple[Binding, ...]:
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


def lower_preconditions(conditions: JSON, parser: Parser, path: Path) -> Preconditions | None:
    """Compile preconditions; None when there are none or they do not compile (which is reported)."""
    compiled = lower_conditions(conditions, parser, path)
    return None if compiled is None else Preconditions(compiled)


def lower_conditions(conditions: JSON, parser: Parser, path: Path, *, blocks: bool = False) -> Conditions | None:
    """Compile conditions; None when there are none or they do not compile (which is reported).

    `blocks` reads a list as any/all blocks (exceptions) and not as legacy conditions.
    """
    if conditions is None or conditions in ([], {}):
        return None
    try:
        return compile_conditions(conditions, blocks=blocks)
    except ExpressionError as error:
        parser.report(error.message, path, code="conditions")
        return None
