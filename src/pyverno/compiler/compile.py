"""From documents to what the engine runs: decode, validate, lower; the one way in for every policy kind.

Compiling is validating: all errors of all documents are collected, each with code, location and field path. A policy
that decodes but is not valid is still lowered, so that a store can keep it loaded; who must not run it looks at
`Compiled.errors`. This module must never read a file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pyverno.compiler.cleanup import lower_cleanup_policy
from pyverno.compiler.clusterpolicy import lower_cluster_policy
from pyverno.compiler.exception import lower_exception
from pyverno.compiler.validation import validate
from pyverno.engine.exceptions import CompiledException
from pyverno.engine.policyset import PolicySet
from pyverno.engine.rule import CompiledPolicy
from pyverno.errors import PolicyError
from pyverno.kube.documents import Document
from pyverno.policy.cleanup import CleanupPolicy
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.decode import AnyPolicy, decode
from pyverno.policy.exception import PolicyException
from pyverno.policy.globalcontext import GlobalContextEntry

__all__ = ["Compilation", "Compiled", "compile_document", "compile_documents"]


@dataclass(frozen=True, slots=True)
class Compiled:
    """One document after compiling: what was written, what the engine runs, and what is wrong with it.

    `written` is None when the document does not decode. `policy` or `exception` is set for the kinds that have one,
    also when there are `errors` that validation found.
    """

    document: Document
    written: AnyPolicy | None = None
    policy: CompiledPolicy | None = None
    exception: CompiledException | None = None
    errors: tuple[PolicyError, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Compilation:
    """All documents of a run after compiling."""

    items: tuple[Compiled, ...] = field(default_factory=tuple)

    @property
    def errors(self) -> tuple[PolicyError, ...]:
        """Every error of every document."""
        return tuple(error for item in self.items for error in item.errors)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Every warning of every document."""
        return tuple(warning for item in self.items for warning in item.warnings)

    @property
    def policies(self) -> tuple[CompiledPolicy, ...]:
        """The policies that are valid."""
        return tuple(item.policy for item in self.items if item.policy is not None and not item.errors)

    @property
    def exceptions(self) -> tuple[CompiledException, ...]:
        """The exceptions that are valid."""
        return tuple(item.exception for item in self.items if item.exception is not None and not item.errors)

    @property
    def global_entries(self) -> tuple[GlobalContextEntry, ...]:
        """The global context entries that are valid."""
        return tuple(
            item.written for item in self.items if isinstance(item.written, GlobalContextEntry) and not item.errors
        )

    def policy_set(self) -> PolicySet:
        """Return the valid policies and exceptions, indexed for an engine."""
        return PolicySet(self.policies, self.exceptions)


def compile_document(document: Document) -> Compiled:
    """Compile one policy document; never raises for a bad document."""
    decoded = decode(document)
    written = decoded.policy
    if written is None:
        return Compiled(document, errors=decoded.errors, warnings=decoded.warnings)
    found = validate(written)
    errors = [*decoded.errors, *found.errors]
    warnings = (*decoded.warnings, *found.warnings)
    policy: CompiledPolicy | None = None
    exception: CompiledException | None = None
    lowering: tuple[PolicyError, ...] = ()
    match written:
        case ClusterPolicy():
            policy, lowering = lower_cluster_policy(written)
        case CleanupPolicy():
            policy, lowering = lower_cleanup_policy(written)
        case PolicyException():
            exception, lowering = lower_exception(written)
        case GlobalContextEntry():
            pass
    known = {(error.path, error.location) for error in errors}
    errors.extend(error for error in lowering if (error.path, error.location) not in known)
    return Compiled(document, written, policy, exception, tuple(errors), warnings)


def compile_documents(documents: Iterable[Document]) -> Compilation:
    """Compile documents in order."""
    return Compilation(tuple(compile_document(document) for document in documents))
