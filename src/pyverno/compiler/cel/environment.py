"""The CEL environments of policies: which variables an expression has, with their types, and how it is compiled.

Variables of a policy are compiled in order: each sees those before it, by type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from pyverno.compiler.cel.hints import compile_hint
from pyverno.compiler.parser import Parser
from pyverno.engine.cel.session import CelCondition, CelVariable
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.fieldpath import Path
from pyverno.lang.cel import Environment, Program, types
from pyverno.lang.cel.checking.structs import SchemaTypes, StructTypes
from pyverno.lang.cel.presets import kyverno_environment
from pyverno.lang.cel.rebase import rebase
from pyverno.lang.cel.syntax.source import CompileError
from pyverno.lang.cel.types import Type, struct
from pyverno.lang.cel.values import StructValue, Value
from pyverno.lazyregex import regex
from pyverno.policy.kinds import Family, find_kind
from pyverno.policy.validate import NamedExpression
from pyverno.value import dataclass, field

__all__ = ["CelCompiler", "environment_of_kind", "forget"]

MEMO_LIMIT = 4096
VARIABLES = "kubernetes.variables"
REQUEST = "kubernetes.AdmissionRequest"
NAMESPACE = "kubernetes.Namespace"

_DOES_NOT_COMPILE = "cel-compile"

_TEXT: JSONObject = {"type": "string"}
_TEXTS: JSONObject = {"type": "array", "items": _TEXT}
_LABELS: JSONObject = {"type": "object", "additionalProperties": _TEXT}


def _record(**properties: JSONObject) -> JSONObject:
    return {"type": "object", "properties": properties}


def environment_of_kind(kind: str) -> Environment:
    """Return the environment of a policy kind of policies.kyverno.io; raises KeyError for any other kind.

    >>> environment_of_kind("ValidatingPolicy").compile("image('nginx').tag()").evaluate({})
    'latest'
    """
    row = find_kind("policies.kyverno.io", kind)
    if row is None or row.family is not Family.CEL:
        raise KeyError(kind)
    return kyverno_environment(
        row.libraries,
        namespaced=row.namespaced,
        homogeneous=row.is_homogeneous,
        literal_checks=row.checks_literals,
    )


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


_Expected = Type | tuple[Type, ...] | None


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


class _Base:
    """State that compilers of equal variables share: the environment without a policy's variables, and its programs.

    Policies repeat themselves, and their autogen copies repeat what does not look into the object: an expression that
    reads variables of the same types is compiled once.
    """

    def __init__(
        self, environment: Environment, names: Mapping[str, Type], *, is_payload: bool, has_objects: bool
    ) -> None:
        schemas = SchemaTypes(
            {REQUEST: _REQUEST_WITH_OBJECTS if has_objects else _REQUEST_SCHEMA, NAMESPACE: _NAMESPACE_SCHEMA}
        )
        known: dict[str, Type] = {"object": types.DYN, "variables": struct(VARIABLES), **names}
        if not is_payload:
            known.update(
                oldObject=types.DYN, request=schemas.type_of(REQUEST), namespaceObject=schemas.type_of(NAMESPACE)
            )
        self._environment = environment.with_variables(known)
        self._structs = (schemas, environment.structs)
        self._programs: dict[tuple[str, _Expected], tuple[tuple[str, ...], dict[tuple[Type | None, ...], Program]]] = {}

    def with_variables(self, variables: _VariableTypes) -> Environment:
        """Return the environment of one policy."""
        return self._environment.with_structs(StructTypes((variables, *self._structs)))

    def find(self, text: str, expected: _Expected, fields: Mapping[str, Type]) -> Program | None:
        """Return the program of an expression that was compiled with the same types of the variables it reads."""
        names, programs = self._programs.get((text, expected), ((), _NONE))
        return programs.get(tuple(map(fields.get, names)))

    def find_shallow(self, text: str, expected: _Expected, fields: Mapping[str, Type]) -> Program | None:
        """Return the program of an expression out of that of one that looks into the pod and not its template.

        Autogen copies are of this kind. Nothing is taken on trust: the tree is moved only where names of the text are.
        """
        for steps, pattern in _TEMPLATES:
            if steps not in text:
                continue
            shallow, ends = _without(steps, pattern, text)
            origin = self.find(shallow, expected, fields)
            if origin is not None:
                checked = rebase(origin.checked, ends, steps[1:].split("."))
                if checked is None:
                    return None
                program = Program(text, checked, origin.settings)
                # it reads the same variables
                self._keep(program, expected, fields, self._programs[shallow, expected][0])
                return program
        return None

    def keep(self, program: Program, expected: _Expected, fields: Mapping[str, Type]) -> None:
        """Keep a program, unless what it means depends on more than the types of the variables it reads."""
        names = _variables_of(program.text)
        if names is not None:
            self._keep(program, expected, fields, names)

    def _keep(self, program: Program, expected: _Expected, fields: Mapping[str, Type], names: tuple[str, ...]) -> None:
        if len(self._programs) >= MEMO_LIMIT:
            # a fresh dict rather than clear(): other threads may be reading the old one
            self._programs = {}
        _, programs = self._programs.setdefault((program.text, expected), (names, {}))
        programs[tuple(map(fields.get, names))] = program


_NONE: dict[tuple[Type | None, ...], Program] = {}


def _without(steps: str, pattern: re.Pattern[str], text: str) -> tuple[str, list[int]]:
    """Return a text without these steps, and where in it they were left out."""
    kept: list[str] = []
    ends: list[int] = []
    start = 0
    for found in pattern.finditer(text):
        end = found.end(1)
        kept.append(text[start:end])
        ends.append(end - len(ends) * len(steps))
        start = found.end()
    return "".join((*kept, text[start:])), ends


def _variables_of(text: str) -> tuple[str, ...] | None:
    """Return the names of the policy's variables that an expression may read; None when that is unknown.

    A name in a literal or a comment is counted too, which does no harm.

    >>> _variables_of("variables.b + variables.a"), _variables_of("variables['a']")
    (('a', 'b'), None)
    """
    if _STRUCT.search(text) is not None:
        return None
    names = _READ.findall(text)
    return tuple(sorted(set(names))) if len(names) == text.count("variables") else None


_TEMPLATES = tuple(
    (steps, regex(rf"\b(object|oldObject){re.escape(steps)}(?=\.)", re.ASCII))
    for steps in (".spec.jobTemplate.spec.template", ".spec.template")
)
_READ = regex(r"\bvariables\.([A-Za-z_][A-Za-z0-9_]*)(?![A-Za-z0-9_(])", re.ASCII)
_STRUCT = regex(r"[A-Za-z0-9_`]\s*\{", re.ASCII)


def forget() -> None:
    """Empty the caches that compilers share, for measurements of a first compilation."""
    _base.cache_clear()


@lru_cache(maxsize=64)
def _base(environment: Environment, names: tuple[tuple[str, Type], ...], is_payload: bool, has_objects: bool) -> _Base:
    return _Base(environment, dict(names), is_payload=is_payload, has_objects=has_objects)


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
        self._base = _base(environment, tuple(sorted((names or {}).items())), is_payload, request_has_objects)
        self._environment: Environment | None = None

    @property
    def environment(self) -> Environment:
        """The environment of this policy; copies made by autogen seldom need their own."""
        if self._environment is None:
            self._environment = self._base.with_variables(self._variables)
        return self._environment

    def compile(self, text: str, path: Path, *, expected: Type | tuple[Type, ...] | None = None) -> Program | None:
        """Compile one expression; None when it does not (which is reported)."""
        known = self._variables.fields
        program = self._base.find(text, expected, known)
        if program is not None:
            return program
        program = self._base.find_shallow(text, expected, known)
        if program is not None:
            return program
        try:
            program = self.environment.compile(text, expected=expected)
        except CompileError as error:
            self._report(error, text, path)
            return None
        self._base.keep(program, expected, known)
        return program

    def _report(self, error: CompileError, text: str, path: Path) -> None:
        """Report an expression that does not compile; copies by autogen, which fail with it, are not reported again."""
        if self.parser.is_reported(path, _DOES_NOT_COMPILE):
            return
        offset = self.parser.offset_in(text, path, error.offset)
        hint = compile_hint(error, tuple(self._variables.fields))
        self.parser.report(error.message, path, code=_DOES_NOT_COMPILE, offset=offset, hint=hint)

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
