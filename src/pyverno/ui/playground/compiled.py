"""Compiled policies of recent texts: a visitor changes one text at a time, so most reviews find their policies ready.

Compiled policies are immutable, so reviews can share them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeVar

from pyverno.compiler import Compilation, compile_documents
from pyverno.compiler.cel.typechecking import check_types, known_schemas
from pyverno.compiler.lints.lint import Diagnostic, Subject
from pyverno.compiler.lints.run import lint_documents
from pyverno.errors import PyvernoError, UsageError
from pyverno.kube.kinds import KindTable
from pyverno.kube.schemas import VERSIONS, schema_set
from pyverno.kube.status import StatusError
from pyverno.kube.yaml.documents import Document, expand_lists, load_documents
from pyverno.policy.cel.admissionpolicy import MutatingAdmissionPolicy, ValidatingAdmissionPolicy
from pyverno.policy.cel.policies import CelPolicy
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.kinds import KNOWN_KINDS

if TYPE_CHECKING:
    from pyverno.ui.playground.apiserver import ApiServer

__all__ = ["check_version", "compile_text", "find_server", "kinds_of", "lint_texts", "read_documents", "server_with"]

_T = TypeVar("_T")
_MOST_CHARACTERS: Final = 200_000
"""Longer texts are not cached: the cache has to fit into the memory of a worker."""

_KEPT: Final = 4
_CEL_VERSIONS: Final = tuple(each for each in VERSIONS if int(each.partition(".")[2]) >= 27)
"""Kubernetes versions with known CEL libraries."""


def read_documents(text: str, name: str) -> Sequence[Document]:
    """Return the documents of a text, with the items of lists; raises PyvernoError."""
    return expand_lists(load_documents(text, file=name))


def compile_text(text: str, name: str) -> Compilation:
    """Return the policies or exceptions of a text, compiled; raises PyvernoError for a text that is no YAML."""
    return _cached(_compile, text, name)


def kinds_of(crds: str, version: str = "") -> KindTable:
    """Return the known kinds with those that CustomResourceDefinitions define; raises PyvernoError.

    With a Kubernetes version they are those that it serves.
    """
    found = _definitions(crds)
    known = find_server(version).kinds if version else KNOWN_KINDS
    return known.with_crds(found) if found else known


def find_server(version: str) -> ApiServer:
    """Return the emulated API server of a Kubernetes version; raises UsageError for an unknown version."""
    if version not in _CEL_VERSIONS:
        raise UsageError(f"`kubernetesVersion` must be one of {', '.join(_CEL_VERSIONS)}")
    from pyverno.ui.playground.apiserver import api_server  # most reviews choose no version

    return api_server(version)


def server_with(version: str, crds: str) -> tuple[ApiServer, Sequence[PyvernoError]]:
    """Return the API server of a Kubernetes version with CustomResourceDefinitions, and warnings about these.

    Raises PyvernoError for a text that is no YAML.
    """
    return _cached(_server_with, version, crds)


def lint_texts(policies: str, crds: str, version: str = "") -> Sequence[Diagnostic]:
    """Return the lints' findings in policies, given definitions of custom kinds and a Kubernetes version, if any.

    Raises PyvernoError.
    """
    return _cached(_lint, policies, crds, version)


def check_version(compilation: Compilation, crds: str, version: str) -> Sequence[PyvernoError]:
    """Return the parts of policies' CEL that a Kubernetes version lacks; raises UsageError for an unknown version.

    Fields are those of its schemas, functions those of its libraries.
    """
    server = find_server(version)
    number = int(version.partition(".")[2])
    schemas = known_schemas(schema_set(version), _definitions(crds))
    found: list[PyvernoError] = []
    for item in compilation.items:
        policy = item.written
        try:
            server.check_kind(item.document.value)
        except UsageError as error:
            found.append(UsageError(error.message, location=item.document.location(())))
        if policy is not None:
            for path, text in server.unserved(Subject(item.document, policy)):
                message = f"Kubernetes {version} does not serve `{text}`: it never matches"
                found.append(PyvernoError(message, location=item.document.location(path)))
        if item.errors or not isinstance(
            policy, ValidatingAdmissionPolicy | MutatingAdmissionPolicy | CelPolicy | ClusterPolicy
        ):
            continue
        for each in check_types(policy, schemas, (1, number)).warnings:
            text = " ".join(each.warning.split())
            found.append(PyvernoError(f"Kubernetes {version}: {text}", location=each.location, path=each.field_ref))
    return found


def _cached(make: Callable[..., _T], *texts: str) -> _T:
    if sum(len(each) for each in texts) > _MOST_CHARACTERS:
        return make.__wrapped__(*texts)  # type: ignore[attr-defined, no-any-return]
    return make(*texts)


@lru_cache(maxsize=_KEPT)
def _compile(text: str, name: str) -> Compilation:
    return compile_documents(read_documents(text, name))


@lru_cache(maxsize=_KEPT)
def _server_with(version: str, crds: str) -> tuple[ApiServer, Sequence[PyvernoError]]:
    server, found = find_server(version), []
    for document in read_documents(crds, "crds"):
        if isinstance(document.value, dict):
            try:
                server, warnings = server.with_definition(document.value)
            except StatusError as error:
                warnings = [(error.message, ())]
            found += [PyvernoError(text, location=document.location(path)) for text, path in warnings]
    return server, tuple(found)


@lru_cache(maxsize=_KEPT)
def _lint(policies: str, crds: str, version: str) -> Sequence[Diagnostic]:
    items = compile_text(policies, "policies").items
    return lint_documents(items, kinds=kinds_of(crds, version), crds=_definitions(crds))


def _definitions(crds: str) -> list[dict[str, object]]:
    return [each.value for each in read_documents(crds, "crds") if isinstance(each.value, dict)]
