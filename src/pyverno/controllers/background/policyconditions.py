"""A condition on policies whose work in the background cannot be done: why the oldest request is not completed.

The leader writes it, from the UpdateRequests of all replicas and from objects that it cannot keep in step itself. The
admission controller writes all other conditions, and keeps this one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Final, NamedTuple

from pyverno.cluster.client import Client
from pyverno.cluster.informer import Informer, Notice
from pyverno.controllers.runtime.reconcile import Again, Controller, LoopMetrics, LoopSettings
from pyverno.controllers.runtime.statuspatch import (
    BACKGROUND_CONDITION,
    conditions_of,
    status_patch,
    with_background_condition,
)
from pyverno.controllers.state.clusterstate import ClusterState
from pyverno.controllers.state.policystore import Identity
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.policy.updaterequest import RequestType

__all__ = ["PolicyConditions", "Trouble", "policy_of"]

_SETTLE_SECONDS: Final = 1.0
_MAX_MESSAGE: Final = 1024
_NOT_FOUND: Final = 404
_KINDS: Final = {
    RequestType.GENERATE: "kyverno.io/{}Policy",
    RequestType.MUTATE: "kyverno.io/{}Policy",
    RequestType.CEL_GENERATE: "policies.kyverno.io/{}GeneratingPolicy",
    RequestType.CEL_MUTATE: "policies.kyverno.io/{}MutatingPolicy",
}


class Trouble(NamedTuple):
    """The reason why work of a policy is not done, and the time in seconds since 1970."""

    since: float
    message: str
    reason: str = "Failed"


class PolicyConditions:
    """Keeps the condition of each policy; `controller` is run by the leader."""

    def __init__(
        self,
        client: Client,
        state: ClusterState,
        requests: Informer,
        *,
        early_seconds: float = 5.0,
        clock: Callable[[], float] = time.time,
        metrics: LoopMetrics | None = None,
    ) -> None:
        """Take what is known of policies, and the UpdateRequests, which something else follows.

        A request must be `early_seconds` old before its failure shows in the policy: many wait a moment for their
        trigger.
        """
        self._client = client
        self._state = state
        self._early = early_seconds
        self._clock = clock
        self._troubles: dict[Identity, dict[Hashable, Trouble]] = {}
        self.controller: Controller[Identity] = Controller(
            "policy-conditions",
            self._reconcile,
            keys=self._keys,
            settings=LoopSettings(settle_seconds=_SETTLE_SECONDS),
            metrics=metrics,
        )
        requests.listen(self._take)

    def note(self, policy: Identity, key: Hashable, trouble: Trouble | None) -> None:
        """Note why a piece of work of a policy cannot be done, or with None that it is done."""
        known = self._troubles.get(policy)
        if trouble is not None:
            self._troubles.setdefault(policy, {})[key] = trouble
        elif known is None or known.pop(key, None) is None:
            return
        elif not known:
            del self._troubles[policy]
        self.controller.add(policy)

    def _take(self, notice: Notice, body: JSONObject) -> None:
        policy, status = policy_of(body.get("spec") or {}), body.get("status") or {}
        if policy is None:
            return
        message = str(status.get("message") or "")
        if notice is Notice.DELETED or status.get("state") not in ("Failed", "Pending") or not message:
            self.note(policy, body["metadata"]["name"], None)
            return
        reason = next((str(each.get("reason") or "") for each in conditions_of(status)), "") or "Failed"
        since = _seconds(body["metadata"].get("creationTimestamp"), self._clock())
        self.note(policy, body["metadata"]["name"], Trouble(since, message, reason))

    def _keys(self) -> Iterator[Identity]:
        """Yield the policies with trouble, and those that had some."""
        for identity, compiled in self._state.store.compiled().items():
            status = self._state.current(compiled.document.value).get("status") or {}
            if identity in self._troubles or _condition(status) is not None:
                yield identity

    async def _reconcile(self, identity: Identity) -> Again | None:
        compiled = self._state.store.compiled().get(identity)
        gvr = self._state.policy_resource(compiled.document.value) if compiled is not None else None
        if compiled is None or gvr is None:
            return None
        now, troubles = self._clock(), sorted(self._troubles.get(identity, {}).values())
        late = [each for each in troubles if now - each.since >= self._early]
        again = Again(max(self._early - (now - troubles[0].since), 0.1)) if troubles and not late else None
        body = self._state.current(compiled.document.value)
        status, metadata = body.get("status") or {}, body["metadata"]
        if not late and (_condition(status) is None or troubles):
            return again
        wanted = with_background_condition(_conditions_alone(status), _condition_of(late))
        patch = status_patch(status, wanted)
        if patch is not None:
            # the admission controller writes other conditions of the list: a version that is not the latest is refused
            patch["metadata"] = {"resourceVersion": metadata["resourceVersion"]}
            try:
                await self._client.patch(
                    gvr, metadata["name"], patch, metadata.get("namespace") or "", subresource="status"
                )
            except StatusError as error:
                if error.status != _NOT_FOUND:  # the watch delivers its deletion
                    raise
        return again


def policy_of(spec: JSONObject) -> Identity | None:
    """Return the policy of an UpdateRequest, None for a request of an unknown type.

    >>> policy_of({"requestType": "cel-mutate", "policy": "team/restart"})
    ('policies.kyverno.io/NamespacedMutatingPolicy', 'team', 'restart')
    """
    try:
        kind = _KINDS[RequestType(str(spec.get("requestType")))]
    except ValueError:
        return None
    namespace, _, name = str(spec.get("policy") or "").rpartition("/")
    if kind.startswith("policies."):
        return kind.format("Namespaced" if namespace else ""), namespace, name
    return kind.format("" if namespace else "Cluster"), namespace, name


def _condition_of(troubles: Iterable[Trouble]) -> JSONObject:
    trouble = next(iter(troubles), None)
    return {
        "type": BACKGROUND_CONDITION,
        "status": "True" if trouble is None else "False",
        "reason": "Succeeded" if trouble is None else trouble.reason,
        "message": "All requests are completed." if trouble is None else trouble.message[:_MAX_MESSAGE],
        "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def _conditions_alone(status: JSONObject) -> JSONObject:
    """Return of a status what has the conditions."""
    return {key: status[key] for key in ("conditions", "conditionStatus") if key in status} or {"conditions": []}


def _condition(status: JSONObject) -> JSONObject | None:
    return next((each for each in conditions_of(status) if each.get("type") == BACKGROUND_CONDITION), None)


def _seconds(written: object, now: float) -> float:
    try:
        return datetime.fromisoformat(str(written)).astimezone(UTC).timestamp()
    except ValueError:
        return now
