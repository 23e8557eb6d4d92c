"""The admission chain: all plugins in Kubernetes' order, the mutating ones before the validating ones.

After a webhook has changed the object, the mutating half runs once more.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

from kubesandbox.admission.plugins.accounts import ServiceAccounts
from kubesandbox.admission.plugins.classes import admit_classes, admit_runtime_class
from kubesandbox.admission.plugins.lifecycle import check_namespace
from kubesandbox.admission.plugins.limits import admit_limits, check_limits
from kubesandbox.admission.plugins.priority import admit_priority, check_priority_class
from kubesandbox.admission.plugins.quota import check_quota
from kubesandbox.admission.plugins.signers import admit_requestor, check_signers
from kubesandbox.admission.plugins.tolerations import admit_tolerations
from kubesandbox.admission.policies.plugin import AdmissionPolicies
from kubesandbox.admission.policies.requests import labels_of, namespace_object
from kubesandbox.admission.webhooks.caller import WebhookCaller
from kubesandbox.admission.webhooks.calls import Webhooks
from kubesandbox.admission.webhooks.rounds import Rounds
from kubesandbox.admission.webhooks.services import ServiceMap
from kubesandbox.attributes import Attributes, Notes
from kubesandbox.authorization.access import Authorizer
from kubesandbox.authorization.escalation import check_escalation
from kubesandbox.view import ClusterView
from pyverno.kube.json import JSONObject

if TYPE_CHECKING:
    from kubesandbox.admission.plugins.podsecurity import PodSecurity

__all__ = ["Admission"]

_STANDARDS = "pod-security.kubernetes.io/"

_UNTOUCHED = frozenset({"authentication.k8s.io", "authorization.k8s.io"})
"""Groups whose objects are access reviews: policies and webhooks may refuse them, plugins pass them over."""


class Admission:
    """Admits requests, or raises the StatusError that refuses them."""

    def __init__(
        self,
        cluster: ClusterView,
        *,
        authorizer: Authorizer,
        services: ServiceMap | None = None,
        kube_version: str = "1.35",
        make_id: Callable[[], str] = lambda: str(uuid.uuid4()),
        make_suffix: Callable[[], str] = lambda: "".join(map(secrets.choice, ["bcdfghjklmnpqrstvwxz2456789"] * 5)),
        waits_for_accounts: bool = True,
        judges_policies: bool = True,
    ) -> None:
        """Take the cluster that the chain reads.

        `services` locates services that have no endpoints. `make_id` makes the uids of reviews, `make_suffix`
        the five characters of generated names. `waits_for_accounts`: a controller makes default accounts.
        """
        version = _version(kube_version)
        self._cluster = cluster
        self._authorizer = authorizer
        self._caller = WebhookCaller(cluster, mapped=services)
        self._accounts = ServiceAccounts(cluster, make_suffix, waits_for_default=waits_for_accounts)
        self._pod_security: PodSecurity | None = None
        self._policies = AdmissionPolicies(cluster, authorizer, version) if judges_policies else None
        self._webhooks = Webhooks(cluster, authorizer, self._caller, make_id=make_id, kube_version=version)

    @property
    def caller(self) -> WebhookCaller:
        """The client that calls webhooks, also used for conversion webhooks."""
        return self._caller

    async def close(self) -> None:
        """Close the connections to webhooks."""
        await self._caller.close()

    async def mutate(
        self, attributes: Attributes, notes: Notes, *, redefault: Callable[[JSONObject], JSONObject]
    ) -> JSONObject | None:
        """Return the object with the changes of plugins, policies and webhooks; raises StatusError.

        `redefault` fills in defaults and reads the object as its type does; it is called whenever a policy or a webhook
        has changed the object, and its StatusErrors refuse the request.
        """
        rounds = Rounds()
        attributes = await self._mutate(attributes, notes, rounds, redefault)
        if rounds.is_due:
            rounds.number = 1
            attributes = await self._mutate(attributes, notes, rounds, redefault)
        return admit_requestor(attributes).object

    async def validate(self, attributes: Attributes, notes: Notes) -> None:
        """Validate a request whose object is final; raises StatusError."""
        cluster = self._cluster
        if attributes.type.group not in _UNTOUCHED:
            check_escalation(attributes, cluster, self._authorizer)
            check_limits(attributes, cluster)
            await self._accounts.check(attributes)
            self._check_pod_security(attributes, notes)
            check_priority_class(attributes, cluster)
            check_signers(attributes, self._authorizer)
        if self._policies is not None:
            await self._policies.validate(attributes, notes)
        await self._webhooks.validate(attributes, notes)
        if attributes.type.group not in _UNTOUCHED:
            check_quota(attributes, cluster)

    def _check_pod_security(self, attributes: Attributes, notes: Notes) -> None:
        """Check a request by the Pod Security Standards of its namespace; they are imported at first use."""
        if self._pod_security is None:
            if not any(
                label.startswith(_STANDARDS) for label in labels_of(namespace_object(attributes, self._cluster))
            ):
                return
            from kubesandbox.admission.plugins.podsecurity import PodSecurity

            self._pod_security = PodSecurity(self._cluster)
        self._pod_security.check(attributes, notes)

    async def _mutate(
        self,
        attributes: Attributes,
        notes: Notes,
        rounds: Rounds,
        redefault: Callable[[JSONObject], JSONObject],
    ) -> Attributes:
        check_namespace(attributes, self._cluster)
        if attributes.type.key == "pods":
            attributes = admit_limits(attributes, self._cluster)
            attributes = await self._accounts.admit(attributes)
            attributes = admit_priority(attributes, self._cluster)
            attributes = admit_tolerations(attributes)
            attributes = admit_runtime_class(attributes, self._cluster)
        attributes = admit_classes(attributes, self._cluster)
        if self._policies is not None:
            attributes = await self._policies.mutate(attributes, rounds, redefault)
        return await self._webhooks.mutate(attributes, notes, rounds, redefault)


def _version(text: str) -> tuple[int, int]:
    """Read `1.35` or `v1.35.0`.

    >>> _version("v1.35.0")
    (1, 35)
    """
    major, minor, *_ = text.removeprefix("v").split(".")
    return int(major), int(minor)
