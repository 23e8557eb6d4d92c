"""Objects of every namespace: the ServiceAccount `default` and the certificate of the server; and tokens in Secrets."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping

from kubesandbox.controllers.context import ControllerContext, is_namespace_ending
from kubesandbox.controllers.loop import Keys, itself
from kubesandbox.controllers.objects import annotations_of, at, is_deleting, name_of, namespace_of, uid_of
from kubesandbox.storage.store import Change, ChangeKind, Key
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.value import dataclass

__all__ = ["InEachNamespace", "Standing", "TokenSecrets", "default_account", "root_certificate"]

DEFAULT = "default"
ROOT_CA = "kube-root-ca.crt"
ACCOUNT_NAME = "kubernetes.io/service-account.name"
ACCOUNT_UID = "kubernetes.io/service-account.uid"
TOKEN_TYPE = "kubernetes.io/service-account-token"  # noqa: S105  # a type of Secret
_ROOT_CA_NOTE = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


@dataclass(frozen=True, slots=True)
class Standing:
    """An object that every namespace has: makes it, and checks an existing one."""

    resource: str
    name: str
    make: Callable[[str], JSONObject]
    is_right: Callable[[JSONObject, JSONObject], bool] = lambda _found, _wanted: True


class InEachNamespace:
    """Keeps a standing object in every namespace that is not being deleted."""

    def __init__(self, context: ControllerContext, standing: Standing) -> None:
        """Take the tools and the object."""
        self._context = context
        self._standing = standing

    @property
    def watches(self) -> Mapping[str, Keys]:
        """Namespaces, and the objects when they change or go."""
        return {"namespaces": itself, self._standing.resource: self._of_object}

    async def reconcile(self, key: Key) -> float | None:
        """Create or correct the object."""
        client, standing = self._context.client, self._standing
        namespace = client.get("namespaces", key.name)
        if namespace is None or is_deleting(namespace):
            return None
        wanted = standing.make(key.name)
        found = client.get(standing.resource, standing.name, key.name)
        try:
            if found is None:
                await client.create(standing.resource, wanted)
            elif not standing.is_right(found, wanted):
                await client.update(standing.resource, {**found, **wanted, "metadata": found["metadata"]})
        except StatusError as error:
            if not is_namespace_ending(error):
                raise
        return None

    def _of_object(self, change: Change) -> Iterable[Key]:
        if change.state.key.name != self._standing.name or change.kind is ChangeKind.ADDED:
            return ()
        return (Key("namespaces", "", change.state.key.namespace),)


def default_account() -> Standing:
    """Return the ServiceAccount that pods get when they name none."""

    def make(namespace: str) -> JSONObject:
        return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": DEFAULT, "namespace": namespace}}

    return Standing("serviceaccounts", DEFAULT, make)


def root_certificate(certificate: str) -> Standing:
    """Return the ConfigMap by which pods trust the server, with the certificate of its authority (PEM)."""

    def make(namespace: str) -> JSONObject:
        metadata = {"name": ROOT_CA, "namespace": namespace}
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {**metadata, "annotations": {"kubernetes.io/description": _ROOT_CA_NOTE}},
            "data": {"ca.crt": certificate},
        }

    return Standing("configmaps", ROOT_CA, make, lambda found, wanted: bool(found.get("data") == wanted["data"]))


class TokenSecrets:
    """Fills token Secrets of service accounts, and deletes those whose account no longer exists."""

    def __init__(self, context: ControllerContext, sign: Callable[[JSONObject, str], str], certificate: str) -> None:
        """Take the tools, the function that signs a token for an account and a Secret, and the authority as PEM."""
        self._context = context
        self._sign = sign
        self._certificate = certificate

    @property
    def watches(self) -> Mapping[str, Keys]:
        """Such Secrets, and accounts."""
        return {"secrets": _token_secret, "serviceaccounts": self._of_account}

    def _of_account(self, change: Change) -> Iterable[Key]:
        if change.kind is ChangeKind.MODIFIED:
            return ()
        return [
            Key("secrets", namespace_of(body), name_of(body))
            for body in self._context.client.list("secrets", change.state.key.namespace)
            if body.get("type") == TOKEN_TYPE and annotations_of(body).get(ACCOUNT_NAME) == change.state.key.name
        ]

    async def reconcile(self, key: Key) -> float | None:
        """Fill or delete one Secret."""
        client = self._context.client
        secret = client.get("secrets", key.name, key.namespace)
        if secret is None or is_deleting(secret) or secret.get("type") != TOKEN_TYPE:
            return None
        account = client.get("serviceaccounts", annotations_of(secret).get(ACCOUNT_NAME, ""), key.namespace)
        is_other = account is None or annotations_of(secret).get(ACCOUNT_UID, uid_of(account)) != uid_of(account)
        if account is None or is_other:
            await client.delete("secrets", key.name, key.namespace, uid=uid_of(secret))
            return None
        if at(secret, "data", "token") is None or at(secret, "data", "ca.crt") is None:
            token = self._sign(account, key.name)
            await client.update("secrets", filled_secret(secret, account, token, self._certificate))
        return None


def filled_secret(secret: JSONObject, account: JSONObject, token: str, certificate: str) -> JSONObject:
    """Return a Secret with an account's token, CA and namespace; existing entries are kept."""
    annotations = {**annotations_of(secret), ACCOUNT_UID: uid_of(account)}
    texts = {"ca.crt": certificate, "namespace": namespace_of(secret), "token": token}
    data = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
    metadata = {**secret["metadata"], "annotations": annotations}
    return {**secret, "metadata": metadata, "data": {**data, **(secret.get("data") or {})}}


def _token_secret(change: Change) -> Iterable[Key]:
    is_meant = change.state.body.get("type") == TOKEN_TYPE and change.kind is not ChangeKind.DELETED
    return (change.state.key,) if is_meant else ()
