"""ValidatingAdmissionPolicy and MutatingAdmissionPolicy, judged in process by the one engine.

Policies are compiled with their bindings when one of them changes; a policy that nothing binds says nothing. This
module must never word a verdict of its own where Kubernetes has words for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pyverno.engine.result import CelDetail, RuleResult, Status
from pyverno.kube.documents import Document
from pyverno.kube.json import JSON, JSONObject, encode, equal
from pyverno.kube.kinds import KindTable
from pyverno.kube.status import Cause, StatusError, forbidden
from pyverno.sandbox.admission.questions import question, shown_name
from pyverno.sandbox.admission.webhooks import Redefault, Rounds, is_exempt
from pyverno.sandbox.attributes import Attributes, Notes
from pyverno.sandbox.authorization.access import Authorizer
from pyverno.sandbox.resources import ResourceTable
from pyverno.sandbox.view import ClusterView
from pyverno.value import dataclass

if TYPE_CHECKING:
    # the engine and the language are imported when the first policy is bound; most servers have none
    from pyverno.engine.phases import Phase
    from pyverno.engine.policyset import PolicySet

__all__ = ["AdmissionPolicies"]

_GROUP: Final = "admissionregistration.k8s.io"
_BAD: Final = (Status.FAIL, Status.ERROR)
_CODES: Final[Mapping[str, int]] = {
    "Unauthorized": 401,
    "Forbidden": 403,
    "RequestEntityTooLarge": 413,
    "Invalid": 422,
}
"""What a validation may give as its reason → the code of the answer."""

_FAILURE_ANNOTATION: Final = "validation.policy.admission.k8s.io/validation_failure"


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What one validation of one binding found wrong."""

    policy: str
    binding: str
    message: str
    position: int
    actions: tuple[str, ...]

    @property
    def where(self) -> str:
        """The policy and the binding as Kubernetes names them."""
        bound = f" with binding '{self.binding}'" if self.binding else ""
        return f"ValidatingAdmissionPolicy '{self.policy}'{bound}"


class _Policies:
    """The compiled policies of one kind."""

    def __init__(self, kind: str, cluster: ClusterView) -> None:
        self._resources = (f"{kind}policies.{_GROUP}", f"{kind}policybindings.{_GROUP}")
        self._cluster = cluster
        self._made_at: tuple[int, ...] = ()
        self.set: PolicySet | None = None
        self.bodies: dict[str, JSONObject] = {}

    def refresh(self) -> bool:
        """Compile what has changed; tell whether there is any policy that is bound."""
        revisions = tuple(map(self._cluster.changed_at, self._resources))
        if revisions != self._made_at:
            self._compile()
            self._made_at = revisions
        return bool(self.bodies)

    def _compile(self) -> None:
        policies, bindings = ([stored.body for stored in self._cluster.all(resource)] for resource in self._resources)
        bound = {(body.get("spec") or {}).get("policyName") for body in bindings}
        wanted = [body for body in policies if body["metadata"]["name"] in bound]
        self.bodies = {body["metadata"]["name"]: body for body in wanted}
        if not wanted:
            return
        from pyverno.compiler.compile import compile_documents
        from pyverno.engine.policyset import PolicySet

        found = compile_documents(Document(body) for body in (*wanted, *bindings))
        # what does not compile is kept: it errs, and failurePolicy says what that means
        self.set = PolicySet(tuple(item.policy for item in found.items if item.policy is not None))


class AdmissionPolicies:
    """Both kinds of policies."""

    def __init__(self, cluster: ClusterView, authorizer: Authorizer) -> None:
        """Take where policies and parameters are, and who answers `authorizer`."""
        self._cluster = cluster
        self._authorizer = authorizer
        self._validating = _Policies("validatingadmission", cluster)
        self._mutating = _Policies("mutatingadmission", cluster)
        self._kinds: tuple[ResourceTable, KindTable] | None = None

    def mutate(self, attributes: Attributes, rounds: Rounds, redefault: Redefault) -> Attributes:
        """Return the request with the object as the mutating policies want it; raises 403."""
        if attributes.object is None or is_exempt(attributes) or not self._mutating.refresh():
            return attributes
        from pyverno.engine.phases import MUTATING

        results, changed = self._judged(attributes, self._mutating, MUTATING)
        failed = [result for result in results if result.status in _BAD and _counts(result)]
        if failed:
            raise _refused(attributes, [_mutation_text(result) for result in failed])
        if not isinstance(changed, dict) or equal(changed, attributes.object):
            return attributes
        if not rounds.number:
            rounds.changed()
            rounds.is_due = True
        return attributes.with_object(redefault(changed))

    def validate(self, attributes: Attributes, notes: Notes) -> None:
        """Judge a request by the validating policies; raises the StatusError of the first denial."""
        if is_exempt(attributes) or not self._validating.refresh():
            return
        from pyverno.engine.phases import VALIDATING

        results, _ = self._judged(attributes, self._validating, VALIDATING)
        denied: _Verdict | None = None
        recorded: list[JSON] = []
        for verdict in _verdicts(results):
            if "Deny" in verdict.actions:
                denied = denied or verdict
            if "Audit" in verdict.actions:
                recorded.append(_audited(verdict))
            if "Warn" in verdict.actions:
                notes.warn(f"Validation failed for {verdict.where}: {verdict.message}")
        if recorded:
            notes.annotations[_FAILURE_ANNOTATION] = encode(recorded)
        if denied is not None:
            raise self._denial(attributes, denied)

    def _judged(
        self, attributes: Attributes, policies: _Policies, phases: Sequence[Phase]
    ) -> tuple[tuple[RuleResult, ...], JSON]:
        from pyverno.engine.engine import Engine
        from pyverno.sandbox.admission.host import StoreHost

        assert policies.set is not None  # noqa: S101  # `refresh` said that there are policies
        host = StoreHost(self._cluster, self._authorizer, attributes.user, self._served_kinds())
        review = Engine(policies.set, host).review(question(attributes, self._cluster), phases)
        return review.results, review.resource

    def _served_kinds(self) -> KindTable:
        from pyverno.sandbox.admission.host import kinds_of

        table = self._cluster.table
        if self._kinds is None or self._kinds[0] is not table:
            self._kinds = (table, kinds_of(table))
        return self._kinds[1]

    def _denial(self, attributes: Attributes, verdict: _Verdict) -> StatusError:
        message = f"{verdict.where} denied request: {verdict.message}"
        reason = self._reason(verdict)
        error = forbidden(attributes.type.group, attributes.type.plural, shown_name(attributes), message)
        return StatusError(
            _CODES.get(reason, 422),
            reason,
            error.message,
            group=error.group,
            kind=error.kind,
            name=error.name,
            causes=[Cause("", message)],
        )

    def _reason(self, verdict: _Verdict) -> str:
        spec: JSONObject = self._validating.bodies.get(verdict.policy, {}).get("spec") or {}
        validations = spec.get("validations") or ()
        if 0 <= verdict.position < len(validations):
            return str(validations[verdict.position].get("reason") or "Invalid")
        return "Invalid"


def _verdicts(results: Sequence[RuleResult]) -> Iterator[_Verdict]:
    for result in results:
        if result.status not in _BAD:
            continue
        detail = result.detail
        if isinstance(detail, CelDetail):
            yield _Verdict(result.rule.policy.name, detail.binding, result.message, detail.position, detail.actions)
        elif _counts(result):
            yield _Verdict(result.rule.policy.name, "", result.message, -1, ("Deny",))


def _counts(result: RuleResult) -> bool:
    return result.rule.policy.failure_policy != "Ignore"


def _audited(verdict: _Verdict) -> JSON:
    return {
        "message": verdict.message,
        "policy": verdict.policy,
        "binding": verdict.binding,
        "expressionIndex": max(verdict.position, 0),
        "validationActions": list(verdict.actions),
    }


def _mutation_text(result: RuleResult) -> str:
    name, detail = result.rule.policy.name, result.detail
    binding = detail.binding if isinstance(detail, CelDetail) else ""
    who = f"'{name}' with binding '{binding}'" if binding else f'"{name}"'
    return f"policy {who} denied request: {result.message}"


def _refused(attributes: Attributes, texts: Sequence[str]) -> StatusError:
    type = attributes.type
    return StatusError(
        403,
        "Invalid",
        texts[0],
        group=type.group,
        kind=type.plural,
        name=shown_name(attributes),
        causes=[Cause("", text) for text in texts],
    )
