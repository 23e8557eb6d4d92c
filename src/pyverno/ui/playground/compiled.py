"""Compiled policies of recent texts: a visitor changes one text at a time, so most reviews find their policies ready.

Compiled policies are immutable; what one review does to them, no other can see.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, TypeVar

from pyverno.compiler import Compilation, compile_documents
from pyverno.compiler.cel.typechecking import check_types, known_schemas
from pyverno.compiler.lints.lint import Diagnostic
from pyverno.compiler.lints.run import lint_documents
from pyverno.errors import PyvernoError, UsageError
from pyverno.kube.kinds import KindTable
from pyverno.kube.schemas import VERSIONS, schema_set
from pyverno.kube.yaml.documents import Document, expand_lists, load_documents
from pyverno.policy.cel.admissionpolicy import MutatingAdmissionPolicy, ValidatingAdmissionPolicy
from pyverno.policy.cel.policies import CelPolicy
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.kinds import KNOWN_KINDS

__all__ = ["check_version", "compile_text", "kinds_of", "lint_texts", "read_documents"]

_T = TypeVar("_T")
_MOST_CHARACTERS: Final = 200_000
"""Longer texts are compiled anew each time: what is kept has to fit into the memory of a worker."""

_KEPT: Final = 4
_CEL_VERSIONS: Final = tuple(each for each in VERSIONS if int(each.partition(".")[2]) >= 27)
"""Kubernetes versions whose libraries of CEL are known."""


def read_documents(text: str, name: str) -> Sequence[Document]:
    """Return the documents of a text, with the items of lists; raises PyvernoError."""
    return expand_lists(load_documents(text, file=name))


def compile_text(text: str, name: str) -> Compilation:
    """Return the policies or exceptions of a text, compiled; raises PyvernoError for a text that is no YAML."""
    return _kept(_compile, text, name)


def kinds_of(crds: str) -> KindTable:
    """Return the known kinds with those that CustomResourceDefinitions define; raises PyvernoError."""
    found = _definitions(crds)
    return KNOWN_KINDS.with_crds(found) if found else KNOWN_KINDS


def lint_texts(policies: str, crds: str) -> Sequence[Diagnostic]:
    """Return what lints find in policies, given the definitions of custom kinds; raises PyvernoError."""
    return _kept(_lint, policies, crds)


def check_version(compilation: Compilation, crds: str, version: str) -> Sequence[PyvernoError]:
    """Return what of the CEL of policies a Kubernetes version does not know; raises UsageError for an unknown version.

    Fields are those of its schemas, functions those of its libraries.
    """
    if version not in _CEL_VERSIONS:
        raise UsageError(f"`kubernetesVersion` must be one of {', '.join(_CEL_VERSIONS)}")
    number = int(version.partition(".")[2])
    schemas = known_schemas(schema_set(version), _definitions(crds))
    found: list[PyvernoError] = []
    for item in compilation.items:
        policy = item.written
        if item.errors or not isinstance(
            policy, ValidatingAdmissionPolicy | MutatingAdmissionPolicy | CelPolicy | ClusterPolicy
        ):
            continue
        for each in check_types(policy, schemas, (1, number)).warnings:
            text = " ".join(each.warning.split())
            found.append(PyvernoError(f"Kubernetes {version}: {text}", location=each.location, path=each.field_ref))
    return found


def _kept(make: Callable[[str, str], _T], first: str, second: str) -> _T:
    if len(first) + len(second) > _MOST_CHARACTERS:
        return make.__wrapped__(first, second)  # type: ignore[attr-defined, no-any-return]
    return make(first, second)


@lru_cache(maxsize=_KEPT)
def _compile(text: str, name: str) -> Compilation:
    return compile_documents(read_documents(text, name))


@lru_cache(maxsize=_KEPT)
def _lint(policies: str, crds: str) -> Sequence[Diagnostic]:
    items = compile_text(policies, "policies").items
    return lint_documents(items, kinds=kinds_of(crds), crds=_definitions(crds))


def _definitions(crds: str) -> list[dict[str, object]]:
    return [each.value for each in read_documents(crds, "crds") if isinstance(each.value, dict)]
