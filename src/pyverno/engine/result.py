"""Statuses, verdicts of actions, results of rules.

An action returns a `Verdict`; the engine adds the rule, its failure action and the exceptions and makes a `RuleResult`.
This module must never decide whether a request is allowed (see `decision`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from pyverno.kube.json import JSON
from pyverno.value import dataclass

if TYPE_CHECKING:
    from pyverno.engine.effects import Effect
    from pyverno.engine.rule import RuleInfo
    from pyverno.images.verification.ledger import Ledger

__all__ = [
    "MAX_MESSAGE",
    "AdmissionDetail",
    "Annotated",
    "CelDetail",
    "Denial",
    "FailureAction",
    "Fault",
    "PatternDetail",
    "PodSecurityDetail",
    "ResourceRef",
    "RuleResult",
    "RuleType",
    "Status",
    "Verdict",
    "failed_paths",
    "failed_results",
]

_CEL_GROUP = "policies.kyverno.io/"

MAX_MESSAGE: Final = 16 * 1024
"""Longest text of a result: what a rule quotes of an object could be as long as the object, for each rule."""

_CUT: Final = MAX_MESSAGE - 3

NO_PROPERTIES: Mapping[str, str] = {}


class Status(StrEnum):
    """Outcome of one rule; `warn` is a fail of a policy that is not scored."""

    PASS = "pass"  # noqa: S105 - a status, not a password
    FAIL = "fail"
    WARN = "warn"
    ERROR = "error"
    SKIP = "skip"


class RuleType(StrEnum):
    """The type of a rule, in the words of Kyverno's reports and metrics."""

    VALIDATION = "Validation"
    MUTATION = "Mutation"
    GENERATION = "Generation"
    IMAGE_VERIFY = "ImageVerify"
    DELETION = "Deletion"


class FailureAction(StrEnum):
    """The effect of a failing rule on an admission request."""

    AUDIT = "Audit"
    ENFORCE = "Enforce"


@dataclass(frozen=True, slots=True)
class ResourceRef:
    """Names one object: API version, kind, namespace ("" = cluster-scoped) and name."""

    api_version: str
    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, raw: JSON) -> ResourceRef:
        """Name the object that a JSON value holds; wrong types read as empty.

        >>> ResourceRef.of({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "b"}})
        ResourceRef(api_version='v1', kind='Pod', namespace='b', name='a')
        """
        raw = raw if isinstance(raw, dict) else {}
        metadata = raw.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        found = raw.get("apiVersion"), raw.get("kind"), metadata.get("namespace"), metadata.get("name")
        return cls(*[each if isinstance(each, str) else "" for each in found])

    def __str__(self) -> str:
        return "/".join((self.namespace, self.kind, self.name)) if self.namespace else f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class PodSecurityDetail:
    """Detail of a podSecurity rule: level, version and the controls that were violated (id, name, images)."""

    level: str
    version: str
    checks: tuple[Mapping[str, JSON], ...] = ()


class PatternDetail(NamedTuple):
    """Detail of a failed pattern: the path (`/spec/containers/0/image/`) at which the resource does not fit."""

    path: str


class CelDetail(NamedTuple):
    """Detail of a CEL validation that failed: its position among the validations (-1: none of them was to blame).

    For a ValidatingAdmissionPolicy also the name of the binding and its validation actions, which then decide alone.
    For an ImageValidatingPolicy that was evaluated, `checks` are the ledgers of all its verifications, with the image
    and the attestor of each.
    """

    position: int = -1
    binding: str = ""
    actions: tuple[str, ...] = ()
    checks: tuple[tuple[str, Ledger], ...] = ()

    @property
    def only_audits(self) -> bool:
        """Return whether a binding decides, and does not deny."""
        return bool(self.actions) and "Deny" not in self.actions


class Denial(NamedTuple):
    """A problem of one validation: its position, its text, and whether it is an error rather than a denial."""

    position: int
    message: str
    is_error: bool = False


class AdmissionDetail(NamedTuple):
    """The outcome of a ValidatingAdmissionPolicy for one binding and one parameter, as the API server counts it.

    `denials` are left to the binding's actions; `errors`, those of its audit annotations and of a configuration that
    cannot work, deny whatever the actions are. `annotations` are keys without the policy's name, and values.
    """

    binding: str
    denials: tuple[Denial, ...] = ()
    errors: tuple[str, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()


class Annotated(NamedTuple):
    """Detail of a policy in CEL that passed: its audit annotations, which reports show as properties."""

    properties: Mapping[str, str]


class Fault(NamedTuple):
    """Detail of a rule that ended with an unexpected exception (see `faults`): names and lines, never values.

    `code` is stable; `error` is the type of the exception; `trace` are functions and lines, outermost first.
    """

    code: str
    error: str
    trace: tuple[str, ...] = ()


Detail = PodSecurityDetail | PatternDetail | CelDetail | AdmissionDetail | Annotated | Fault | None


class Verdict(NamedTuple):
    """The result of an action: status and text, the changed resource if it changed one, effects that it wants.

    `exceptions` holds the keys of the PolicyExceptions that led to this verdict.
    """

    status: Status
    message: str = ""
    detail: Detail = None
    patched: JSON = None
    effects: tuple[Effect, ...] = ()
    target: ResourceRef | None = None
    exceptions: tuple[str, ...] = ()


class RuleResult(NamedTuple):
    """The result of one rule for one request: the rule, its failure action, and the fields of the verdict.

    `target` names the object when it is not the request's own one (an existing object that the rule patches).
    `exceptions` holds the `namespace/name` of the PolicyExceptions that made the rule skip.
    """

    rule: RuleInfo
    action: FailureAction
    status: Status
    message: str = ""
    detail: Detail = None
    patched: JSON = None
    effects: tuple[Effect, ...] = ()
    target: ResourceRef | None = None
    exceptions: tuple[str, ...] = ()
    properties: Mapping[str, str] = NO_PROPERTIES

    @property
    def rule_name(self) -> str:
        """The name of the result: that of the rule, or of what a policy in CEL did instead of judging.

        Kyverno: `exception` where exceptions decided (except for deletions), `evaluation` where a policy could not be
        evaluated at all.
        """
        if self.rule.policy.api_version.startswith(_CEL_GROUP):
            if self.exceptions and self.rule.type is not RuleType.DELETION:
                return "exception"
            is_whole = self.detail is None or type(self.detail) is Fault
            is_images = self.rule.type is RuleType.IMAGE_VERIFY and self.rule.name == self.rule.policy.name
            if self.status is Status.ERROR and is_whole and (is_images or not self.rule.name):
                return "evaluation"
        return self.rule.name

    @classmethod
    def of(
        cls,
        rule: RuleInfo,
        action: FailureAction,
        verdict: Verdict,
        properties: Mapping[str, str] = NO_PROPERTIES,
    ) -> RuleResult:
        """Make the result of a verdict; its fields follow rule and action in the same order."""
        if len(verdict[1]) > MAX_MESSAGE:
            verdict = verdict._replace(message=f"{verdict.message[:_CUT]}...")
        return tuple.__new__(cls, (rule, action, *verdict, properties))


class FailedResult(Protocol):
    """Makes the result of a FAIL from its text and detail."""

    def __call__(self, message: str, detail: Detail = None, /) -> RuleResult:
        """Make one result."""
        ...


def failed_results(rule: RuleInfo, action: FailureAction) -> FailedResult:
    """Return what makes the results of a rule that fails; the fields of a tuple cost a third of keywords."""
    new, failed = tuple.__new__, Status.FAIL

    def result(message: str, detail: Detail = None, /) -> RuleResult:
        if len(message) > MAX_MESSAGE:
            message = f"{message[:_CUT]}..."
        return new(RuleResult, (rule, action, failed, message, detail, None, (), None, (), NO_PROPERTIES))

    return result


def failed_paths(rule: RuleInfo, action: FailureAction, text: str) -> Callable[[str], tuple[RuleResult]]:
    """Return what makes the result of a rule whose pattern fails at a path, which follows `text` in its message."""
    new, failed = tuple.__new__, Status.FAIL

    def result(path: str) -> tuple[RuleResult]:
        detail, message = new(PatternDetail, (path,)), text + path
        if len(message) > MAX_MESSAGE:
            message = f"{message[:_CUT]}..."
        return (new(RuleResult, (rule, action, failed, message, detail, None, (), None, (), NO_PROPERTIES)),)

    return result
