"""From documents to what the engine runs: decode, validate, lower; the one way in for every policy kind.

Compiling is validating: all errors of all documents are collected, each with code, location and field path. A policy
that decodes but is not valid is still lowered, so that a store can keep it loaded, and one that runs into a bug is
replaced by a stand-in whose rules err; callers that must not run either look at `Compiled.errors`. The lowering of a
kind is imported when the first document of its family is compiled. This module must never read a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pyverno.engine.faults import error_verdict
from pyverno.engine.policyset import PolicySet
from pyverno.engine.result import Fault
from pyverno.engine.rule import CompiledPolicy, Exemption
from pyverno.errors import PolicyError
from pyverno.kube.json import JSON
from pyverno.kube.yaml.documents import Document
from pyverno.policy.decode import Decoded, decode
from pyverno.policy.kinds import POLICY_KINDS, Family, find_kind
from pyverno.value import dataclass, field, replace

if TYPE_CHECKING:
    from pyverno.kube.kinds import KindTable
    from pyverno.policy.decode import AnyPolicy

__all__ = ["Compilation", "Compiled", "compile_document", "compile_documents"]

_BUG = "internal"

Lowered = tuple[CompiledPolicy | Exemption, Sequence[PolicyError]]
"""A compiled policy or exception, and the errors of its compilation."""


def _lower_rules(written: Any, _bindings: tuple[Any, ...]) -> Lowered:
    from pyverno.compiler.rules.clusterpolicy import lower_cluster_policy

    return lower_cluster_policy(written)


def _lower_cleanup(written: Any, _bindings: tuple[Any, ...]) -> Lowered:
    from pyverno.compiler.rules.cleanup import lower_cleanup_policy

    return lower_cleanup_policy(written)


def _lower_exception(written: Any, _bindings: tuple[Any, ...]) -> Lowered:
    from pyverno.compiler.rules.exception import lower_exception

    return lower_exception(written)


def _lower_cel(written: Any, _bindings: tuple[Any, ...]) -> Lowered:
    from pyverno.compiler.cel.policy import lower_cel_policy

    return lower_cel_policy(written)


def _lower_cel_exception(written: Any, _bindings: tuple[Any, ...]) -> Lowered:
    from pyverno.compiler.cel.policy import lower_cel_exception

    return lower_cel_exception(written)


def _lower_admission(written: Any, bindings: tuple[Any, ...]) -> Lowered | None:
    from pyverno.compiler.cel.admissionpolicy import lower_mutating, lower_validating
    from pyverno.policy.cel.admissionpolicy import MutatingAdmissionPolicy, ValidatingAdmissionPolicy

    match written:
        case ValidatingAdmissionPolicy():
            return lower_validating(written, bindings)
        case MutatingAdmissionPolicy():
            return lower_mutating(written, bindings)
        case _:
            return None


def _lower_nothing(_written: Any, _bindings: tuple[Any, ...]) -> None:
    """Leave a document as it is: it is looked up, not run."""


_LOWERINGS: Mapping[Family, Callable[[Any, tuple[Any, ...]], Lowered | None]] = {
    Family.RULES: _lower_rules,
    Family.CLEANUP: _lower_cleanup,
    Family.EXCEPTION: _lower_exception,
    Family.CONTEXT: _lower_nothing,
    Family.CEL: _lower_cel,
    Family.CEL_EXCEPTION: _lower_cel_exception,
    Family.ADMISSION: _lower_admission,
}
_BOUND = {row.binds: row.kind for row in POLICY_KINDS if row.binds}


@dataclass(frozen=True, slots=True)
class Compiled:
    """One document after compiling: the policy as written, its compiled form, and its errors.

    `written` is None when the document does not decode. `policy` or `exception` is set for the kinds that have one,
    also when there are `errors` that validation found.
    """

    document: Document
    written: AnyPolicy | None = None
    policy: CompiledPolicy | None = None
    exception: Exemption | None = None
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
    def exceptions(self) -> tuple[Exemption, ...]:
        """The exceptions that are valid."""
        return tuple(item.exception for item in self.items if item.exception is not None and not item.errors)

    @property
    def global_entries(self) -> tuple[Any, ...]:
        """The global context entries that are valid."""
        return tuple(
            item.written
            for item in self.items
            if item.written is not None and item.written.kind == "GlobalContextEntry" and not item.errors
        )

    def policy_set(self) -> PolicySet:
        """Return the valid policies and exceptions, indexed for an engine."""
        return PolicySet(self.policies, self.exceptions, remake=partial(_compile_again, self._documents()))

    def _documents(self) -> tuple[Document, ...]:
        return tuple(item.document for item in self.items)


def _compile_again(documents: tuple[Document, ...]) -> PolicySet:
    return compile_documents(documents).policy_set()


def compile_document(
    document: Document,
    *,
    old: Document | None = None,
    kinds: KindTable | None = None,
    http_in_namespaces: bool = False,
) -> Compiled:
    """Compile one policy document by itself; never raises for a bad document.

    `old` is the policy that an update replaces, for checks of immutable fields. `kinds` are those that a cluster
    serves: rules for other kinds get a warning. `http_in_namespaces` lets expressions of namespaced policies call
    services (the host must allow that too, see `engine.host.NamespacedHttpHost`).
    """
    decoded = _decode(document)
    if decoded.policy is None:
        found = _undecoded(document, decoded)
    else:
        before = _decode(old).policy if old is not None else None
        found = _compile_contained(document, decoded, {}, old=before, kinds=kinds)
    if not http_in_namespaces:
        return found
    return replace(found, errors=tuple(error for error in found.errors if error.code != "http"))


def compile_documents(documents: Iterable[Document]) -> Compilation:
    """Compile documents in order; admission policies are joined with the bindings among them."""
    decoded = [(document, _decode(document)) for document in documents]
    bindings: dict[tuple[str, str], list[Any]] = {}
    for _, found in decoded:
        written = found.policy
        if written is not None and written.kind in _BOUND.values():
            name = written.spec.policy_name  # type: ignore[union-attr]  # every binding has one
            bindings.setdefault((written.kind, name), []).append(written)
    return Compilation(
        tuple(
            _undecoded(document, found) if found.policy is None else _compile_contained(document, found, bindings)
            for document, found in decoded
        )
    )


def _decode(document: Document) -> Decoded:
    """Decode a document; a bug is an error of this document alone."""
    try:
        return decode(document)
    except Exception as error:
        return Decoded(None, (_fault(document, error),))


def _compile_contained(
    document: Document,
    decoded: Decoded,
    bindings: dict[tuple[str, str], list[Any]],
    *,
    old: AnyPolicy | None = None,
    kinds: KindTable | None = None,
) -> Compiled:
    """Compile what decoded; a bug is an error of this document alone."""
    written = decoded.policy
    assert written is not None  # noqa: S101  # the callers have looked
    try:
        return _compile(document, written, decoded.errors, decoded.warnings, bindings, old=old, kinds=kinds)
    except Exception as error:
        fault = _fault(document, error)
        return Compiled(document, written, _stand_in(document, written, fault), errors=(*decoded.errors, fault))


def _undecoded(document: Document, decoded: Decoded) -> Compiled:
    """Return a document that does not decode; after a bug, with a stand-in policy whose rules are errors."""
    fault = next((error for error in decoded.errors if error.code == _BUG), None)
    policy = None if fault is None else _stand_in(document, None, fault)
    errors = decoded.errors if fault is not None else (*decoded.errors, *_further_errors(document, decoded.errors))
    return Compiled(document, policy=policy, errors=errors, warnings=decoded.warnings)


def _further_errors(document: Document, errors: Sequence[PolicyError]) -> Iterable[PolicyError]:
    """Return what is also wrong with a document that does not decode."""
    from pyverno.compiler.readable import read_part  # few documents do not decode

    part = read_part(document, errors)
    decoded = None if part is None else _decode(part.document)
    if part is None or decoded is None or decoded.policy is None:
        return ()
    found = _compile_contained(part.document, decoded, {}).errors
    return [error for error in found if error.code != _BUG and part.is_certain(error)]


def _stand_in(document: Document, written: AnyPolicy | None, fault: PolicyError) -> CompiledPolicy | None:
    from pyverno.compiler.standin import make_stand_in

    raw = document.value if isinstance(document.value, dict) else {}
    row = find_kind(str(raw.get("apiVersion")).partition("/")[0], str(raw.get("kind")))
    return None if row is None else make_stand_in(document, row, written, fault.message)


def _fault(document: Document, error: Exception) -> PolicyError:
    verdict = error_verdict(error, prefix="the policy cannot be compiled: ")
    where = verdict.detail.trace[-1:] if isinstance(verdict.detail, Fault) else ()
    text = "".join((verdict.message, *(f" in {place}" for place in where)))
    return PolicyError(text, location=document.location(()), code=_BUG)


def _compile(
    document: Document,
    written: AnyPolicy,
    errors: Sequence[PolicyError],
    warnings: tuple[str, ...],
    bindings: dict[tuple[str, str], list[Any]],
    *,
    old: AnyPolicy | None = None,
    kinds: KindTable | None = None,
) -> Compiled:
    from pyverno.compiler.autogen.expansion import with_copies
    from pyverno.compiler.validation.rules import validate

    row = find_kind(written.api_version.partition("/")[0], written.kind)
    lower = None if row is None else _LOWERINGS.get(row.family)
    if row is None or lower is None:
        # what decodes but has no lowering is refused: it must never be passed over in silence
        return Compiled(document, errors=(_unsupported(document.value, document),), warnings=warnings)
    written = with_copies(written, row.family)
    if kinds is None:
        found = validate(written, old=old)
    else:
        found = validate(written, old=old, kinds=kinds, kinds_are_complete=True)
    problems = [*errors, *found.errors]
    policy: CompiledPolicy | None = None
    exception: Exemption | None = None
    bound = tuple(bindings.get((_BOUND.get(written.kind, ""), written.name), ()))
    lowered = lower(written, bound)
    if lowered is not None:
        result, more = lowered
        if more:
            from pyverno.compiler.sameerrors import join_errors  # only for what is reported

            problems = join_errors(problems, more)
        if isinstance(result, CompiledPolicy):
            policy = result
        else:
            exception = result
    return Compiled(document, written, policy, exception, tuple(problems), (*warnings, *found.warnings))


def _unsupported(value: JSON, document: Document) -> PolicyError:
    text = f"kind `{value['kind']}` ({value['apiVersion']}) is not supported yet"
    return PolicyError(text, location=document.location(("kind",)), path="kind", code="unsupported-kind")
