"""The CEL environments of policies: which variables an expression has, with their types, and how it is compiled.

Variables of a policy are compiled in order: each sees those before it, by type. This module must never lower a policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyverno.compiler.context import Parser
from pyverno.engine.cel import CelCondition, CelVariable
from pyverno.kube.json import JSONObject
from pyverno.lang.cel import Environment, Program, types
from pyverno.lang.cel.declarations import StructProvider
from pyverno.lang.cel.source import CompileError
from pyverno.lang.cel.structs import SchemaTypes, StructTypes
from pyverno.lang.cel.types import Type, struct
from pyverno.lang.cel.values import StructValue, Value
from pyverno.policy.schema import Path
from pyverno.policy.validate import NamedExpression

__all__ = ["CelCompiler"]

VARIABLES = "kubernetes.variables"
REQUEST = "kubernetes.AdmissionRequest"
NAMESPACE = "kubernetes.Namespace"

_TEXT: JSONObject = {"type": "string"}
_TEXTS: JSONObject = {"type": "array", "items": _TEXT}
_LABELS: JSONObject = {"type": "object", "additionalProperties": _TEXT}


def _record(**properties: JSONObject) -> JSONObject:
    return {"type": "object", "properties": properties}


_KIND = _record(group=_TEXT, version=_TEXT, kind=_TEXT)
_RESOURCE = _record(group=_TEXT, version=_TEXT, resource=_TEXT)
_ANYTHING: JSONObject = {"x-kubernetes-preserve-unknown-fields": True}

# Kubernetes: staging/src/k8s.io/apiserver/pkg/admission/plugin/cel/compile.go BuildRequestType, BuildNamespaceType
_REQUEST_SCHEMA = _record(
    kind=_KIND,
    resource=_RESOURCE,
    subResource=_TEXT,
    requestKind=_KIND,
    requestResource=_RESOURCE,
    requestSubResource=_TEXT,
    name=_TEXT,
    namespace=_TEXT,
    operation=_TEXT,
    userInfo=_record(
        username=_TEXT,
        uid=_TEXT,
        groups=_TEXTS,
        extra={"type": "object", "additionalProperties": _TEXTS},
    ),
    dryRun={"type": "boolean"},
    options=_ANYTHING,
)
# Kyverno: its own kinds also see the objects (pkg/cel/compiler/request.go)
_REQUEST_WITH_OBJECTS = _record(**_REQUEST_SCHEMA["properties"], object=_ANYTHING, oldObject=_ANYTHING)
_NAMESPACE_SCHEMA = _record(
    apiVersion=_TEXT,
    kind=_TEXT,
    metadata=_record(
        name=_TEXT,
        generateName=_TEXT,
        namespace=_TEXT,
        labels=_LABELS,
        annotations=_LABELS,
        UID=_TEXT,
        uid=_TEXT,
        creationTimestamp={"type": "string", "format": "date-time"},
        deletionGracePeriodSeconds={"type": "integer"},
        deletionTimestamp={"type": "string", "format": "date-time"},
        generation={"type": "integer"},
        resourceVersion=_TEXT,
        finalizers=_TEXTS,
    ),
    spec=_record(finalizers=_TEXTS),
    status=_record(
        phase=_TEXT,
        conditions={
            "type": "array",
            "items": _record(
                status=_TEXT,
                type=_TEXT,
                lastTransitionTime={"type": "string", "format": "date-time"},
                message=_TEXT,
                reason=_TEXT,
            ),
        },
    ),
)


@dataclass(slots=True)
class _VariableTypes:
    """The struct type of `variables`: one field per variable that was compiled so far."""

    fields: dict[str, Type] = field(default_factory=dict)

    def has_struct(self, name: str) -> bool:
        return name == VARIABLES

    def struct_type(self, name: str) -> Type:
        return struct(name)

    def field_type(self, name: str, field_name: str) -> Type | None:
        return self.fields.get(field_name)

    def construct(self, name: str, fields: dict[str, Value]) -> Value:
        return StructValue(name, fields)


class CelCompiler:
    """Compiles the expressions of one policy; what does not compile is reported to the parser.

    Kyverno's own kinds also know `request.object` and `request.oldObject` (`request_has_objects`).
    `names` are the variables besides `object`, `oldObject`, `request` and `namespaceObject` (Kubernetes mode).
    """

    def __init__(
        self,
        environment: Environment,
        parser: Parser,
        *,
        names: Mapping[str, Type] | None = None,
        is_payload: bool = False,
        request_has_objects: bool = False,
    ) -> None:
        self.parser = parser
        self._variables = _VariableTypes()
        request = _REQUEST_WITH_OBJECTS if request_has_objects else _REQUEST_SCHEMA
        schemas = SchemaTypes({REQUEST: request, NAMESPACE: _NAMESPACE_SCHEMA})
        providers: tuple[StructProvider, ...] = (self._variables, schemas, environment.structs)
        known: dict[str, Type] = {"object": types.DYN, "variables": struct(VARIABLES), **(names or {})}
        if not is_payload:
            known.update(
                oldObject=types.DYN, request=schemas.type_of(REQUEST), namespaceObject=schemas.type_of(NAMESPACE)
            )
        self.environment = environment.with_structs(StructTypes(providers)).with_variables(known)

    def compile(self, text: str, path: Path, *, expected: Type | tuple[Type, ...] | None = None) -> Program | None:
        """Compile one expression; None when it does not (which is reported)."""
        try:
            return self.environment.compile(text, expected=expected)
        except CompileError as error:
            self.parser.report(error.message, path, code="cel-compile")
            return None

    def variables(self, written: Sequence[NamedExpression]) -> tuple[CelVariable, ...]:
        """Compile variables in order."""
        compiled = []
        for each in written:
            program = self.compile(each.expression, (*each.path, "expression"))
            if program is not None:
                self._variables.fields[each.name] = program.type
                compiled.append(CelVariable(each.name, program))
        return tuple(compiled)

    def conditions(self, written: Sequence[NamedExpression]) -> tuple[CelCondition, ...]:
        """Compile conditions, which must be bool."""
        compiled = []
        for each in written:
            program = self.compile(each.expression, (*each.path, "expression"), expected=types.BOOL)
            if program is not None:
                compiled.append(CelCondition(each.name, program))
        return tuple(compiled)
