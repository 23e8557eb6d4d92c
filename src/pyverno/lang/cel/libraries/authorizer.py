"""The authorizer library: access checks of users and service accounts.

Builder values collect the attributes of a check; `check` sends it to the host.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, Final

from pyverno.errors import EvaluationError, HostError
from pyverno.lang.cel.declarations import Library, function
from pyverno.lang.cel.faults import OperandError
from pyverno.lang.cel.host import AuthorizationCheck, Decision
from pyverno.lang.cel.libraries.costs import fixed, value_size
from pyverno.lang.cel.runtime.evaluation import Evaluation
from pyverno.lang.cel.types import Type, opaque
from pyverno.lang.cel.values import Value
from pyverno.lang.cel.work import instant, reading
from pyverno.lazyregex import regex
from pyverno.value import dataclass, field, replace

__all__ = ["AUTHORIZER", "AUTHORIZER_NAMES", "AUTHORIZER_SELECTORS", "Authorizer", "ResourceCheck"]

CHECK_COST: Final = 350_000
_LABEL: Final = regex("[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_PREFIX: Final = "kubernetes.authorization."


@dataclass(frozen=True, slots=True)
class Authorizer:
    """The authorizer of the request's user, or of a service account (namespace, name)."""

    cel_type: ClassVar[str] = _PREFIX + "Authorizer"
    service_account: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class PathCheck:
    """A question about a path that is no resource."""

    cel_type: ClassVar[str] = _PREFIX + "PathCheck"
    authorizer: Authorizer
    path: str


@dataclass(frozen=True, slots=True)
class GroupCheck:
    """A question about an API group, to be narrowed to a resource."""

    cel_type: ClassVar[str] = _PREFIX + "GroupCheck"
    authorizer: Authorizer
    group: str


@dataclass(frozen=True, slots=True)
class ResourceCheck:
    """A question about a resource; `attributes` are group, resource, subresource, namespace, name and selectors."""

    cel_type: ClassVar[str] = _PREFIX + "ResourceCheck"
    authorizer: Authorizer
    attributes: dict[str, str] = field(default_factory=dict)

    def with_attribute(self, name: str, value: str) -> ResourceCheck:
        """Return the question with one attribute more."""
        return replace(self, attributes={**self.attributes, name: value})


@dataclass(frozen=True, slots=True)
class Answer:
    """The authorizer's decision."""

    cel_type: ClassVar[str] = _PREFIX + "Decision"
    decision: Decision


@function("path", f"{Authorizer.cel_type}.(string) -> {PathCheck.cel_type}", work=reading(1))
def path(authorizer: Authorizer, text: str) -> PathCheck:
    """A question about a path, such as /healthz; an error when it is empty."""
    if not text.strip():
        raise EvaluationError("path must not be empty")
    return PathCheck(authorizer, text)


@function("group", f"{Authorizer.cel_type}.(string) -> {GroupCheck.cel_type}", work=instant)
def group(authorizer: Authorizer, name: str) -> GroupCheck:
    """A question about an API group; empty is the core group."""
    return GroupCheck(authorizer, name)


@function("serviceAccount", f"{Authorizer.cel_type}.(string, string) -> {Authorizer.cel_type}", work=reading(1))
def service_account(_: Authorizer, namespace: str, name: str) -> Authorizer:
    """The authorizer of a service account, by namespace and name."""
    if not name or len(name) > 253 or not all(map(_LABEL.fullmatch, name.split("."))):
        raise EvaluationError("Invalid service account name")
    if not _LABEL.fullmatch(namespace):
        raise EvaluationError("Invalid service account namespace")
    return Authorizer((namespace, name))


@function("resource", f"{GroupCheck.cel_type}.(string) -> {ResourceCheck.cel_type}", work=instant)
def resource(check: GroupCheck, name: str) -> ResourceCheck:
    """A question about a resource of the group; an error when the name is empty."""
    if not name.strip():
        raise EvaluationError("resource must not be empty")
    return ResourceCheck(check.authorizer, {"group": check.group, "resource": name})


@function("subresource", f"{ResourceCheck.cel_type}.(string) -> {ResourceCheck.cel_type}", work=instant)
def subresource(check: ResourceCheck, name: str) -> ResourceCheck:
    """The question narrowed to a subresource."""
    return check.with_attribute("subresource", name)


@function("namespace", f"{ResourceCheck.cel_type}.(string) -> {ResourceCheck.cel_type}", work=instant)
def namespace(check: ResourceCheck, name: str) -> ResourceCheck:
    """The question narrowed to a namespace."""
    return check.with_attribute("namespace", name)


@function("name", f"{ResourceCheck.cel_type}.(string) -> {ResourceCheck.cel_type}", work=instant)
def name_(check: ResourceCheck, name: str) -> ResourceCheck:
    """The question narrowed to one object."""
    return check.with_attribute("name", name)


@function(
    "check",
    f"{PathCheck.cel_type}.(string) -> {Answer.cel_type}",
    f"{ResourceCheck.cel_type}.(string) -> {Answer.cel_type}",
    cost=fixed(CHECK_COST),
    in_context=True,
    work=instant,
)
def check_(evaluation: Evaluation, question: Value, verb: str) -> Answer:
    """The decision on a verb; costs 350,000."""
    attributes = {"path": question.path} if isinstance(question, PathCheck) else question.attributes
    evaluation.check_room(CHECK_COST)
    check = AuthorizationCheck(attributes, verb, question.authorizer.service_account)
    try:
        return Answer(evaluation.host.authorize(check))
    except HostError as error:
        return Answer(Decision(allowed=False, error=error.message))
    except EvaluationError as error:
        raise OperandError("the authorizer does not support this check", error.message) from None


@function("allowed", f"{Answer.cel_type}.() -> bool", work=instant)
def allowed(answer: Answer) -> bool:
    """Whether it is allowed."""
    return answer.decision.allowed


@function("reason", f"{Answer.cel_type}.() -> string", work=instant)
def reason(answer: Answer) -> str:
    """Why."""
    return answer.decision.reason


@function("errored", f"{Answer.cel_type}.() -> bool", work=instant)
def errored(answer: Answer) -> bool:
    """Whether the authorizer failed."""
    return bool(answer.decision.error)


@function("error", f"{Answer.cel_type}.() -> string", work=instant)
def error_(answer: Answer) -> str:
    """The authorizer's error, or an empty text."""
    return answer.decision.error


def _selector_cost(args: tuple[Value, ...], _result: Value) -> int:
    size = value_size(args[1])
    return 10 + math.ceil(size * 0.1) + math.ceil(math.ceil(size * 0.5) * 50)


@function(
    "fieldSelector", f"{ResourceCheck.cel_type}.(string) -> {ResourceCheck.cel_type}", cost=_selector_cost, work=instant
)
def field_selector(check: ResourceCheck, selector: str) -> ResourceCheck:
    """The question narrowed by a field selector."""
    return check.with_attribute("fieldSelector", selector)


@function(
    "labelSelector", f"{ResourceCheck.cel_type}.(string) -> {ResourceCheck.cel_type}", cost=_selector_cost, work=instant
)
def label_selector(check: ResourceCheck, selector: str) -> ResourceCheck:
    """The question narrowed by a label selector."""
    return check.with_attribute("labelSelector", selector)


AUTHORIZER: Final = Library(
    "kubernetes.authz",
    (
        path, group, service_account, resource, subresource, namespace, name_, check_, allowed, reason, errored,
        error_,
    ),
    types=tuple(opaque(kind.cel_type) for kind in (Authorizer, PathCheck, GroupCheck, ResourceCheck, Answer)),
    introduced="1.27",
    doc="Authorization checks.",
)  # fmt: skip
AUTHORIZER_NAMES: Final[Mapping[str, Type]] = {
    "authorizer": opaque(Authorizer.cel_type),
    "authorizer.requestResource": opaque(ResourceCheck.cel_type),
}
"""The variables of policies that may ask the authorizer."""

AUTHORIZER_SELECTORS: Final = Library(
    "kubernetes.authzSelectors",
    (field_selector, label_selector),
    introduced="1.31",
    doc="Field and label selectors of authorization checks.",
)
