"""Requests to change existing objects when a policy is created or changed, and again at each interval.

One request stands for all objects of a rule, however many there are: it has no trigger. Its name follows from policy,
generation and rule, so that there is one at a time, whichever replica leads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from pyverno.controllers.background.context import BackgroundContext
from pyverno.controllers.runtime.reconcile import Again, Controller
from pyverno.controllers.state.policystore import Identity
from pyverno.kube.json import JSON
from pyverno.policy.cel.policies import MutatingPolicy
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.mutate import Mutate
from pyverno.policy.updaterequest import RequestType, UpdateRequestSpec

__all__ = ["MutatingPolicies"]

Written = ClusterPolicy | MutatingPolicy


class MutatingPolicies:
    """Follows the policies that change existing objects; a change of anything but the spec is no change."""

    def __init__(self, context: BackgroundContext) -> None:
        """Take what the controller works with; `controller` is run by the leader."""
        self._context = context
        self._specs: dict[Identity, JSON] = {}
        self.controller: Controller[Identity] = Controller(
            "mutate-existing", self._reconcile, keys=self._begin, metrics=context.metrics
        )
        context.state.store.listen(self._note)

    def _begin(self) -> Iterator[Identity]:
        """Yield every policy: what changed while no replica led is not known."""
        self._specs = {}
        return (identity for identity in tuple(self._context.state.store.compiled()) if self._has_changed(identity))

    def _note(self, identity: Identity) -> None:
        if self.controller.is_running and self._has_changed(identity):
            self.controller.add(identity)

    def _has_changed(self, identity: Identity) -> bool:
        """Return whether the spec of a policy is another one than before, and remember it."""
        compiled = self._context.state.store.compiled().get(identity)
        if compiled is None or not isinstance(compiled.written, Written):
            self._specs.pop(identity, None)
            return False
        spec = compiled.document.value.get("spec")
        if identity in self._specs and self._specs[identity] == spec:
            return False
        self._specs[identity] = spec
        return True

    async def _reconcile(self, identity: Identity) -> Again | None:
        compiled = self._context.state.store.compiled().get(identity)
        # a policy that does not compile was rejected, or will soon be replaced
        if compiled is None or compiled.errors or not isinstance(compiled.written, Written):
            return None
        written = compiled.written
        specs = tuple(_requests_for(written))
        metadata = compiled.document.value["metadata"]
        for spec in specs:
            await self._submit(spec, (*identity, spec.rule, metadata.get("uid"), metadata.get("generation")))
        if not specs or not _is_repeated(written):
            return None
        return Again(self._context.settings.scan_seconds)

    async def _submit(self, spec: UpdateRequestSpec, parts: tuple[object, ...]) -> None:
        """Create a request, unless the same one is still being worked on."""
        digest = hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
        await self._context.submit(spec, name=f"ur-{digest}")


def _requests_for(policy: Written) -> Iterator[UpdateRequestSpec]:
    """Yield a request for each rule that changes what exists when the policy changes."""
    if isinstance(policy, MutatingPolicy):
        if policy.spec.evaluation.mutate_existing:
            yield UpdateRequestSpec(RequestType.CEL_MUTATE, policy.key)
        return
    for rule in policy.spec.rules:
        if isinstance(rule.action, Mutate) and rule.action.targets:
            own = rule.action.mutate_existing_on_policy_update
            if policy.spec.mutate_existing_on_policy_update if own is None else own:
                yield UpdateRequestSpec(RequestType.MUTATE, policy.key, rule=rule.name)


def _is_repeated(policy: Written) -> bool:
    """Return whether a policy works at each interval; Kyverno: not when an expression names its targets."""
    if isinstance(policy, ClusterPolicy):
        return True
    targets = policy.spec.target_match_constraints
    return targets is None or targets.expression is None
