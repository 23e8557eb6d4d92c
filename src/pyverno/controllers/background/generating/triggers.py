"""The objects that trigger generate rules: found in the cluster, and made into requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyverno.cluster.client import Client
from pyverno.controllers.background.namespaces import find_namespace
from pyverno.controllers.background.work import part_of
from pyverno.controllers.evidence import Evidence, Refuted, Unprovable, Unsettled
from pyverno.controllers.state.clusterstate import ClusterState
from pyverno.engine.origin import uid_of
from pyverno.engine.request import Operation, Request, User
from pyverno.engine.result import ResourceRef
from pyverno.errors import HostError
from pyverno.kube.gvk import GVK, GVR, parse_api_version
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import KindInfo
from pyverno.kube.status import StatusError
from pyverno.policy.updaterequest import AdmissionContext, Trigger
from pyverno.value import replace

# trust rows: update-request

__all__ = ["TriggerReader", "is_of_part", "is_trigger_of", "trigger_of"]

_NOT_FOUND: Final = 404
_NAMESPACE: Final = GVK("", "v1", "Namespace")


def trigger_of(body: JSONObject, info: KindInfo | None = None) -> Trigger:
    """Name an object as a trigger.

    >>> trigger_of({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "b", "uid": "7"}}).uid
    '7'
    """
    ref = ResourceRef.of(body)
    api_version, kind = (info.api_version, info.kind) if info is not None else (ref.api_version, ref.kind)
    return Trigger(api_version, kind, ref.namespace, ref.name, uid_of(body))


def is_trigger_of(trigger: Trigger, context: AdmissionContext | None) -> bool:
    """Return whether a trigger is the object of the admission request that comes with it.

    >>> asked = {"namespace": "b", "oldObject": {"kind": "Pod", "metadata": {"name": "a", "uid": "7"}}}
    >>> is_trigger_of(Trigger("v1", "Pod", "b", "a", "7"), AdmissionContext(request=asked))
    True
    >>> is_trigger_of(Trigger("v1", "Pod", "b", "other", "7"), AdmissionContext(request=asked))
    False
    """
    asked = context.request if context is not None else None
    if not isinstance(asked, dict):
        return True
    bodies = [body for body in (asked.get("object"), asked.get("oldObject")) if isinstance(body, dict)]
    refs = [ResourceRef.of(body) for body in bodies]
    names = {asked.get("name"), *(ref.name for ref in refs)}
    namespaces = {asked.get("namespace"), *(ref.namespace for ref in refs)}
    return (
        trigger.name in (names - {"", None} or {""})
        and trigger.namespace in (namespaces | {""})
        and trigger.kind in {ref.kind for ref in refs}
        and trigger.uid in {uid_of(body) for body in bodies}
    )


def is_of_part(context: AdmissionContext) -> bool:
    """Return whether a request is for a subresource, or connects to an object."""
    asked = context.request if isinstance(context.request, dict) else {}
    return context.operation == Operation.CONNECT.value or bool(asked.get("subResource"))


class TriggerReader:
    """Finds triggers and makes the requests that rules are evaluated on."""

    def __init__(self, client: Client, state: ClusterState) -> None:
        """Take the client, and the state of the cluster with its namespaces."""
        self._client = client
        self._state = state
        self._evidence = Evidence(client, lambda: state.kinds)

    def info(self, trigger: Trigger) -> KindInfo:
        """Return the kind of a trigger; raises HostError for one that is not served."""
        found = self._state.kinds.find(GVK(*parse_api_version(trigger.api_version), trigger.kind))
        if found is None:
            raise HostError(f"the cluster does not serve {trigger.api_version} {trigger.kind}")
        return found

    async def find(
        self, trigger: Trigger, *, newer_than: str | None = None, is_terminating: bool = False
    ) -> JSONObject | None:
        """Return the object as it is now; None where it is gone, being deleted, or another one of the same name.

        `newer_than` is the version before the change that triggered the rule ("" = it was created): memory answers only
        when it has seen more. `is_terminating` also finds an object that is being deleted.
        """
        info = self.info(trigger)
        found = self._known_namespace(trigger, newer_than) if info.gvk == _NAMESPACE else None
        if found is None:
            found = await self._read(info, trigger)
        if found is None or (found["metadata"].get("deletionTimestamp") and not is_terminating):
            return None
        if trigger.uid and uid_of(found) != trigger.uid:
            return None
        return {"apiVersion": info.api_version, "kind": info.kind, **found}

    def _known_namespace(self, trigger: Trigger, newer_than: str | None) -> JSONObject | None:
        if newer_than is None or not trigger.name:
            return None
        known = self._state.namespace(trigger.name)
        if known is None or uid_of(known) != trigger.uid:
            return None
        version = str(known["metadata"].get("resourceVersion") or "")
        if newer_than and not (version.isdecimal() and newer_than.isdecimal() and int(version) > int(newer_than)):
            return None
        return known

    async def _read(self, info: KindInfo, trigger: Trigger) -> JSONObject | None:
        namespace = trigger.namespace if info.namespaced else ""
        if not trigger.name:
            # objects that Kyverno generated name their trigger by its uid alone
            listed = await self._client.list(info.gvr, namespace)
            return next((each for each in listed["items"] if uid_of(each) == trigger.uid), None)
        try:
            return await self._client.get(info.gvr, trigger.name, namespace)
        except StatusError as error:
            if error.status != _NOT_FOUND:
                raise
            return None

    async def request(self, body: JSONObject, operation: Operation = Operation.CREATE) -> Request:
        """Return a request for the current state of an object, without a user."""
        info = self.info(trigger_of(body))
        namespace = await self._namespace(body)
        request = Request.from_manifest(
            body,
            operation=operation,
            gvr=info.gvr,
            namespace_labels=_labels(namespace),
            namespace_object=namespace,
        )
        return request.with_settings(self._state.configuration.evaluation)

    async def confirm(
        self, context: AdmissionContext, body: JSONObject | None, *, revision: str = "", reads_old: bool = True
    ) -> Request | Unsettled | Refuted:
        """Repeat an admission request with its user, as the API server confirms it; `body` is the current object.

        Without a body the object is read, or was deleted and still existed at `revision`. Raises HostError and
        StatusError.
        """
        asked: JSONObject = dict(context.request) if isinstance(context.request, dict) else {}
        if body is not None:
            asked["object"] = body
        request = Request.from_admission_review(asked, user=User.from_json(context.user))
        parent = self._parent(request)
        request = request if parent is None else request.with_kind(parent)
        found = await self._evidence.confirm(request, revision=revision, live=body)
        if isinstance(found, Unprovable):
            found = part_of(found, reads_old=reads_old, kept=context.kept)
        if not isinstance(found, Request):
            return found
        refuted = await self._evidence.vouch(found)
        if refuted is not None:
            return refuted
        namespace = await self._namespace(found.subject, found.namespace)
        user = found.user.with_roles(*self._state.roles_of(found.user, found.namespace))
        return replace(found, user=user, namespace_labels=_labels(namespace), namespace_object=namespace).with_settings(
            self._state.configuration.evaluation
        )

    def _parent(self, request: Request) -> GVK | None:
        """Return the kind that the subresource of a request belongs to."""
        if not request.subresource or request.gvr is None:
            return None
        info = self._state.kinds.by_resource(GVR(request.gvr.group, request.gvr.version, request.gvr.resource))
        return info.gvk if info is not None else None

    async def _namespace(self, body: JSON, name: str = "") -> JSONObject | None:
        """Return the namespace that selectors look at, None where there is none."""
        ref = ResourceRef.of(body)
        if (ref.api_version, ref.kind) == ("v1", "Namespace"):
            return body if isinstance(body, dict) else None
        name = ref.namespace or name
        return await find_namespace(name, self._state, self._client) if name else None


def _labels(namespace: JSONObject | None) -> Mapping[str, str] | None:
    if namespace is None:
        return None
    labels = (namespace.get("metadata") or {}).get("labels")
    return labels if isinstance(labels, dict) else {}
