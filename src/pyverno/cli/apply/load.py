"""The inputs of `pyverno apply`, and the session over them.

`Inputs` are plain data, so that worker processes can open the same session. A bad input is one error; the others are
still read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyverno.cli.apply.options import ApplyOptions
from pyverno.compiler import compile_documents
from pyverno.engine.request import User
from pyverno.errors import PyvernoError, UsageError, raise_all
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.kube.resource import Resource
from pyverno.kube.yaml.documents import Document, expand_lists, load_documents
from pyverno.offline.files import STDIN, DocumentCache, check_local, load_files, read_file
from pyverno.offline.folderrules import FolderRules, Skipped
from pyverno.offline.manifests import load_manifests
from pyverno.offline.objects import ObjectStore
from pyverno.offline.policies import load_policy_documents
from pyverno.offline.resources import normalise, read_objects
from pyverno.offline.session import Session
from pyverno.offline.system import OfflineSystem, System
from pyverno.offline.values import Values
from pyverno.policy.kinds import KNOWN_KINDS
from pyverno.value import dataclass, field, replace

if TYPE_CHECKING:
    from pyverno.cli.registries import RegistryAccess
    from pyverno.engine.imagesource import ImageSource
    from pyverno.offline.git.clone import Credentials

# trust rows: judged-context

__all__ = ["Inputs", "check_not_empty", "load_inputs", "open_session"]

_OWN_GROUP = "kyverno.io"
_ACCEPTED = "(--allow-empty accepts that)"


@dataclass(slots=True)
class Inputs:
    """Policies and exceptions as documents, resources as a cluster would see them, and the files given by flags.

    `resources` are the documents as written, `manifests` the objects made of them, one by one; with `has_payloads` they
    are JSON payloads of any shape. `checks` are authorization requests with their mode (`HTTP`, `Envoy`). `targets` are
    parameters and the objects that rules patch, `looked_up` further objects of the fake cluster. The run fails because
    of `errors`, not because of `warnings`. `skipped` are files of folders that are no manifests. With `is_kyverno`
    everything is read and judged as Kyverno's command line does it. `system` answers for this machine.
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
    registry: RegistryAccess | None = None
    system: System = field(default_factory=OfflineSystem)
    crds: tuple[JSONObject, ...] = ()
    skipped: list[Skipped] = field(default_factory=list)
    is_kyverno: bool = False
    exceptions_within_policies: bool = False
    errors: list[PyvernoError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def kinds(self) -> KindTable:
        """The built-in kinds and those of the given CustomResourceDefinitions."""
        return KNOWN_KINDS.with_crds(self.crds) if self.crds else KNOWN_KINDS


def load_inputs(options: ApplyOptions, *, stdin: bytes | None = None, cache: DocumentCache | None = None) -> Inputs:
    """Read all inputs; `stdin` replaces standard input, `cache` holds files that were read before.

    Raises UsageError for a file that cannot be used.
    """
    inputs = Inputs(exceptions_within_policies=options.exceptions_within_policies, is_kyverno=options.is_kyverno)
    if options.dns:
        inputs.system = System()
    if options.registry or options.trust_root:
        from pyverno.cli.registries import read_registry_access

        inputs.registry = read_registry_access(registry=options.registry, trust_root=options.trust_root)
    _read_cli_files(inputs, options)
    folders = None if options.is_kyverno else FolderRules(include=options.include, exclude=options.exclude)
    found = load_policy_documents(
        options.policies,
        git_branch=options.git_branch,
        credentials=_credentials(options),
        stdin=stdin,
        folders=None if folders is None else FolderRules(),
        cache=cache,
    )
    inputs.policies = found.documents
    inputs.errors += found.errors
    inputs.skipped += found.skipped
    _resources(inputs, options, stdin, folders, cache)
    if options.json_payloads:
        _payloads(inputs, options.json_payloads)
    for mode, paths in (("HTTP", options.http_payloads), ("Envoy", options.envoy_payloads)):
        if not paths:
            continue
        # imported here, because few runs evaluate authorization policies
        from pyverno.offline.authorizationrequests import load_authorization_requests

        inputs.checks += [(mode, document) for document in load_authorization_requests(paths, mode)]
    targets = load_manifests((*options.target_resources, *options.parameter_resources))
    inputs.errors += targets.errors
    kinds = inputs.kinds
    objects, errors = read_objects(targets.documents)
    inputs.errors += errors
    inputs.targets = [normalise(document.value, kinds) for document in objects]
    if options.exceptions_with_resources:
        inputs.exceptions = [each for each in inputs.resources if _is_own(each.value, "PolicyException")]
    else:
        exceptions = load_files(options.exceptions)
        inputs.exceptions = [*expand_lists(exceptions.documents)]
        inputs.errors += exceptions.errors
    inputs.global_entries = [each for each in inputs.resources if _is_own(each.value, "GlobalContextEntry")]
    return inputs


def check_not_empty(inputs: Inputs, rules: int) -> None:
    """Add an error for a run without resources or without rules, unless another error explains it."""
    if inputs.errors:
        return
    if not rules:
        inputs.errors.append(UsageError(f"the policies hold no rule, so that nothing is checked {_ACCEPTED}"))
    if not inputs.manifests and not inputs.checks:
        inputs.errors.append(UsageError(f"there is no resource, so that nothing is checked {_ACCEPTED}"))


def _credentials(options: ApplyOptions) -> Credentials | None:
    if not (options.username and options.password):
        return None
    from pyverno.offline.git.clone import Credentials  # few runs read a repository

    return Credentials(options.username, options.password)


def _read_cli_files(inputs: Inputs, options: ApplyOptions) -> None:
    if options.crd_paths:
        inputs.crds = _crds(options.crd_paths, is_kyverno=options.is_kyverno)
    if options.variables and not options.values_file:
        inputs.values = Values(global_values=_variables(options.variables))
    if not (options.values_file or options.user_info or options.context_file):
        return
    from pyverno.offline.clifiles import API_VERSION, read_context, read_user_info, read_values  # few runs have them

    if options.values_file:
        inputs.values = read_values(_one(options.values_file))
    if options.user_info:
        document = _one(options.user_info)
        value = document.value
        if isinstance(value, dict) and not (value.get("apiVersion") and value.get("kind")):
            # Kyverno: apply reads such a file, test does not
            inputs.warnings.append(f"`{options.user_info}` uses a deprecated schema: apiVersion and kind are missing")
            document = replace(document, value={"apiVersion": API_VERSION, "kind": "UserInfo", **value})
        inputs.user = read_user_info(document)
    if options.context_file:
        context = read_context(_one(options.context_file))
        inputs.images = context.images
        inputs.looked_up = [*context.resources]


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


def _crds(paths: Sequence[str], *, is_kyverno: bool) -> tuple[JSONObject, ...]:
    for path in paths:
        check_local(path)
        if Path(path).is_dir():
            raise UsageError(f"CRD path `{path}` is a folder, expected a file")
    loaded = load_files(paths)
    raise_all(loaded.errors)
    objects, errors = read_objects(loaded.documents)
    raise_all(errors)
    definitions = tuple(each.value for each in objects if each.value["kind"] == "CustomResourceDefinition")
    if not definitions and not is_kyverno:
        raise UsageError("the files of --crd-paths hold no CustomResourceDefinition")
    return definitions


def _resources(
    inputs: Inputs,
    options: ApplyOptions,
    stdin: bytes | None,
    folders: FolderRules | None,
    cache: DocumentCache | None,
) -> None:
    sources = options.resources
    found = load_manifests(sources, stdin=stdin, folders=folders, cache=cache)
    if options.helm or options.kustomize:
        from pyverno.offline.adoption.rendering import load_charts, load_kustomizations

        for rendered in (
            load_charts(options.helm, options.helm_values),
            load_kustomizations(options.kustomize, allows_remote=options.remote_bases),
        ):
            found.documents += rendered.documents
            found.errors += rendered.errors
    inputs.errors += found.errors
    inputs.skipped += found.skipped
    is_silent = STDIN in sources and not any(each.file == STDIN for each in found.documents)
    if is_silent and not options.is_kyverno and not options.allow_empty and not found.errors:
        inputs.errors.append(UsageError(f"standard input holds no resource {_ACCEPTED}"))
    kinds = inputs.kinds
    objects, errors = read_objects(found.documents)
    inputs.errors += errors
    for document in objects:
        try:
            manifest = normalise(document.value, kinds, has_nulls=document.may_hold_null)
        except PyvernoError as error:
            inputs.errors.append(UsageError(error.message, location=document.location(())))
            continue
        inputs.resources.append(document)
        inputs.manifests.append(manifest)
    if options.is_kyverno and sources and found.errors and not inputs.resources and STDIN not in sources:
        inputs.errors.append(UsageError("failed to load resources (no resource could be read)"))


def _payloads(inputs: Inputs, sources: Sequence[str]) -> None:
    """Read JSON payloads: objects of any shape; one that cannot be read is one error."""
    found = load_files(sources)
    inputs.errors += found.errors
    inputs.has_payloads = True
    for document in found.documents:
        if isinstance(document.value, dict):
            inputs.resources.append(document)
            inputs.manifests.append(document.value)
        else:
            inputs.errors.append(UsageError("a JSON payload must be an object", location=document.location(())))


def _is_own(value: JSON, kind: str) -> bool:
    return value.get("kind") == kind and str(value.get("apiVersion")).partition("/")[0] == _OWN_GROUP


def open_session(inputs: Inputs, registries: ImageSource | None = None) -> Session:
    """Compile the policies and exceptions and return the session; `errors` holds what does not compile.

    `registries` read the images that are not recorded.
    """
    kinds = inputs.kinds
    # a payload is no object of a cluster
    manifests = () if inputs.has_payloads else inputs.manifests
    looked_up = [normalise(each, kinds) for each in inputs.looked_up]
    return Session.open(
        compile_documents(inputs.policies),
        exceptions=compile_documents(inputs.exceptions),
        exceptions_among_policies=inputs.exceptions_within_policies,
        global_entries=compile_documents(inputs.global_entries),
        objects=ObjectStore([*_without(looked_up, manifests, kinds), *looked_up], kinds),
        targets=ObjectStore(inputs.targets, kinds) if inputs.targets else None,
        images=inputs.images,
        registries=registries,
        namespaces=manifests,
        values=inputs.values,
        user=inputs.user,
        kinds=kinds,
        system=inputs.system,
    )


def _without(given: Sequence[JSONObject], manifests: Sequence[JSONObject], kinds: KindTable) -> Sequence[JSONObject]:
    """Return the manifests without those whose names the user has given to other objects: facts are the user's."""
    if not given:  # guard: objects that the user gives replace those that are judged
        return manifests
    known = ObjectStore(given, kinds)
    views = ((each, Resource(each)) for each in manifests)
    return [each for each, view in views if known.get(view.api_version, view.kind, view.namespace, view.name) is None]
