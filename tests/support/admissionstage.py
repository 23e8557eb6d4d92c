"""A small cluster for admission requests, and webhook servers over HTTPS."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from aiohttp import web

from kubesandbox.admission.chain import Admission
from kubesandbox.admission.policies.requests import Versions
from kubesandbox.attributes import Attributes, Notes
from kubesandbox.authentication.certificates import Authority
from kubesandbox.authorization.access import EverythingAllowed
from kubesandbox.storage.store import Key, Store
from kubesandbox.types.conversion import to_version
from kubesandbox.types.resources import ResourceTable, ResourceType, builtin_table
from kubesandbox.view import StoreView
from pyverno.engine.request import Operation, Request, User
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSONObject
from tests.support.servers import listening

NOW = datetime.now(UTC)
AUTHORITY = Authority.make("webhooks", now=NOW)
STRANGER = Authority.make("stranger", now=NOW)
TABLE = builtin_table("1.35")
JANE = User("jane", ("dev", "system:authenticated"))


def in_store(store: Store, *bodies: JSONObject) -> Store:
    """Put objects into the server's storage."""
    for body in bodies:
        group, _, version = body["apiVersion"].rpartition("/")
        type = TABLE.by_kind(GVK(group, version, body["kind"]))
        assert type is not None, body["kind"]
        metadata = body["metadata"]
        store.put(Key(type.key, metadata.get("namespace", ""), metadata["name"]), body)
    return store


def namespace(name: str, **labels: str) -> JSONObject:
    """Return a Namespace with labels, `_` in their names standing for `-` and `__` for `/`."""
    given = {key.replace("__", "/").replace("_", "-"): value for key, value in labels.items()}
    metadata = {"name": name, "labels": {"kubernetes.io/metadata.name": name, **given}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata, "status": {"phase": "Active"}}


async def _in_version(type: ResourceType, body: JSONObject) -> JSONObject:
    return to_version(type, body)


def cluster(*bodies: JSONObject, table: ResourceTable = TABLE) -> tuple[Store, StoreView]:
    """Return a store with the namespace `x`, its default account and further objects, and a view of it."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "x"}}
    store = in_store(Store(), namespace("x"), account, *bodies)
    return store, StoreView(store, lambda: table, _in_version)


def admission(view: StoreView, **options: object) -> Admission:
    """Return the admission chain of a cluster; review uids are numbered, generated names end with `abcde`."""
    numbers = count(1)
    given = {"authorizer": EverythingAllowed(), "waits_for_accounts": False, **options}
    return Admission(view, make_id=lambda: f"uid-{next(numbers)}", make_suffix=lambda: "abcde", **given)  # type: ignore[arg-type]


def config_map(name: str = "c", **fields: object) -> JSONObject:
    """Return a ConfigMap of the namespace `x`."""
    labels = fields.pop("labels", None)
    metadata = {"name": name, "namespace": "x", **({"labels": labels} if labels else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **fields}


def pod(*containers: JSONObject, name: str = "p", **spec: object) -> JSONObject:
    """Return a Pod of the namespace `x`."""
    metadata = {"name": name, "namespace": "x"}
    body = {"containers": list(containers) or [{"name": "a", "image": "nginx"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body}


def request(
    body: JSONObject | None,
    *,
    old: JSONObject | None = None,
    operation: Operation = Operation.CREATE,
    user: User = JANE,
    dry_run: bool = False,
    table: ResourceTable = TABLE,
    **changes: object,
) -> Attributes:
    """Return an admission request for an object."""
    subject = body if body is not None else old
    assert subject is not None
    group, _, version = subject["apiVersion"].rpartition("/")
    type = table.by_kind(GVK(group, version, subject["kind"]))
    assert type is not None
    metadata = subject["metadata"]
    own = metadata["name"] if type.key == "namespaces" else metadata.get("namespace", "")
    fields: dict[str, object] = {
        "operation": operation,
        "type": type,
        "subresource": "",
        "namespace": own,
        "name": metadata.get("name", ""),
        "user": user,
        "object": body,
        "old": old,
        "kind": type.gvk,
        "options": {"kind": f"{operation.value.title()}Options", "apiVersion": "meta.k8s.io/v1"},
        "dry_run": dry_run,
    }
    return Attributes(**{**fields, **changes})  # type: ignore[arg-type]


async def admitted(chain: Admission, attributes: Attributes, notes: Notes | None = None) -> JSONObject | None:
    """Send a request through both phases of the chain and return the object."""
    notes = notes or Notes()
    try:
        changed = await chain.mutate(attributes, notes, redefault=lambda body: body)
        await chain.validate(attributes.with_object(changed), notes)
        return changed
    finally:
        await chain.close()


def engine_request(attributes: Attributes, view: StoreView, type: ResourceType | None = None) -> Request:
    """Return the request as the engine receives it, in one version of the type."""
    return asyncio.run(Versions(attributes, view).question(type or attributes.type))


# ------------------------------------------------------------------------------------------------------- webhooks

Reply = Callable[[JSONObject], Awaitable[web.StreamResponse] | web.StreamResponse | JSONObject]


def answer(review: JSONObject, *, allowed: bool = True, **response: object) -> JSONObject:
    """Return the AdmissionReview response to a review."""
    uid = review["request"]["uid"]
    body = {"uid": uid, "allowed": allowed, **response}
    return {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": body}


def patching(*operations: JSONObject) -> Reply:
    """Return a webhook that responds with a patch."""
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return lambda review: answer(review, patchType="JSONPatch", patch=patch)


class Served:
    """A running webhook server: its URL, the reviews that it received by path, and the peers of its connections."""

    def __init__(self, port: int, authority: Authority) -> None:
        self.port = port
        self.bundle = base64.b64encode(authority.certificate).decode()
        self.asked: list[tuple[str, JSONObject]] = []
        self.headers: list[dict[str, str]] = []
        self.connections: set[object] = set()

    def client(self, path: str = "") -> JSONObject:
        """Return the `clientConfig` of a path."""
        return {"url": f"https://localhost:{self.port}/{path}", "caBundle": self.bundle}


@asynccontextmanager
async def serving(
    folder: Path,
    *,
    authority: Authority = AUTHORITY,
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1"),
    lifetime: timedelta = timedelta(days=1),
    **replies: Reply,
) -> AsyncIterator[Served]:
    """Serve webhooks over HTTPS, each under its name."""
    pair = authority.issue("webhook", hosts=hosts, now=NOW, lifetime=lifetime)
    (folder / "webhook.pem").write_bytes(pair.certificate + pair.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "webhook.pem")

    async def handle(asked: web.BaseRequest) -> web.StreamResponse:
        review = await asked.json()
        served.asked.append((asked.path_qs, review))
        served.headers.append(dict(asked.headers))
        assert asked.transport is not None
        served.connections.add(asked.transport.get_extra_info("peername"))
        reply = replies[asked.path.strip("/")](review)
        if isinstance(reply, dict):
            return web.json_response(reply)
        return reply if isinstance(reply, web.StreamResponse) else await reply

    async with listening(handle, context) as port:
        served = Served(port, authority)
        yield served


def configuration(kind: str, *webhooks: JSONObject, name: str = "test") -> JSONObject:
    """Return a `Validating` or `Mutating` webhook configuration."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": list(webhooks),
    }


def webhook(
    client: JSONObject, name: str = "a.example.com", resource: str = "configmaps", **fields: object
) -> JSONObject:
    """Return a webhook for all writes of a core resource."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": [resource], "scope": "*"}
    return {
        "name": name,
        "clientConfig": client,
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "matchPolicy": "Equivalent",
        "timeoutSeconds": 10,
        "failurePolicy": "Fail",
        "namespaceSelector": {},
        "objectSelector": {},
        **fields,
    }
