"""CertificateSigningRequests: approves those of nodes, and signs approved ones.

Only for Kubernetes' own signers. This module must never sign a request without approval.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TypeAlias

from kubesandbox.authentication.certificates import CertificateError
from kubesandbox.controllers.clock import stamp
from kubesandbox.controllers.conditions import condition, has_condition, set_condition
from kubesandbox.controllers.context import ControllerContext
from kubesandbox.controllers.loop import Keys, itself
from kubesandbox.controllers.objects import at
from kubesandbox.controllers.pods import conditions_of
from kubesandbox.storage.store import Key
from pyverno.kube.json import JSONObject

__all__ = ["CertificateSigning", "SignRequest", "is_self_approved", "lifetime_of"]

REQUESTS = "certificatesigningrequests.certificates.k8s.io"
KUBELET_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
SIGNERS = frozenset({"kubernetes.io/kube-apiserver-client", KUBELET_CLIENT, "kubernetes.io/kubelet-serving"})
YEAR = timedelta(days=365)
SHORTEST = timedelta(minutes=10)

SignRequest: TypeAlias = Callable[[bytes, timedelta, Sequence[str]], bytes]
"""Signs a request (PEM) for a lifetime and usages; raises CertificateError."""


class CertificateSigning:
    """Approves and signs."""

    def __init__(self, context: ControllerContext, sign: SignRequest | None) -> None:
        """Take the tools and the signing key, if there is one."""
        self._context = context
        self._sign = sign

    @property
    def watches(self) -> Mapping[str, Keys]:
        """The requests."""
        return {REQUESTS: itself}

    async def reconcile(self, key: Key) -> float | None:
        """Approve or sign one request."""
        context = self._context
        body = context.client.get(REQUESTS, key.name)
        if body is None or at(body, "spec", "signerName") not in SIGNERS:
            return None
        conditions = conditions_of(body)
        if has_condition(conditions, "Denied") or has_condition(conditions, "Failed"):
            return None
        if not has_condition(conditions, "Approved"):
            if is_self_approved(body):
                await self._approve(body)
            return None
        if self._sign is not None and not at(body, "status", "certificate"):
            await self._issue(body, self._sign)
        return None

    async def _approve(self, body: JSONObject) -> None:
        now = self._context.clock.now()
        message = "Auto approving kubelet client certificate after SubjectAccessReview."
        new = condition("Approved", "True", now, reason="AutoApproved", message=message)
        conditions = set_condition(conditions_of(body), {**new, "lastUpdateTime": stamp(now)})
        approved = {**body, "status": {**(body.get("status") or {}), "conditions": conditions}}
        await self._context.client.update(REQUESTS, approved, subresource="approval")

    async def _issue(self, body: JSONObject, sign: SignRequest) -> None:
        status: JSONObject = dict(body.get("status") or {})
        usages: list[str] = at(body, "spec", "usages", default=[])
        try:
            request = base64.b64decode(at(body, "spec", "request", default=""))
            certificate = sign(request, lifetime_of(body), usages)
        except (CertificateError, ValueError) as error:
            now = self._context.clock.now()
            new = condition("Failed", "True", now, reason="SignerValidationFailure", message=str(error))
            new["lastUpdateTime"] = stamp(now)
            status["conditions"] = set_condition(conditions_of(body), new)
        else:
            status["certificate"] = base64.b64encode(certificate).decode()
        await self._context.put_status(REQUESTS, body, status)


def is_self_approved(body: JSONObject) -> bool:
    """Return whether a node makes the request for itself."""
    groups = at(body, "spec", "groups", default=[])
    is_node = "system:nodes" in groups or "system:bootstrappers" in groups
    return is_node and at(body, "spec", "signerName") == KUBELET_CLIENT


def lifetime_of(body: JSONObject) -> timedelta:
    """Return the requested lifetime of a certificate, by default a year.

    >>> lifetime_of({"spec": {"expirationSeconds": 3600}})
    datetime.timedelta(seconds=3600)
    """
    seconds = at(body, "spec", "expirationSeconds")
    return YEAR if seconds is None else min(max(timedelta(seconds=int(seconds)), SHORTEST), YEAR)
