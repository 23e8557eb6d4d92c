"""Everything that `pyverno apply` reads, and the evaluation session that it makes of it.

`Material` is plain data, so that worker processes can make the same session from it. One bad input is one error; the
others are still read. This module must never judge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyverno.cli.apply.options import ApplyOptions
from pyverno.compiler import Compilation, compile_documents
from pyverno.engine.request import User
from pyverno.errors import PyvernoError, UsageError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS, KindTable
from pyverno.kube.resource import Resource
from pyverno.kube.yaml.documents import Document, expand_lists, load_documents
from pyverno.offline.clifiles import API_VERSION, Values, read_context, read_user_info, read_values
from pyverno.offline.files import STDIN, check_local, load_files, read_file
from pyverno.offline.host import OfflineHost
from pyverno.offline.manifests import load_manifests
from pyverno.offline.objects import ObjectStore
from pyverno.offline.policies import load_policy_documents
from pyverno.offline.resources import normalise
from pyverno.offline.session import Evaluation
from pyverno.value import dataclass, field, replace

if TYPE_CHECKING:
    from pyverno.offline.git import Credentials
    from pyverno.policy.globalcontext import GlobalContextEntry

__all__ = ["Material", "Session", "load_material", "open_session"]

_OWN_GROUP = "kyverno.io"


@dataclass(slots=True)
class Material:
    """What was read: policies and exceptions as documents, resources as a cluster would see them, companions.

    `resources` are the documents as written; `manifests` belong to them one by one, and are JSON payloads of any shape
    when it `has_payloads`. `checks` are authorization requests with their mode (`HTTP`, `Envoy`). `targets` are what
    policies write to and parameters, `looked_up` what else they may ask the cluster for. `errors` make the run fail,
    `warnings` do not.
    """

    policies: list[Document] = field(default_factory=list)
    exceptions: list[Document] = field(default_factory=list)
    global_entries: list[Document] = field(default_factory=list)
    resources: list[Document] = field(default_factory=list)
    manifests: list[JSONObject] = field(default_factory=list)
    targets: list[JSONObject] = field(default_factory=list)
    looked_up: list[JSONObject] = field(default_factory=list)
    has_payloads: bool = False
    checks: list[tuple[str, Document]] = field(default_factory=list)
    values: Values = field(default_factory=Values)
    user: User = field(default_factory=User)
    images: tuple[JSONObject, ...] = ()
    crds: tuple[JSONObject, ...] = ()
    exceptions_within_policies: bool = False
    errors: list[PyvernoError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def kinds(self) -> KindTable:
        """The built-in kinds and those of the given CustomResourceDefinitions."""
        return BUILTIN_KINDS.with_crds(self.crds) if self.crds else BUILTIN_KINDS


@dataclass(frozen=True, slots=True)
class Session:
    """Compiled policies and exceptions, ready to be asked."""

    compilation: Compilation
    evaluation: Evaluation
    errors: tuple[PyvernoError, ...] = ()


def load_material(options: ApplyOptions, *, stdin: bytes | None = None) -> Material:
    """Read all inputs; `stdin` stands in for standard input. Raises UsageError for companions that can not be used."""
    material = Material(exceptions_within_policies=options.exceptions_within_policies)
    _companions(material, options)
    found = load_policy_documents(
        options.policies, git_branch=options.git_branch, credentials=_credentials(options), stdin=stdin
    )
    material.policies = found.documents
    material.errors += found.errors
    _resources(material, options.resources, stdin)
    if options.json_payloads:
        _payloads(material, options.json_payloads)
    for mode, paths in (("HTTP", options.http_payloads), ("Envoy", options.envoy_payloads)):
        if not paths:
            continue
        # imported here, because few runs ask authorization policies
        from pyverno.offline.authorizationrequests import load_check_requests

        material.checks += [(mode, document) for document in load_check_requests(paths, mode)]
    targets = load_manifests((*options.target_resources, *options.parameter_resources))
    material.errors += targets.errors
    kinds = material.kinds
    material.targets = [
        normalise(document.value, kinds) for document in expand_lists(targets.documents) if _is_object(document.value)
    ]
    if options.exceptions_with_resources:
        material.exceptions = [each for each in material.resources if _is_own(each.value, "PolicyException")]
    else:
        exceptions = load_files(options.exceptions)
        material.exceptions = [*expand_lists(exceptions.documents)]
        material.errors += exceptions.errors
    material.global_entries = [each for each in material.resources if _is_own(each.value, "GlobalContextEntry")]
    return material


def _credentials(options: ApplyOptions) -> Credentials | None:
    if not (options.username and options.password):
        return None
    from pyverno.offline.git import Credentials  # few runs read a repository

    return Credentials(options.username, options.password)


def _companions(material: Material, options: ApplyOptions) -> None:
    if options.values_file:
        material.values = read_values(_one(options.values_file))
    elif options.variables:
        material.values = Values(global_values=_variables(options.variables))
    if options.user_info:
        document = _one(options.user_info)
        value = document.value
        if isinstance(value, dict) and not (value.get("apiVersion") and value.get("kind")):
            # Kyverno: apply reads such a file, test does not
            material.warnings.append(f"`{options.user_info}` uses a deprecated schema: apiVersion and kind are missing")
            document = replace(document, value={"apiVersion": API_VERSION, "kind": "UserInfo", **value})
        material.user = read_user_info(document)
    if options.context_file:
        context = read_context(_one(options.context_file))
        material.images = context.images
        material.looked_up = [*context.resources]
    if options.crd_paths:
        material.crds = _crds(options.crd_paths)


def _one(path: str) -> Document:
    documents = load_documents(read_file(Path(path)), file=path)
    if len(documents) != 1:
        raise UsageError(f"`{path}` must hold one document, found {len(documents)}")
    return documents[0]


def _variables(written: Sequence[str]) -> dict[str, JSON]:
    found: dict[str, JSON] = {}
    for text in written:
        name, separator, value = text.partition("=")
        if not separator or not name or "=" in value:
            raise UsageError(f"invalid variable `{text}`: expected key=value")
        if not name.startswith("request.object."):
            found.setdefault(name, value)
    return found


def _crds(paths: Sequence[str]) -> tuple[JSONObject, ...]:
    for path in paths:
        check_local(path)
        if Path(path).is_dir():
            raise UsageError(f"CRD path `{path}` is a folder, expected a file")
    loaded = load_files(paths)
    if loaded.errors:
        raise loaded.errors[0]
    return tuple(document.value for document in expand_lists(loaded.documents) if _is_object(document.value))


def _resources(material: Material, sources: Sequence[str], stdin: bytes | None) -> None:
    found = load_manifests(sources, stdin=stdin)
    material.errors += found.errors
    kinds = material.kinds
    for document in expand_lists(found.documents):
        if not _is_object(document.value):
            problem = "the document is not a resource: apiVersion and kind are missing"
            material.errors.append(UsageError(problem, location=document.location(())))
            continue
        try:
            manifest = normalise(document.value, kinds, has_nulls=document.may_hold_null)
        except PyvernoError as error:
            material.errors.append(UsageError(error.message, location=document.location(())))
            continue
        material.resources.append(document)
        material.manifests.append(manifest)
    if sources and found.errors and not material.resources and STDIN not in sources:
        material.errors.append(UsageError("failed to load resources (no resource could be read)"))


def _payloads(material: Material, sources: Sequence[str]) -> None:
    """Read JSON payloads: objects of any shape; one that can not be read is one error."""
    found = load_files(sources)
    material.errors += found.errors
    material.has_payloads = True
    for document in found.documents:
        if isinstance(document.value, dict):
            material.resources.append(document)
            material.manifests.append(document.value)
        else:
            material.errors.append(UsageError("a JSON payload must be an object", location=document.location(())))


def _is_object(value: JSON) -> bool:
    return isinstance(value, dict) and bool(value.get("kind")) and bool(value.get("apiVersion"))


def _is_own(value: JSON, kind: str) -> bool:
    return value.get("kind") == kind and str(value.get("apiVersion")).partition("/")[0] == _OWN_GROUP


def open_session(material: Material) -> Session:
    """Compile the policies and exceptions and make the session; what does not compile is among `errors`."""
    compilation = compile_documents(material.policies)
    exceptions = compile_documents(material.exceptions)
    entries = compile_documents(material.global_entries)
    kinds = material.kinds
    looked_up = [normalise(each, kinds) for each in material.looked_up]
    store = ObjectStore(looked_up if material.has_payloads else [*material.manifests, *looked_up], kinds)
    host = OfflineHost(
        objects=store,
        targets=ObjectStore(material.targets, kinds) if material.targets else None,
        images={str(image.get("image")): image for image in material.images},
        global_entries=_global_data((*compilation.global_entries, *entries.global_entries), store),
    )
    if material.values.global_values or material.values.policies:
        # a Host that may supply variables makes the engine ask it for every rule
        host = replace(host, supply=material.values.supply)
    evaluation = Evaluation(
        policies=compilation.policies,
        host=host,
        exceptions=(
            *(compilation.exceptions if material.exceptions_within_policies else ()),
            *exceptions.exceptions,
        ),
        values=material.values,
        user=material.user,
        kinds=kinds,
        namespaces=_namespaces(material),
    )
    errors = (*compilation.errors, *exceptions.errors, *entries.errors)
    return Session(compilation, evaluation, errors)


def _global_data(entries: Sequence[GlobalContextEntry], store: ObjectStore) -> Mapping[str, JSON]:
    if not entries:
        return {}
    from pyverno.offline.globalentries import global_entries

    return global_entries(None, Path(), entries, store)


def _namespaces(material: Material) -> dict[str, JSONObject]:
    manifests = () if material.has_payloads else material.manifests
    found = {Resource(each).name: each for each in manifests if each.get("kind") == "Namespace"}
    found.update((Resource(each).name, each) for each in material.values.namespaces)
    return found
