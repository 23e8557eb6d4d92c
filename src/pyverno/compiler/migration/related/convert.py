"""Documents beside policies of rules: cleanup policies, and exceptions of the policies that are converted with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pyverno.compiler.migration.outcome import Refused, UnconvertibleError
from pyverno.compiler.migration.policy import PolicyConversion, RuleOutcome, convert_policy
from pyverno.compiler.migration.related.cleanups import convert_cleanup
from pyverno.compiler.migration.related.exceptions import convert_exception
from pyverno.compiler.migration.related.successors import Successors, successors_of
from pyverno.compiler.migration.schema import SchemaBook
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import Document
from pyverno.policy.cleanup import CleanupPolicy
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.decode import decode
from pyverno.policy.exception import PolicyException
from pyverno.value import dataclass

if TYPE_CHECKING:
    from pyverno.policy.decode import AnyPolicy

__all__ = ["RelatedConversion", "convert_related"]


@dataclass(frozen=True, slots=True)
class RelatedConversion:
    """The conversion of a document, and the policies without which neither side of it can be judged."""

    conversion: PolicyConversion
    old: tuple[JSONObject, ...] = ()
    new: tuple[JSONObject, ...] = ()


def convert_related(
    document: Document, written: AnyPolicy | None, book: SchemaBook, others: Iterable[Document] = ()
) -> RelatedConversion:
    """Convert a cleanup policy, or an exception of policies among `others`; what is neither is refused."""
    old: list[JSONObject] = []
    new: list[JSONObject] = []
    try:
        if isinstance(written, CleanupPolicy):
            converted = convert_cleanup(document, book)
        elif isinstance(written, PolicyException):
            successors = Successors()
            for other, policy in _excepted_policies(written, others):
                conversion = convert_policy(policy, book)
                successors = successors.joined(successors_of(policy, conversion, book))
                old.append(other.value)
                new += [*conversion.documents, *([conversion.remaining] if conversion.remaining is not None else [])]
            converted = convert_exception(document, successors, book)
        else:
            kind = str(document.value.get("kind", ""))
            raise UnconvertibleError("kind", "kind", f"documents of kind {kind} are not converted", "keep it as it is")
    except UnconvertibleError as error:
        return RelatedConversion(_refused(document, error.refused))
    names = tuple(str(each["metadata"]["name"]) for each in converted.documents)
    outcome = RuleOutcome("", names, None, converted.notes)
    return RelatedConversion(
        PolicyConversion(document.value, converted.documents, None, (outcome,)), tuple(old), tuple(new)
    )


def _refused(document: Document, refused: Refused) -> PolicyConversion:
    return PolicyConversion(document.value, (), document.value, (RuleOutcome("", (), refused),))


def _excepted_policies(
    exception: PolicyException, others: Iterable[Document]
) -> Sequence[tuple[Document, ClusterPolicy]]:
    names = {reference.policy_name for reference in exception.spec.exceptions}
    decoded = ((each, decode(each).policy) for each in others)
    return [(each, policy) for each, policy in decoded if isinstance(policy, ClusterPolicy) and policy.key in names]
