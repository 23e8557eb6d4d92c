"""Type checking of CEL policies: their expressions against the schemas of the kinds that they match.

The API server does the same for a ValidatingAdmissionPolicy and shows it in `status.typeChecking`: warnings, as a
policy with them still runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from itertools import islice, product
from typing import TypeAlias

from pyverno.compiler.cel.environment import VARIABLES, CelCompiler, environment_of_kind
from pyverno.compiler.parser import Parser
from pyverno.errors import Location
from pyverno.kube.gvk import GVK, parse_api_version, parse_kind_selector
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.kube.schemas import SchemaSet
from pyverno.kube.yaml.fieldpath import locate, path_text
from pyverno.lang.cel import Environment, types
from pyverno.lang.cel.checking.structs import DeclaredTypes, SchemaTypes, StructTypes
from pyverno.lang.cel.libraries.authorizer import AUTHORIZER_NAMES
from pyverno.lang.cel.libraries.kyverno.data import OR_VALUE
from pyverno.lang.cel.presets import NEWEST, kubernetes_environment
from pyverno.lang.cel.syntax.source import CompileError, Issue
from pyverno.lang.cel.types import Type, list_of, map_of
from pyverno.policy.cel.admissionpolicy import MutatingAdmissionPolicy, ValidatingAdmissionPolicy
from pyverno.policy.cel.blocks import EvaluationMode, Expression, named_expressions, validation_expressions
from pyverno.policy.cel.constraints import MatchConstraints, ResourceRule
from pyverno.policy.cel.imagepolicy import ImageValidatingPolicy
from pyverno.policy.cel.policies import CelPolicy, MutatingPolicy
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.kinds import KNOWN_KINDS
from pyverno.policy.rule import Rule
from pyverno.policy.validate import Cel, NamedExpression, Validate
from pyverno.value import dataclass

__all__ = [
    "ExpressionWarning",
    "Schemas",
    "TypeChecking",
    "check_types",
    "custom_schemas",
    "kinds_to_check",
    "known_schemas",
    "matched_kinds",
]

AnyPolicy: TypeAlias = ClusterPolicy | ValidatingAdmissionPolicy | MutatingAdmissionPolicy | CelPolicy

MAX_KINDS = 10
_EXCEPTIONS: Mapping[str, Type] = {"exceptions": map_of(types.STRING, list_of(types.STRING))}
_IMAGES: Mapping[str, Type] = dict.fromkeys(("images", "attestors", "attestations"), types.DYN)
_KEPT = frozenset({"any", "bool", "bytes", "double", "duration", "int", "null", "string", "timestamp", "uint"})
_MISMATCHES = ("found no matching overload", "expected type")
_METADATA: JSONObject = {"$ref": "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
_TEXT: JSONObject = {"type": "string"}


@dataclass(frozen=True, slots=True)
class Schemas:
    """Kinds and the schemas of their objects; `resolve` finds the schema that a `$ref` names."""

    kinds: KindTable
    find: Callable[[GVK], JSONObject | None]
    resolve: Callable[[str], JSONObject | None]


@dataclass(frozen=True, slots=True)
class ExpressionWarning:
    """The error of one expression, for each kind for which it is wrong, with the place of the expression."""

    field_ref: str
    warning: str
    location: Location

    def to_json(self) -> JSONObject:
        """Return the warning as the API server writes it."""
        return {"fieldRef": self.field_ref, "warning": self.warning}


@dataclass(frozen=True, slots=True)
class TypeChecking:
    """The kinds that a policy was checked for, none when it names none with a schema, and the warnings."""

    kinds: tuple[GVK, ...] = ()
    warnings: tuple[ExpressionWarning, ...] = ()

    def to_json(self) -> JSONObject:
        """Return the value of `status.typeChecking`."""
        return {"expressionWarnings": [each.to_json() for each in self.warnings]} if self.warnings else {}


def known_schemas(builtin: SchemaSet, crds: Iterable[JSONObject] = ()) -> Schemas:
    """Return Kubernetes' own kinds together with those of CustomResourceDefinitions.

    >>> from pyverno.kube.schemas import schema_set
    >>> known_schemas(schema_set()).find(GVK("", "v1", "ConfigMap"))["properties"]["immutable"]["type"]
    ['boolean', 'null']
    """
    crds = tuple(crds)
    custom = {gvk: schema for crd in crds for gvk, schema in custom_schemas(crd)}

    def find(gvk: GVK) -> JSONObject | None:
        found = custom.get(gvk)
        return builtin.find(gvk.group, gvk.version, gvk.kind) if found is None else found

    return Schemas(KNOWN_KINDS.with_crds(crds), find, builtin.definitions.get)


def custom_schemas(crd: JSONObject) -> Iterator[tuple[GVK, JSONObject]]:
    """Yield the kinds of a CustomResourceDefinition that have a schema, that of the stored version first."""
    spec = _map(crd, "spec")
    group, kind = spec.get("group"), _map(spec, "names").get("kind")
    written = spec.get("versions")
    versions = [each for each in written if isinstance(each, dict)] if isinstance(written, list) else []
    for version in sorted(versions, key=lambda each: each.get("storage") is not True):
        schema = _map(_map(version, "schema"), "openAPIV3Schema") or _map(_map(spec, "validation"), "openAPIV3Schema")
        if schema:
            # the API server adds what every object has when it publishes the schema of a definition
            own = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": _METADATA}
            whole = {**schema, "type": "object", "properties": {**_map(schema, "properties"), **own}}
            yield GVK(str(group), str(version.get("name")), str(kind)), whole


def _map(parent: JSONObject, key: str) -> JSONObject:
    found: JSON = parent.get(key)
    return found if isinstance(found, dict) else {}


def kinds_to_check(constraints: MatchConstraints | None, kinds: KindTable) -> tuple[GVK, ...]:
    """Return the kinds that rules name without wildcards and subresources, sorted; a rule gives at most ten.

    >>> rule = ResourceRule(("apps",), ("v1",), ("CREATE",), ("statefulsets", "deployments", "*/scale"))
    >>> [gvk.kind for gvk in kinds_to_check(MatchConstraints((rule,)), KNOWN_KINDS)]
    ['Deployment', 'StatefulSet']
    """
    # Kubernetes: apiserver/pkg/admission/plugin/policy/validating/typechecking.go typesToCheck
    found: set[GVK] = set()
    for rule in constraints.resource_rules if constraints is not None else ():
        named = tuple(islice(_rule_kinds(rule, kinds), MAX_KINDS))
        found.update(named)
        if len(named) == MAX_KINDS:
            break
    return _sort(found)


def _sort(kinds: Iterable[GVK]) -> tuple[GVK, ...]:
    return tuple(sorted(kinds, key=lambda gvk: (gvk.group, gvk.version, gvk.kind)))


def _rule_kinds(rule: ResourceRule, kinds: KindTable) -> Iterator[GVK]:
    if any("*" in each for each in (*rule.api_groups, *rule.api_versions)):
        return
    resources = sorted(each for each in rule.resources if "*" not in each and "/" not in each)
    for group, version, resource in product(sorted(rule.api_groups), sorted(rule.api_versions), resources):
        # COMPAT: the REST mapper takes the empty group, that of `v1`, as any group (apimachinery/pkg/api/meta)
        yield from _sort(
            info.gvk
            for info in kinds
            if info.version == version
            and resource.lower() in (info.plural, info.singular)
            and (not group or info.group == group)
        )


def check_types(policy: AnyPolicy, schemas: Schemas, version: tuple[int, int] = NEWEST) -> TypeChecking:
    """Check the expressions of a policy for each kind that it names and that has a schema.

    Of a ValidatingAdmissionPolicy these are the expressions that the API server checks: validations and their messages;
    of other kinds all, for what is certainly wrong in a policy that runs without types. Of a ClusterPolicy these are
    the `validate.cel` blocks, each for the kinds that its rule matches. `version` is that of Kubernetes, for its own
    policies and for these blocks.
    """
    found: dict[GVK, None] = {}
    warnings: list[ExpressionWarning] = []
    for subject in _subjects(policy, schemas, version):
        kinds = tuple((gvk, schema) for gvk in subject.kinds if (schema := schemas.find(gvk)) is not None)
        found.update((gvk, None) for gvk, _ in kinds)
        params = _params(subject.param_kind, schemas)
        environments = [
            (gvk, _with_variables(subject, *_with_objects(subject, {gvk.kind: schema, **params}, gvk.kind, schemas)))
            for gvk, schema in kinds
        ]
        of_subject = (_warning(policy, subject, each, environments) for each in subject.expressions)
        warnings.extend(each for each in of_subject if each is not None)
    return TypeChecking(tuple(found), tuple(warnings))


@dataclass(frozen=True, slots=True)
class _Subject:
    """Expressions that see the same objects: those of a policy, or of one rule; `is_lenient` leaves doubts out."""

    kinds: tuple[GVK, ...]
    environment: Environment
    variables: tuple[NamedExpression, ...]
    expressions: tuple[Expression, ...]
    param_kind: GVK | None = None
    is_lenient: bool = True


def _subjects(policy: AnyPolicy, schemas: Schemas, version: tuple[int, int]) -> Iterator[_Subject]:
    if isinstance(policy, ClusterPolicy):
        for rule in policy.spec.rules:
            if isinstance(rule.action, Validate) and rule.action.cel is not None:
                yield _rule_subject(policy, rule, rule.action.cel, schemas, version)
    elif isinstance(policy, CelPolicy):
        names = {**_EXCEPTIONS, **(_IMAGES if isinstance(policy, ImageValidatingPolicy) else {})}
        known = environment_of_kind(policy.kind)
        yield _Subject(
            _kinds(policy, schemas),
            CelCompiler(known, Parser(policy.document), names=names).environment,
            policy.spec.variables,
            tuple(policy.spec.expressions()),
        )
    else:
        yield _native_subject(policy, schemas, version)


def _native_subject(
    policy: ValidatingAdmissionPolicy | MutatingAdmissionPolicy, schemas: Schemas, version: tuple[int, int]
) -> _Subject:
    is_validating = isinstance(policy, ValidatingAdmissionPolicy)
    expressions = policy.spec.expressions()
    if isinstance(policy, ValidatingAdmissionPolicy):
        expressions = validation_expressions(policy.spec.validations)
    known = kubernetes_environment(version, mutation=not is_validating)
    kind = policy.spec.param_kind
    return _Subject(
        kinds_to_check(policy.spec.match_constraints, schemas.kinds),
        # Kubernetes leaves authorizer.requestResource out of type checking and warns about each use; that we do not
        CelCompiler(known, Parser(policy.document), names=AUTHORIZER_NAMES).environment,
        policy.spec.variables,
        tuple(expressions),
        None if kind is None else GVK(*parse_api_version(kind.api_version), kind.kind),
        is_lenient=not is_validating,
    )


def _rule_subject(policy: ClusterPolicy, rule: Rule, cel: Cel, schemas: Schemas, version: tuple[int, int]) -> _Subject:
    environment = kubernetes_environment(version).extended(OR_VALUE)
    kind = cel.param_kind or {}
    return _Subject(
        matched_kinds(rule.match.kinds(), schemas.kinds),
        CelCompiler(environment, Parser(policy.document), names=AUTHORIZER_NAMES).environment,
        cel.variables,
        (
            *named_expressions(rule.cel_preconditions),
            *named_expressions(cel.variables),
            *validation_expressions(cel.expressions),
        ),
        GVK(*parse_api_version(str(kind.get("apiVersion") or "")), str(kind.get("kind") or "")) if kind else None,
    )


def matched_kinds(written: Iterable[str], kinds: KindTable) -> tuple[GVK, ...]:
    """Return the kinds that a rule names without wildcards and subresources; of a bare kind every version."""
    selectors = [parse_kind_selector(text) for text in written]
    plain = [each for each in selectors if not each.has_wildcard and not each.subresource]
    return _sort({info.gvk for info in kinds for selector in plain if selector.matches(info.gvk)})[:MAX_KINDS]


def _kinds(policy: CelPolicy, schemas: Schemas) -> tuple[GVK, ...]:
    spec = policy.spec
    if spec.evaluation.mode is not EvaluationMode.KUBERNETES:
        return ()
    if isinstance(policy, MutatingPolicy) and policy.spec.target_match_constraints is not None:
        return ()  # two kinds of objects go by one name: what triggers, and what is changed
    return kinds_to_check(spec.match_constraints, schemas.kinds)


def _params(kind: GVK | None, schemas: Schemas) -> Mapping[str, JSONObject]:
    """Return the schema of `params`, by that name; an empty one, which is dyn, when it is not known."""
    return {} if kind is None else {"params": schemas.find(kind) or {}}


def _with_objects(
    subject: _Subject, roots: Mapping[str, JSONObject], kind: str, schemas: Schemas
) -> tuple[Environment, SchemaTypes]:
    """Declare the objects of a kind, and the parameters, if any."""
    found = SchemaTypes(roots, schemas.resolve)
    declared = found.type_of(kind)
    params = {"params": found.type_of("params")} if "params" in roots else {}
    return subject.environment.with_variables({"object": declared, "oldObject": declared, **params}), found


def _with_variables(subject: _Subject, known: Environment, found: SchemaTypes) -> Environment:
    """Declare variables: each sees those before it."""
    fields: dict[str, Type] = {}
    environment = _with_fields(known, fields, found)
    for each in subject.variables:
        fields[each.name] = _field_type(each.expression, environment)
        environment = _with_fields(known, fields, found)
    return environment


def _with_fields(known: Environment, fields: Mapping[str, Type], found: SchemaTypes) -> Environment:
    return known.with_structs(StructTypes((DeclaredTypes({VARIABLES: fields}), found, known.structs)))


def _field_type(text: str, environment: Environment) -> Type:
    """Return the type of a variable; one that is wrong in itself is dyn, and is no fault of those that use it."""
    try:
        return _stored(environment.check(text).type)
    except CompileError:
        return types.DYN


def _stored(declared: Type) -> Type:
    # Kubernetes: plugin/cel/composition.go convertCelTypeToDeclType knows plain types, lists and maps
    if declared.kind in ("list", "map"):
        inner = tuple(_stored(each) for each in declared.params)
        return list_of(*inner) if declared.kind == "list" else map_of(*inner)
    return declared if declared.kind in _KEPT and not declared.nullable else types.DYN


def _warning(
    policy: AnyPolicy, subject: _Subject, expression: Expression, environments: Iterable[tuple[GVK, Environment]]
) -> ExpressionWarning | None:
    results = []
    for gvk, environment in environments:
        try:
            environment.check(expression.text)
        except CompileError as error:
            found = _certain(error, gvk.kind) if subject.is_lenient else error
            if found is not None:
                results.append(f"{gvk.group}/{gvk.version}, Kind={gvk.kind}: {found.message}\n")
    if not results:
        return None
    location = locate(policy.document, expression.path)
    return ExpressionWarning(path_text(expression.path), "\n".join(results), location)


def _certain(error: CompileError, kind: str) -> CompileError | None:
    """Leave out what is wrong by type only: when it runs, an object is a map, and so fits `Object{}`, `{}` and null."""
    kept = tuple(issue for issue in error.issues if not _is_by_type_only(issue, {kind, "params", "null"}))
    return CompileError(kept, error.source) if kept else None


def _is_by_type_only(issue: Issue, roots: Set[str]) -> bool:
    names = re.split(r"[^\w.@]+", issue.message)
    return issue.message.startswith(_MISMATCHES) and any(name.partition(".")[0] in roots for name in names)
