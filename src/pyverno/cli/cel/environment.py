"""The environments that `pyverno cel` knows by name, and the types of objects by schema.

Policies and this command declare the same variables, by the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from pyverno.errors import DocumentError, PyvernoError, UsageError, raise_all
from pyverno.kube.gvk import parse_kind_selector
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.kube.schemas import SchemaSet, schema_set
from pyverno.lang.cel import STANDARD, Environment, types
from pyverno.lang.cel.checking.structs import SchemaTypes, StructTypes
from pyverno.lang.cel.libraries.authorizer import AUTHORIZER_NAMES
from pyverno.lang.cel.libraries.kyverno.data import OR_VALUE
from pyverno.lang.cel.presets import (
    NEWEST,
    authz_environment,
    kubernetes_environment,
    read_check_request,
)
from pyverno.lang.cel.types import Type, list_of, map_of, parse_type, struct
from pyverno.lazyregex import regex
from pyverno.policy.kinds import KNOWN_KINDS, POLICY_KINDS, Family, kinds_of
from pyverno.value import replace

__all__ = [
    "ENVIRONMENTS",
    "authorization_mode",
    "check_bindings",
    "custom_definitions",
    "expected_type",
    "named_environment",
    "parse_kubernetes_version",
    "typed_by_kind",
]

Version = tuple[int, int]

OLDEST: Version = (1, 27)
_VERSION = regex(r"v?1\.(\d{1,3})(?:\.\S*)?")
_EXCEPTIONS: Mapping[str, Type] = {"exceptions": map_of(types.STRING, list_of(types.STRING))}
_IMAGES: Mapping[str, Type] = dict.fromkeys(("images", "attestors", "attestations"), types.DYN)
_IMAGE_KINDS = frozenset(row.kind for row in POLICY_KINDS if "image-verification" in row.libraries)
_PARAMS: Mapping[str, Type] = {"params": types.DYN}


def _standard(version: Version) -> Environment:
    return STANDARD


def _kubernetes(version: Version, *, mutation: bool = False) -> Environment:
    return _with_admission(kubernetes_environment(version, mutation=mutation), _PARAMS)


def _native(version: Version, *, mutation: bool = False) -> Environment:
    return _kubernetes(version, mutation=mutation).with_variables(AUTHORIZER_NAMES)


def _rules(version: Version) -> Environment:
    # Kyverno: in its own policies `orValue` also takes plain values
    names = {**_PARAMS, **AUTHORIZER_NAMES}
    return _with_admission(kubernetes_environment(version).extended(OR_VALUE), names)


def _kyverno(version: Version, *, kind: str) -> Environment:
    from pyverno.compiler.cel.environment import environment_of_kind

    names = {**_EXCEPTIONS, **(_IMAGES if kind in _IMAGE_KINDS else {})}
    return _with_admission(environment_of_kind(kind), names)


def _authz(version: Version, *, mode: str) -> Environment:
    return authz_environment(mode).with_variables({"variables": types.DYN})


def _with_admission(environment: Environment, names: Mapping[str, Type]) -> Environment:
    """Declare the variables of a policy kind; `variables` has fields of any name, because no policy defines them."""
    from pyverno.compiler.cel.environment import CelCompiler
    from pyverno.compiler.parser import Parser
    from pyverno.kube.yaml.documents import Document

    made = CelCompiler(environment, Parser(Document({})), names=names).environment
    return made.with_variables({"variables": types.DYN})


ENVIRONMENTS: Mapping[str, Callable[[Version], Environment]] = {
    "standard": _standard,
    "kubernetes": _kubernetes,
    "ValidatingAdmissionPolicy": _native,
    "MutatingAdmissionPolicy": partial(_native, mutation=True),
    "ClusterPolicy": _rules,
    **{kind: partial(_kyverno, kind=kind) for kind in sorted(kinds_of(Family.CEL))},
    "Envoy": partial(_authz, mode="Envoy"),
    "HTTP": partial(_authz, mode="HTTP"),
}
"""Environments by name: plain CEL, Kubernetes' own, those of policy kinds, and those of authorization policies."""


def authorization_mode(name: str) -> str:
    """Return the mode of authorization requests of an environment, "" for any other environment.

    >>> authorization_mode("envoy"), authorization_mode("ValidatingPolicy")
    ('Envoy', '')
    """
    return next((mode for mode in ("Envoy", "HTTP") if mode.lower() == name.lower()), "")


def check_bindings(given: Mapping[str, JSON], mode: str) -> dict[str, JSON]:
    """Return the variables of an authorization request; raises UsageError for any other object."""
    if "object" not in given:
        return {"variables": {}, **given}
    try:
        return {"variables": {}, **given, "object": read_check_request(mode, given["object"])}
    except DocumentError as error:
        raise UsageError(f"the object is not a request of mode {mode}: {error.message}") from error


def parse_kubernetes_version(text: str) -> Version:
    """Return a version of Kubernetes, the newest one for an empty text; raises UsageError for an unknown one.

    >>> parse_kubernetes_version("v1.33.2")
    (1, 33)
    """
    if not text:
        return NEWEST
    found = _VERSION.fullmatch(text)
    version = (1, int(found[1])) if found else (0, 0)
    if not OLDEST <= version <= NEWEST:
        known = f"1.{OLDEST[1]} to 1.{NEWEST[1]}"
        raise UsageError(f'invalid argument "{text}" for "--kubernetes-version" flag: expected {known}')
    return version


def named_environment(
    name: str, version: Version, given: Iterable[str] = (), *, cost_limit: int | None = None
) -> Environment:
    """Return the environment of a name in any case; variables that were given and are not declared become dyn.

    Raises UsageError for an unknown name.
    """
    by_name = {known.lower(): make for known, make in ENVIRONMENTS.items()}
    make = by_name.get(name.lower())
    if make is None:
        raise UsageError(f'unknown environment "{name}", must be one of {", ".join(ENVIRONMENTS)}')
    environment = make(version)
    missing = [each for each in given if each not in environment.names.variables]
    if missing:
        environment = environment.with_variables(dict.fromkeys(missing, types.DYN))
    return environment if cost_limit is None else replace(environment, cost_limit=cost_limit)


def expected_type(text: str, environment: Environment) -> Type:
    """Return the type that a text such as `bool`, `list(string)` or `Object` names; raises UsageError otherwise."""
    try:
        return _declare(parse_type(text), environment)
    except (ValueError, IndexError, RecursionError):
        raise UsageError(f'unknown type "{text}"') from None


def _declare(found: Type, environment: Environment) -> Type:
    """Read unknown names as struct types of the environment, or as its libraries' own."""
    params = tuple(_declare(each, environment) for each in found.params)
    if found.kind == "param":
        raise ValueError(found.name)
    if found.kind == "opaque" and found.name == "null_type":
        return types.NULL
    if found.kind == "opaque" and found.name != "optional_type":
        if environment.names.structs.has_struct(found.name):
            return struct(found.name)
        if found.name not in environment.names.constants:
            raise ValueError(found.name)
    return replace(found, params=params)


def typed_by_kind(environment: Environment, kind: str, crd_files: Sequence[str], version: Version) -> Environment:
    """Declare `object` and `oldObject` with the schema of a kind.

    The schema is Kubernetes' own, or that of a CustomResourceDefinition when files are given. Raises UsageError for a
    kind without one.
    """
    builtin = schema_set(".".join(map(str, version)))
    crds, errors = custom_definitions(crd_files)
    raise_all(errors)
    info, schema = _of_crds(crds, kind) if crds else _of_builtin(kind, builtin)
    schemas = SchemaTypes({info.kind: schema}, builtin.definitions.get)
    declared = schemas.type_of(info.kind)
    known = environment.with_structs(StructTypes((schemas, environment.structs)))
    return known.with_variables({"object": declared, "oldObject": declared})


def custom_definitions(files: Sequence[str]) -> tuple[list[JSONObject], list[PyvernoError]]:
    """Return the CustomResourceDefinitions of the files of --crd, and the errors of the files.

    Raises UsageError when files that can be read hold none.
    """
    from pyverno.offline.files import load_files

    loaded = load_files(files)
    found = [
        document.value
        for document in loaded.documents
        if isinstance(document.value, dict) and document.value.get("kind") == "CustomResourceDefinition"
    ]
    if files and not found and not loaded.errors:
        raise UsageError("the files of --crd hold no CustomResourceDefinition")
    return found, loaded.errors


def _of_builtin(kind: str, builtin: SchemaSet) -> tuple[KindInfo, JSONObject]:
    infos = _one_kind(KNOWN_KINDS, kind)
    for info in infos:
        schema = builtin.find(info.group, info.version, info.kind)
        if schema is not None:
            return info, schema
    raise UsageError(
        f"Kubernetes {builtin.version} has no schema of {infos[0].kind}; give its CustomResourceDefinition with --crd"
    )


def _of_crds(crds: list[JSONObject], kind: str) -> tuple[KindInfo, JSONObject]:
    from pyverno.compiler.cel.typechecking import custom_schemas

    table = KindTable().with_crds(crds)
    infos = _one_kind(table, kind) if kind else _same_kind(tuple(table), "the files of --crd")
    named = {info.gvk: info for info in infos}
    for crd in crds:
        for gvk, schema in custom_schemas(crd):
            if gvk in named:
                return named[gvk], schema
    raise UsageError(f"the CustomResourceDefinition of {infos[0].kind} has no schema")


def _one_kind(table: KindTable, text: str) -> tuple[KindInfo, ...]:
    """Return the versions of the kind that a text names: `Deployment`, `deploy.apps`, `apps/v1/Deployment`."""
    if "/" in text:
        selector = parse_kind_selector(text)
        return _same_kind(tuple(info for info in table if selector.matches(info.gvk)), text)
    return _same_kind(table.named(text), text)


def _same_kind(infos: tuple[KindInfo, ...], text: str) -> tuple[KindInfo, ...]:
    kinds = dict.fromkeys((info.group, info.kind) for info in infos)
    if not kinds:
        raise UsageError(f"unknown kind `{text}`; give its CustomResourceDefinition with --crd")
    if len(kinds) > 1:
        names = ", ".join(dict.fromkeys(f"{info.api_version}/{info.kind}" for info in infos[:10]))
        raise UsageError(f"`{text}` names several kinds ({names}): choose one with --kind GROUP/VERSION/KIND")
    return infos
