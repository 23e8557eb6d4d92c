"""ValidatingAdmissionPolicy and MutatingAdmissionPolicy, evaluated in process by pyverno's engine.

A policy sees objects in the version that its constraints name; the result of mutating policies is converted back.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kubesandbox.admission.policies.bound import Bound, BoundPolicies, BoundPolicy
from kubesandbox.admission.policies.requests import Versions, display_name, go_struct
from kubesandbox.admission.webhooks.calls import Redefault, is_exempt
from kubesandbox.admission.webhooks.rounds import Rounds
from kubesandbox.attributes import Attributes, Notes
from kubesandbox.authorization.access import Authorizer
from kubesandbox.types.resources import ResourceTable, ResourceType
from kubesandbox.view import ClusterView
from pyverno.engine.result import AdmissionDetail, Denial, RuleResult, Status
from pyverno.kube.json import JSON, equal
from pyverno.kube.kinds import KindTable
from pyverno.kube.status import Cause, StatusError, forbidden, internal_error
from pyverno.value import dataclass, field

if TYPE_CHECKING:
    # the engine and the language are imported when the first policy is bound; most servers have none
    from pyverno.engine.phases import Phase

__all__ = ["AdmissionPolicies"]

_BAD: Final = (Status.FAIL, Status.ERROR)
_CODES: Final[Mapping[str, int]] = {
    "Unauthorized": 401,
    "Forbidden": 403,
    "RequestEntityTooLarge": 413,
    "Invalid": 422,
}
"""The reasons of validations → the codes of responses."""

_FAILURE_ANNOTATION: Final = "validation.policy.admission.k8s.io/validation_failure"
_LISTS_FAILURES: Final = (1, 37)
"""The first version in which the annotation lists all failures of a request; earlier ones list the first."""

_MAX_FAILURES: Final = 50
_MAX_ANNOTATION: Final = 10 * 1024


class _Problem(NamedTuple):
    """A denial or an error of a policy or of one of its bindings."""

    policy: str
    binding: str
    message: str

    @property
    def is_configuration(self) -> bool:
        """Return whether the policy could not be evaluated at all."""
        return self.message.startswith("failed to configure ")


@dataclass(slots=True)
class _Judgement:
    """The results of the validating policies for one request, in order."""

    denied: list[tuple[str, str]] = field(default_factory=list)
    recorded: list[str] = field(default_factory=list)

    def count(self, policy: BoundPolicy, binding: Bound, detail: AdmissionDetail, notes: Notes) -> None:
        """Apply the binding's actions to denials; errors of the policy itself always deny."""
        for denial in detail.denials:
            text = _denial_text(_Problem(policy.name, binding.name, denial.message))
            for action in binding.actions:
                if action == "Deny":
                    self.denied.append((text, "" if denial.is_error else _reason(policy, denial.position)))
                elif action == "Audit":
                    self.recorded.append(_audited(policy, binding, denial))
                elif action == "Warn":
                    where = f"ValidatingAdmissionPolicy '{policy.name}' with binding '{binding.name}'"
                    notes.warn(f"Validation failed for {where}: {denial.message}")
        for text in detail.errors:
            self.denied.append((_denial_text(_Problem(policy.name, binding.name, text)), ""))


class AdmissionPolicies:
    """Both kinds of policies."""

    def __init__(self, cluster: ClusterView, authorizer: Authorizer, kube_version: tuple[int, int] = (1, 35)) -> None:
        """Take the cluster with policies and parameters, and the source of `authorizer` answers."""
        self._cluster = cluster
        self._authorizer = authorizer
        self._kube_version = kube_version
        self._validating = BoundPolicies("validatingadmission", cluster)
        self._mutating = BoundPolicies("mutatingadmission", cluster)
        self._kinds: tuple[ResourceTable, KindTable] | None = None

    # ── mutating ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def mutate(self, attributes: Attributes, rounds: Rounds, redefault: Redefault) -> Attributes:
        """Return the request with the changes of mutating policies; raises 403."""
        if attributes.object is None or is_exempt(attributes):
            return attributes
        policies = self._mutating.about(attributes)
        if not policies:
            return attributes
        rounds.begin(rounds.policies, attributes.object)
        seen = _VersionedObject(attributes, self._cluster, redefault)
        problems: list[_Problem] = []
        for policy in policies:
            found: list[_Problem] = []
            async for binding, type in self._in_force(policy, attributes, found):
                found += await self._invoke(policy, binding, type, seen, rounds)
            problems += () if policy.ignores_errors else found
        if problems:
            raise _refused(attributes, problems)
        if seen.has_changes:
            # Kubernetes: any mutation causes a second round, which includes the policies that ran last
            rounds.changed(rounds.policies)
        attributes = await seen.outcome()
        rounds.policies.left = attributes.object
        return attributes

    async def _invoke(
        self, policy: BoundPolicy, binding: Bound, type: ResourceType, seen: _VersionedObject, rounds: Rounds
    ) -> list[_Problem]:
        """Run one binding of a policy on the current object; return the reasons for a refusal."""
        from pyverno.engine.phases import MUTATING

        key = (policy.name, binding.name)
        if rounds.is_skipped(rounds.policies, key):
            return []
        before = await seen.in_version(type)
        results, changed = await self._judge(seen.versions, binding, type, MUTATING, object=before)
        failed = [result.message for result in results if result.status in _BAD]
        if failed:
            return [_Problem(policy.name, binding.name, text) for text in failed]
        if not any(result.status is Status.PASS for result in results):
            return []
        lost = _lost_conversion(seen.attributes, type)
        if lost:
            count = len((policy.body.get("spec") or {}).get("mutations") or ())
            return [_Problem(policy.name, binding.name, lost)] * count
        await seen.put(type, changed)
        if not equal(before, await seen.in_version(type)):
            rounds.changed(rounds.policies)
        if policy.reinvokes:
            rounds.policies.called.add(key)
        return []

    # ── validating ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def validate(self, attributes: Attributes, notes: Notes) -> None:
        """Evaluate the validating policies; raises the StatusError of the first denial."""
        if is_exempt(attributes):
            return
        policies = self._validating.about(attributes)
        if not policies:
            return
        versions, judgement = Versions(attributes, self._cluster), _Judgement()
        for policy in policies:
            problems: list[_Problem] = []
            collected: dict[str, dict[str, None]] = {}
            async for binding, type in self._in_force(policy, attributes, problems):
                for detail in await self._details(policy, binding, type, versions):
                    judgement.count(policy, binding, detail, notes)
                    for key, value in detail.annotations:
                        collected.setdefault(key, {})[_cut(value)] = None
            judgement.denied += [] if policy.ignores_errors else [(_denial_text(each), "") for each in problems]
            for key, values in collected.items():
                # Kubernetes: different values of bindings and parameters are joined
                notes.annotate(f"{policy.name}/{key}", ", ".join(values))
        if judgement.recorded:
            is_listed = self._kube_version >= _LISTS_FAILURES
            notes.annotate(
                _FAILURE_ANNOTATION, f"[{','.join(judgement.recorded[: _MAX_FAILURES if is_listed else 1])}]"
            )
        if judgement.denied:
            raise _denial(attributes, *judgement.denied[0])

    async def _details(
        self, policy: BoundPolicy, binding: Bound, type: ResourceType, versions: Versions
    ) -> list[AdmissionDetail]:
        """Return the outcome of one binding of a policy; one that cannot run is an error."""
        from pyverno.engine.phases import VALIDATING

        found: list[AdmissionDetail] = []
        results, _ = await self._judge(versions, binding, type, VALIDATING)
        for result in results:
            if isinstance(result.detail, AdmissionDetail):
                found.append(result.detail)
            elif result.status in _BAD and not policy.ignores_errors:
                found.append(AdmissionDetail(binding.name, (Denial(0, result.message, is_error=True),)))
        return found

    # ── both ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _in_force(
        self, policy: BoundPolicy, attributes: Attributes, problems: list[_Problem]
    ) -> AsyncIterator[tuple[Bound, ResourceType]]:
        """Yield the bindings of a policy that match a request, with the type through which the policy sees it."""
        name, configured = "", "policy"
        try:
            type = policy.matching_type(attributes, self._cluster)
            unserved = policy.unserved_params(self._cluster) if type is not None else None
            if unserved is not None:
                version = f"{unserved.group}/{unserved.version}, Kind={unserved.kind}"
                text = f"failed to find resource referenced by paramKind: '{version}'"
                problems.append(_Problem(policy.name, "", f"failed to configure policy: {text}"))
                return
            for binding in policy.bindings if type is not None else ():
                name, configured = binding.name, "binding"
                if type is not None and binding.is_about(attributes, self._cluster):
                    yield binding, type
        except StatusError as error:
            problems.append(_Problem(policy.name, name, f"failed to configure {configured}: {error.message}"))

    async def _judge(
        self,
        versions: Versions,
        binding: Bound,
        type: ResourceType,
        phases: Sequence[Phase],
        *,
        object: JSON = None,
    ) -> tuple[tuple[RuleResult, ...], JSON]:
        from kubesandbox.admission.policies.host import StoreHost
        from pyverno.engine.engine import Engine

        host = StoreHost(self._cluster, self._authorizer, versions.attributes.user, self._served_kinds())
        if binding.params is not None:
            await host.prepare(binding.params)
        asked = await versions.question(type)
        if object is not None and object is not asked.object:
            asked = asked.with_object(object)
        review = Engine(binding.policies, host).review(asked, phases)
        return review.results, review.resource

    def _served_kinds(self) -> KindTable:
        from kubesandbox.admission.policies.host import kinds_of

        table = self._cluster.table
        if self._kinds is None or self._kinds[0] is not table:
            self._kinds = (table, kinds_of(table))
        return self._kinds[1]


class _VersionedObject:
    """The object of a request in the versions in which mutating policies see it.

    Kubernetes converts once for each version and converts back what the last policy saw: policies that see different
    versions do not see each other's changes, and those of all but the last version are lost.
    """

    def __init__(self, attributes: Attributes, cluster: ClusterView, redefault: Redefault) -> None:
        self.attributes = attributes
        self.versions = Versions(attributes, cluster)
        self._cluster = cluster
        self._redefault = redefault
        self._objects: dict[ResourceType, JSON] = {}
        self._last: ResourceType | None = None

    @property
    def has_changes(self) -> bool:
        """Return whether a policy has replaced the object, if only by an equal one."""
        return self._last is not None

    async def in_version(self, type: ResourceType) -> JSON:
        """Return the object as the policies that see this version have left it."""
        if type not in self._objects:
            self._objects[type] = await self.versions.new(type)
        return self._objects[type]

    async def put(self, type: ResourceType, changed: JSON) -> None:
        """Replace the object with a policy's result, with defaults filled in."""
        if not isinstance(changed, dict):
            raise internal_error("an admission policy left no object")
        own = self._redefault(await self.versions.back(type, changed))
        self._objects[type] = await self.versions.forth(type, own)
        self._last = type

    async def outcome(self) -> Attributes:
        """Return the request with the object as the policies left it."""
        if self._last is None:
            return self.attributes
        changed = self._objects[self._last]
        assert isinstance(changed, dict)  # noqa: S101  # `put` has looked
        return self.attributes.with_object(await self.versions.back(self._last, changed))


def _lost_conversion(attributes: Attributes, type: ResourceType) -> str:
    """Return the reason why the result of a mutating policy cannot be converted back, empty if it can.

    Kubernetes reads the result of an apply configuration or a patch in the request's own version, which fails for
    built-in kinds of another version. Only custom resources can be mutated through other versions.
    """
    own = attributes.type
    if type is own or own.is_custom or attributes.kind != own.gvk:
        return ""
    return f"converting ({type.version}.{type.kind}) to ({own.version}.{own.kind}): unknown conversion"


def _audited(policy: BoundPolicy, binding: Bound, denial: Denial) -> str:
    return go_struct(
        {
            "message": denial.message,
            "policy": policy.name,
            "binding": binding.name,
            "expressionIndex": denial.position,
            "validationActions": list(binding.actions),
        }
    )


def _cut(value: str) -> str:
    """Cut a value to the length limit of annotations."""
    return value.encode()[:_MAX_ANNOTATION].decode(errors="ignore")


def _reason(policy: BoundPolicy, position: int) -> str:
    validations = (policy.body.get("spec") or {}).get("validations") or ()
    return str(validations[position].get("reason") or "") if position < len(validations) else ""


def _denial_text(problem: _Problem) -> str:
    bound = f" with binding '{problem.binding}'" if problem.binding else ""
    return f"ValidatingAdmissionPolicy '{problem.policy}'{bound} denied request: {problem.message}"


def _denial(attributes: Attributes, message: str, reason: str) -> StatusError:
    type, reason = attributes.type, reason or "Invalid"
    error = forbidden(type.group, type.plural, display_name(attributes), message)
    return StatusError(
        _CODES.get(reason, 422),
        reason,
        error.message,
        group=error.group,
        kind=error.kind,
        name=error.name,
        causes=[Cause("", message)],
    )


def _mutation_text(problem: _Problem) -> str:
    # Kubernetes: without a binding the name is quoted in another way
    who = f"'{problem.policy}' with binding '{problem.binding}'" if problem.binding else f'"{problem.policy}"'
    return f"policy {who} denied request: {problem.message}"


def _refused(attributes: Attributes, problems: Sequence[_Problem]) -> StatusError:
    """Return the refusal of mutating policies: configuration errors come first, and give the reason."""
    ordered = sorted(problems, key=lambda each: not each.is_configuration)
    texts = [_mutation_text(each) for each in ordered]
    type = attributes.type
    return StatusError(
        403,
        "Forbidden" if ordered[0].is_configuration else "Invalid",
        texts[0],
        group=type.group,
        kind=type.plural,
        name=display_name(attributes),
        causes=[Cause("", text) for text in texts],
    )
