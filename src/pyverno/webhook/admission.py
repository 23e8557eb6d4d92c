"""From an admission request to its response: filters, then the engine, then its decision.

Synchronous and free of I/O: rules read external data through the caller's Host, and `ClusterFacts` is in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from pyverno.engine.engine import Engine
from pyverno.engine.host import Host
from pyverno.engine.imageverification.annotations import RecordedObject, carries_records, without_foreign
from pyverno.engine.phases import MUTATING, VALIDATING
from pyverno.engine.request import Request, User
from pyverno.errors import HostError, HostUnavailableError, PyvernoError, UsageError
from pyverno.kube.admissionreview import AdmissionRequest, AdmissionResponse
from pyverno.kube.gvk import GVK, GVR
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.kube.status import StatusError, service_unavailable
from pyverno.policy.kinds import CEL_MUTATION_KINDS, RULE_KINDS
from pyverno.sinks.characters import visible
from pyverno.telemetry.observer import AdmissionOutcome
from pyverno.value import replace
from pyverno.webhook.configuration import Configuration
from pyverno.webhook.nonblocking import NonblockingHost
from pyverno.webhook.policies import Policies
from pyverno.webhook.routes import Route, WebhookType

__all__ = ["ClusterFacts", "PolicyFacts", "UserScopedHost", "answer", "passes_unseen"]

_MAX_LOOKUPS = 4
_PHASES = {WebhookType.MUTATE: MUTATING, WebhookType.VALIDATE: VALIDATING}
_OWN_KINDS = frozenset(
    {
        "AdmissionReport",
        "ClusterAdmissionReport",
        "BackgroundScanReport",
        "ClusterBackgroundScanReport",
        "UpdateRequest",
    }
)
_OWN_GROUPS = frozenset({"kyverno.io", "reports.kyverno.io"})
_MANAGED_BY = "app.kubernetes.io/managed-by"
_NAMESPACE_CONTROLLER = "system:serviceaccount:kube-system:namespace-controller"


class PolicyFacts(Protocol):
    """The policies, the configuration and the kinds of a cluster, kept in memory by watches."""

    @property
    def policies(self) -> Policies:
        """The current policies; raises HostUnavailableError while some are known to be missing."""
        ...

    @property
    def configuration(self) -> Configuration:
        """The current ConfigMap."""
        ...

    @property
    def kinds(self) -> KindTable:
        """The kinds that the cluster serves."""
        ...


class ClusterFacts(PolicyFacts, Protocol):
    """The state of the cluster that the webhook needs."""

    @property
    def own_namespace(self) -> str:
        """The namespace that the controllers run in."""
        ...

    @property
    def protects_managed(self) -> bool:
        """Whether only the controllers may change the objects that they manage."""
        ...

    def namespace(self, name: str) -> JSONObject | None:
        """Return a namespace, None for a missing one; raises HostError until namespaces have synced."""
        ...

    def roles_of(self, user: User, namespace: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the roles (`ns:name`) and cluster roles that bindings give to a user."""
        ...


@runtime_checkable
class UserScopedHost(Protocol):
    """A Host whose access checks depend on the user of a request."""

    def for_request(self, user: User, deadline: float | None) -> Host:
        """Return the Host for one request; its calls end at `deadline` (monotonic seconds)."""
        ...


ALLOWED = AdmissionOutcome(AdmissionResponse())


def answer(
    admission_request: AdmissionRequest,
    route: Route,
    cluster: ClusterFacts,
    host: Host,
    *,
    deadline: float | None = None,
    defers: bool = False,
) -> AdmissionOutcome:
    """Evaluate the policies of a route; with `defers`, audit-only policies are deferred.

    An error outside of any rule raises StatusError: it is unknown whether the policies pass, and the API server applies
    the failurePolicy of the webhook, which is that of its policies, to the failed call.
    """
    if (
        admission_request.operation == "DELETE"
        and route.webhook_type is WebhookType.MUTATE
        and not route.kinds & CEL_MUTATION_KINDS
    ):
        return ALLOWED  # there is no object for rules to change
    try:
        request = _request(admission_request, cluster, host)
        unseen = passes_unseen(admission_request, request, cluster)
        if unseen is not None:
            return unseen
        known = cluster.policies
        missing = known.missing(route, request.namespace)
        if missing:
            _check_are_gone(missing, host)
        later = known.auditing(route) if defers else None
        policies = known.deciding(route) if later else known.for_user(route, request.user.username)
        judged = _without_foreign_records(request, host) if route.webhook_type is WebhookType.MUTATE else request
        if not len(policies) and not later and judged is request:
            return ALLOWED
        asked, budget = host, None
        if isinstance(host, NonblockingHost):  # checked first: checking a protocol is slow
            budget = host.budget(deadline, request.settings.context_bytes)
        elif isinstance(host, UserScopedHost):
            asked = host.for_request(request.user, deadline)
        review = Engine(policies, asked).review(judged, _PHASES[route.webhook_type], budget=budget, deadline=deadline)
        if judged is not request:
            review = replace(review, request=request)  # the patch is for the object that the API server holds
        decision = review.decision
    except StatusError:
        raise
    except HostUnavailableError as error:
        raise service_unavailable(error.message) from None
    except PyvernoError as error:
        raise StatusError(500, "InternalError", error.message) from None
    patch = decision.patch if route.webhook_type is WebhookType.MUTATE else ()
    warnings = tuple(map(_shown, decision.warnings))
    response = AdmissionResponse(decision.allowed, _shown(decision.message), warnings, patch)
    return AdmissionOutcome(response, review, later or None, decision.fault)


def _shown(text: str) -> str:
    """Return a text as it may be shown; the words of an answer never take the answer back."""
    try:
        return visible(text)
    except Exception:
        return "the message cannot be shown"


def passes_unseen(
    admission_request: AdmissionRequest, request: Request, cluster: ClusterFacts
) -> AdmissionOutcome | None:
    """Return the response to protected objects, excluded users and filtered objects; None = evaluate policies."""
    if (
        cluster.protects_managed
        and _is_managed(admission_request)
        and not _may_manage(request.user, admission_request, cluster)
    ):
        return _denied("A kyverno managed resource can only be modified by kyverno")
    configuration = cluster.configuration
    if configuration.excluded.excludes(request.user):
        return ALLOWED
    kind = request.gvk
    for each in configuration.filters_of(kind, request.subresource):
        if each.takes(kind, request.namespace, request.name):
            return ALLOWED
    if kind.group in _OWN_GROUPS and kind.kind in _OWN_KINDS:
        return ALLOWED
    return None


def _without_foreign_records(request: Request, host: Host) -> Request:
    """Return the request without the records of verified images in its object that are not ours."""
    if not isinstance(request.object, dict) or not carries_records(request.object):
        return request
    is_stored = isinstance(request.old, dict)
    held = RecordedObject.of(request.gvk, request.namespace, request.old, is_stored=is_stored)
    found = without_foreign(request.object, request.old, held, host.record_keys)
    return request if found is request.object else request.with_object(found)  # guard: a foreign record is removed


def _check_are_gone(places: Sequence[tuple[str, str, str]], host: Host) -> None:
    """Raise unless the unknown policies that the path names were deleted: a watch may not have delivered them yet.

    Only a few are looked up, because the path is chosen by the caller.
    """
    for number, (kind, namespace, name) in enumerate(places):
        version = "kyverno.io/v1" if kind in RULE_KINDS else "policies.kyverno.io/v1"
        key = f"{namespace}/{name}" if namespace else name
        if number == _MAX_LOOKUPS or host.get_object(version, kind, namespace, name) is not None:
            raise service_unavailable(f"failed to fetch policy with key: key {key}: it has not arrived here yet")


def _request(admission_request: AdmissionRequest, cluster: ClusterFacts, host: Host) -> Request:
    namespace = _namespace_object(admission_request, cluster, host)
    user = User.from_json(admission_request.request.get("userInfo") or {})
    request = Request.from_admission_review(
        admission_request,
        user=user.with_roles(*cluster.roles_of(user, admission_request.namespace)),
        namespace_labels=_labels(namespace),
        namespace_object=namespace,
        settings=cluster.configuration.evaluation,
    )
    if not request.subresource:
        return request
    return request.with_kind(_parent(admission_request, cluster.kinds))


def _parent(admission_request: AdmissionRequest, kinds: KindTable) -> GVK:
    """Return the kind that a subresource belongs to; the object may be of another (`Scale`)."""
    found = admission_request.request.get("resource") or {}
    gvr = GVR(str(found.get("group", "")), str(found.get("version", "")), str(found.get("resource", "")))
    info = kinds.by_resource(gvr)
    if info is None:
        raise UsageError(f"resource `{gvr}` of subresource `{admission_request.subresource}` is not known")
    return info.gvk


def _namespace_object(admission_request: AdmissionRequest, cluster: ClusterFacts, host: Host) -> JSONObject | None:
    """Return the namespace for selectors: that of the object, or the object itself if it is a Namespace.

    A namespace that the watch has not delivered yet is fetched. Raises HostError when that fails: without its labels a
    selector would not match.
    """
    kind = admission_request.kind
    if kind.kind == "Namespace" and not kind.group:
        subject = admission_request.object if admission_request.object is not None else admission_request.old_object
        return subject if isinstance(subject, dict) else None
    if not admission_request.namespace:
        return None
    known = cluster.namespace(admission_request.namespace)
    found = known if known is not None else host.get_object("v1", "Namespace", "", admission_request.namespace)
    if found is None:
        raise HostError(f'namespaces "{admission_request.namespace}" not found')
    return found


def _labels(namespace: JSON) -> Mapping[str, str] | None:
    if namespace is None:
        return None
    labels = (namespace.get("metadata") or {}).get("labels")
    return labels if isinstance(labels, dict) else {}


def _is_managed(admission_request: AdmissionRequest) -> bool:
    for each in (admission_request.object, admission_request.old_object):
        if isinstance(each, dict) and (_labels(each) or {}).get(_MANAGED_BY) == "kyverno":
            return True
    return False


def _may_manage(user: User, admission_request: AdmissionRequest, cluster: ClusterFacts) -> bool:
    if user.username.startswith(f"system:serviceaccount:{cluster.own_namespace}:"):
        return True
    return admission_request.operation == "DELETE" and user.username == _NAMESPACE_CONTROLLER


def _denied(message: str) -> AdmissionOutcome:
    return AdmissionOutcome(AdmissionResponse(allowed=False, message=message))
