"""Creates, updates and deletes the admission policies that policies ask for; the leader's work.

Once the API server has a copy, it enforces the policy, and the webhook no longer does (`is_generated`). A policy whose
copy cannot be made stays with the webhook and has the reason in its status.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from pyverno.cluster.client import Client
from pyverno.compiler.compile import Compiled
from pyverno.controllers.admissionpolicies.eligibility import Convertible, obstacle
from pyverno.controllers.admissionpolicies.translation import admission_policies, admission_policy_name
from pyverno.controllers.state.policystore import is_generated
from pyverno.errors import UsageError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.kube.status import StatusError
from pyverno.kube.wildcard import match as fits
from pyverno.policy.cel.exception import CelException
from pyverno.policy.cel.policies import MutatingPolicy
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.exception import PolicyException
from pyverno.policy.kinds import POLICY_KINDS
from pyverno.policy.validate import Validate
from pyverno.value import dataclass

__all__ = ["GeneratedPolicies", "Generation", "check_mutating", "with_generation"]

_GROUP: Final = "admissionregistration.k8s.io"
_VERSIONS: Final = ("v1", "v1beta1", "v1alpha1")
_WORDS: Final = ("validating", "mutating")
_MANAGED: Final = "app.kubernetes.io/managed-by=kyverno"
_OWNERS: Final = frozenset(row.kind for row in POLICY_KINDS if row.becomes)
_PREFIXES: Final = tuple(f"{row.short_names[0]}-" for row in POLICY_KINDS if row.becomes)

_FORBIDDEN: Final = 403
_DEFAULTS: Final[Mapping[str, object]] = {
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "scope": "*",
    "reinvocationPolicy": "Never",
}

Place = tuple[str, str]
"""Kind and name of a policy."""


@dataclass(frozen=True, slots=True)
class Generation:
    """The generation for a policy: whether the cluster has its admission policy, and if not, why."""

    is_made: bool
    message: str = ""


class GeneratedPolicies:
    """Writes admission policies and their bindings; one of these may run at a time."""

    def __init__(self, client: Client, *, validating: bool = True, mutating: bool = False) -> None:
        """Take the client; without `validating` no ValidatingAdmissionPolicies are made.

        With `mutating`, the status of mutating policies shows a missing admission policy too.
        """
        self._client = client
        self._validating = validating
        self._mutating = mutating
        self._may_exist = True  # a predecessor may have left some

    async def reconcile(self, compiled: Iterable[Compiled], kinds: KindTable) -> Mapping[Place, Generation]:
        """Create, update and delete admission policies; return the outcome for each policy that requests one."""
        items = tuple(compiled)
        valid = [item.written for item in items if not item.errors and item.written is not None]
        asking = [policy for policy in valid if isinstance(policy, Convertible) and self._makes(policy)]
        if not asking and not self._may_exist:
            return {}
        exceptions = [each for each in valid if isinstance(each, PolicyException | CelException)]
        found = {word: await self._list_own(word, kinds) for word in _WORDS}
        outcomes: dict[Place, Generation] = {}
        kept: set[str] = set()
        for policy in asking:
            outcome = await self._make(policy, _about(policy, exceptions), kinds, found)
            outcomes[policy.kind, policy.name] = outcome
            if outcome.is_made:
                kept.add(admission_policy_name(policy))
        # an object that a policy's status still names is deleted in a later round, after its webhook exists again
        kept.update(_names_of_generated(items))
        self._may_exist = bool(kept)
        for word in _WORDS:
            await self._remove(word, found[word], kept, kinds)
        return outcomes

    def _makes(self, policy: Convertible) -> bool:
        if isinstance(policy, MutatingPolicy):
            # Kyverno: the field of a policy decides first; the flag concerns all others
            return not policy.is_namespaced and (self._mutating or _requests_policy(policy))
        return _requests_policy(policy) and self._validating

    async def _make(
        self,
        policy: Convertible,
        exceptions: Sequence[PolicyException | CelException],
        kinds: KindTable,
        found: Mapping[str, Mapping[str, JSONObject] | None],
    ) -> Generation:
        word = "mutating" if isinstance(policy, MutatingPolicy) else "validating"
        message = obstacle(policy, exceptions)
        gvr = _resource(word, kinds)
        if not message and gvr is None:
            missing = f"requested but no {word.title()}AdmissionPolicy API/informers are available"
            message = f"skip generating {word.title()}AdmissionPolicy: {missing}."
        known = found[word]
        if not message and known is None:
            message = f"insufficient permissions to generate {word.title()}AdmissionPolicies"
        if message or gvr is None or known is None:
            return Generation(is_made=False, message=message)
        try:
            wanted = admission_policies(policy, exceptions, kinds=kinds, version=gvr.version)
            # the binding last: without it the policy has no effect yet
            for resource, body in zip((gvr, _bindings(gvr)), wanted, strict=True):
                await self._write(resource, body, known.get(body["metadata"]["name"]))
        except (UsageError, StatusError) as error:
            if isinstance(error, StatusError) and error.status >= 500:
                raise
            return Generation(is_made=False, message=f"failed to generate {word.title()}AdmissionPolicy: {error}")
        return Generation(is_made=True)

    async def _write(self, gvr: GVR, wanted: JSONObject, found: JSONObject | None) -> None:
        if found is None:
            await self._client.create(gvr, wanted)
        elif not _is_same(found["spec"], wanted["spec"]) or not _has_metadata(found, wanted):
            metadata = {**found["metadata"], **wanted["metadata"]}
            await self._client.update(gvr, {**wanted, "metadata": metadata})

    async def _list_own(self, word: str, kinds: KindTable) -> dict[str, JSONObject] | None:
        """Return what we made before, by name: policies and bindings, whose names differ; None if we may not look."""
        gvr = _resource(word, kinds)
        if gvr is None:
            return {}
        query = {"labelSelector": _MANAGED}
        try:
            listed = [await self._client.list(each, query=query) for each in (gvr, _bindings(gvr))]
        except StatusError as error:
            if error.status != _FORBIDDEN:
                raise
            return None
        return {item["metadata"]["name"]: item for each in listed for item in each["items"] if _is_ours(item)}

    async def _remove(
        self, word: str, found: Mapping[str, JSONObject] | None, kept: set[str], kinds: KindTable
    ) -> None:
        gvr = _resource(word, kinds)
        for name in sorted(found or {}, reverse=True):  # a binding before its policy
            if found and gvr is not None and name.removesuffix("-binding") not in kept and name not in kept:
                is_binding = "policyName" in found[name]["spec"]
                try:
                    await self._client.delete(_bindings(gvr) if is_binding else gvr, name)
                except StatusError as error:
                    if error.status != 404:
                        raise


def check_mutating(kinds: KindTable) -> None:
    """Raise UsageError where a cluster has no MutatingAdmissionPolicies at all."""
    if _resource("mutating", kinds) is None:
        raise UsageError(
            "the cluster has no MutatingAdmissionPolicies, and --generateMutatingAdmissionPolicy needs them"
        )


def with_generation(status: JSONObject, compiled: Compiled, outcomes: Mapping[Place, Generation]) -> JSONObject:
    """Return the status of a policy with what came of its admission policy, where that is a question."""
    policy = compiled.written
    if not isinstance(policy, Convertible):
        return status
    outcome = outcomes.get((policy.kind, policy.name), Generation(is_made=False))
    if isinstance(policy, ClusterPolicy):
        if not _requests_policy(policy) and not is_generated(compiled.document.value):
            return status
        made = {"generated": outcome.is_made, "message": outcome.message}
        return {**status, "validatingadmissionpolicy": made}
    condition = {**status["conditionStatus"], "message": outcome.message}
    return {**status, "conditionStatus": condition, "generated": outcome.is_made}


def _names_of_generated(items: Iterable[Compiled]) -> Iterator[str]:
    for item in items:
        if isinstance(item.written, Convertible) and is_generated(item.document.value):
            yield admission_policy_name(item.written)


def _requests_policy(policy: Convertible) -> bool:
    """Return whether a policy requests an admission policy; namespaced ones never become one."""
    if isinstance(policy, ClusterPolicy):
        return not policy.is_namespaced and any(
            isinstance(rule.action, Validate) and rule.action.cel is not None for rule in policy.spec.rules
        )
    return not policy.is_namespaced and policy.spec.autogen.admission_policy


def _about(
    policy: Convertible, exceptions: Iterable[PolicyException | CelException]
) -> list[PolicyException | CelException]:
    return [each for each in exceptions if _names(each, policy)]


def _names(exception: PolicyException | CelException, policy: Convertible) -> bool:
    if isinstance(policy, ClusterPolicy):
        rules = [rule.name for rule in policy.spec.rules]
        return isinstance(exception, PolicyException) and any(
            reference.policy_name == policy.name
            and any(fits(name, rule) for name in reference.rule_names for rule in rules)
            for reference in exception.spec.exceptions
        )
    return isinstance(exception, CelException) and exception.names(policy.kind, policy.name)


def _resource(word: str, kinds: KindTable) -> GVR | None:
    choices = (GVR(_GROUP, version, f"{word}admissionpolicies") for version in _VERSIONS)
    return next((gvr for gvr in choices if kinds.by_resource(gvr) is not None), None)


def _bindings(gvr: GVR) -> GVR:
    return GVR(gvr.group, gvr.version, gvr.resource.replace("policies", "policybindings"))


def _is_ours(body: JSONObject) -> bool:
    owners = body["metadata"].get("ownerReferences") or ()
    return body["metadata"]["name"].startswith(_PREFIXES) and any(each.get("kind") in _OWNERS for each in owners)


def _has_metadata(found: JSONObject, wanted: JSONObject) -> bool:
    metadata = found["metadata"]
    labels = {**(metadata.get("labels") or {}), **wanted["metadata"]["labels"]}
    owners: list[JSONObject] = wanted["metadata"]["ownerReferences"]
    return bool(metadata.get("labels") == labels and metadata.get("ownerReferences") == owners)


def _is_same(found: object, wanted: object) -> bool:
    """Return whether two specs are equal, apart from defaults that the API server fills in."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        filled = found.keys() - wanted.keys()
        return all(_DEFAULTS.get(key) == found[key] for key in filled) and all(
            key in found and _is_same(found[key], value) for key, value in wanted.items()
        )
    if isinstance(wanted, list) and isinstance(found, list):
        return len(found) == len(wanted) and all(map(_is_same, found, wanted))
    return found == wanted
