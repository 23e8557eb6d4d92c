"""`Sandbox`: a whole cluster in this process.

It builds and connects the parts: store, schemas, admission, API server, HTTPS, controllers.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import ssl
import tempfile
import threading
import uuid
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from kubesandbox.admission.chain import Admission
from kubesandbox.apiserver import ApiServer
from kubesandbox.audit import AuditLog, AuditRecord
from kubesandbox.authentication.authenticator import Authenticator, StaticToken
from kubesandbox.authentication.certificates import (
    ADMIN_GROUP,
    ADMIN_USER,
    SERVER_HOSTS,
    Authority,
    KeyPair,
    kubeconfig,
)
from kubesandbox.authentication.tokens import TokenSigner, legacy_claims
from kubesandbox.authorization.access import MASTERS, Authorizer, EverythingAllowed
from kubesandbox.authorization.rbac import RbacAuthorizer
from kubesandbox.bootstrap import first_objects, server_objects
from kubesandbox.controllers.clock import SystemClock
from kubesandbox.controllers.controllerset import ControllerSet
from kubesandbox.controllers.registry import ControllerSettings
from kubesandbox.http.dates import machine_time
from kubesandbox.http.server import HttpServer
from kubesandbox.local import LocalClient
from kubesandbox.objects.allocation import Allocator
from kubesandbox.objects.managers import Managers
from kubesandbox.objects.metadata import generated_name, metadata_of
from kubesandbox.privatefiles import make_private_folder, read_private, write_private
from kubesandbox.reviews import Reviews
from kubesandbox.schema.schemas import ObjectSchemas
from kubesandbox.storage.journal import SqliteJournal
from kubesandbox.storage.memoryrelease import MemoryRelease, trim_heap
from kubesandbox.storage.store import Store
from kubesandbox.view import StoreView
from kubesandbox.writes import Write
from pyverno.engine.request import User
from pyverno.errors import UsageError
from pyverno.kube.gvk import GVK, parse_api_version
from pyverno.kube.json import JSONObject, encode_indent, equal
from pyverno.kube.patch.mergepatch import apply_merge_patch
from pyverno.kube.status import StatusError
from pyverno.kube.yaml.documents import expand_lists, load_documents

__all__ = ["Sandbox", "Settings"]

T = TypeVar("T")

DEFAULT_VERSION = "1.35"
_START_SECONDS = 60.0
_OBJECTS = "objects.sqlite"
_ADMIN = User(ADMIN_USER, groups=(MASTERS,))
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a sandbox; by default a cluster in memory, on a free port of this machine.

    `load` names YAML files whose objects are created at the start, `namespaces` further namespaces. `services` maps the
    services of webhooks to real addresses (`("ns", "name")` → host and port). `data_dir` keeps objects and keys between
    starts. `controllers=False` starts the API server alone, `kubelet=False` leaves pods pending. With
    `authorization=False` every authenticated user may do everything. `clock` is the time of the cluster: timestamps of
    objects, tokens and the Date headers of responses follow it; certificates follow the machine, as their readers do.
    """

    kube_version: str = DEFAULT_VERSION
    address: str = "127.0.0.1"
    port: int = 0
    data_dir: Path | None = None
    load: tuple[Path, ...] = ()
    namespaces: tuple[str, ...] = ()
    services: Mapping[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    controllers: bool = True
    kubelet: bool = True
    authorization: bool = True
    static_tokens: tuple[StaticToken, ...] = ()
    log_request: Callable[[str], None] | None = None
    clock: Callable[[], datetime] = machine_time

    @property
    def is_local(self) -> bool:
        """Return whether only this machine can reach the sandbox."""
        return self.address in _LOOPBACK


class Sandbox:
    """A Kubernetes API server with its controllers, over HTTPS, in a thread of its own or in the running event loop.

        with Sandbox(kube_version="1.33") as sandbox:
            subprocess.run(["kubectl", "get", "pods"], env={**os.environ, "KUBECONFIG": sandbox.kubeconfig}, check=True)

    `kubeconfig` is the path of an administrator's kubeconfig, `url` the address of the server and `certificate` the PEM
    certificate of its authority. `with` runs the sandbox in a thread, `async with` in the running event loop.
    """

    def __init__(self, settings: Settings | None = None, /, **changes: object) -> None:
        """Take settings, or single ones by name (`Sandbox(kube_version="1.33")`); nothing starts yet."""
        if settings is not None and changes:
            raise UsageError("a sandbox takes settings or single values, not both")
        self.settings = Settings(**changes) if settings is None else settings  # type: ignore[arg-type]  # checked there
        self.url = ""
        self.kubeconfig = ""
        self.certificate = b""
        self.server: ApiServer
        self._audit = AuditLog()
        self._chain: Admission | None = None
        self._http: HttpServer | None = None
        self._controllers: ControllerSet | None = None
        self._journal: SqliteJournal | None = None
        self._memory = MemoryRelease(self._give_memory_back)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    # ── in this event loop ───────────────────────────────────────────────────────────────────────────────────────────

    async def start(self) -> None:
        """Start everything; on return the server answers and its first objects exist."""
        settings = self.settings
        folder = self._data_folder()
        if settings.data_dir is not None:
            self._journal = SqliteJournal(folder / _OBJECTS)
        keys = _Keys.read_or_make(folder, machine_time())
        store = _store(self._journal, self._memory)
        schemas = ObjectSchemas(
            settings.kube_version,
            allocator=Allocator(lambda: (state.body for state in store.all("services"))),
        )
        authorizer: Authorizer = RbacAuthorizer(store) if settings.authorization else EverythingAllowed()
        self.server = ApiServer(
            kube_version=settings.kube_version,
            store=store,
            schemas=schemas,
            admission=self._admission(authorizer),
            managers=lambda server: Managers(schemas.definitions, clock=self.now, definition=server.definition_of),
            clock=self.now,
            new_uid=_new_uid,
            choose=secrets.choice,
        )
        authenticator = Authenticator(
            store,
            keys.signer,
            clock=self.now,
            static_tokens=settings.static_tokens,
            allows_anonymous=settings.is_local and settings.authorization,
        )
        self._http = HttpServer(
            self.server,
            authenticator=authenticator,
            authorizer=authorizer,
            reviews=Reviews(
                objects=store,
                authenticator=authenticator,
                authorizer=authorizer,
                signer=keys.signer,
                clock=self.now,
                make_id=_new_uid,
            ),
            documents={
                "/openid/v1/jwks": keys.signer.key_set,
                "/.well-known/openid-configuration": lambda: keys.signer.discovery(f"{self.url}/openid/v1/jwks"),
            },
            log_request=settings.log_request,
            audit=self._audit,
            clock=self.now,
        )
        self.certificate = keys.authority.certificate
        try:
            port = await self._http.start(
                settings.address, settings.port, keys.server_context(machine_time(), settings.address)
            )
        except OSError as error:
            place = f"{settings.address}:{settings.port}"
            raise UsageError(f"cannot listen on {place}: {(error.strerror or str(error)).lower()}") from None
        self._write_kubeconfig(folder, keys, port)
        await self._create_first(port)
        if settings.controllers:
            context = ControllerSettings(
                kube_version=settings.kube_version,
                certificate=keys.authority.certificate.decode(),
                sign_token=keys.sign_secret_token,
                sign_request=lambda request, lifetime, usages: keys.authority.sign(
                    request, now=machine_time(), lifetime=lifetime, usages=usages
                ),
            )
            self._controllers = ControllerSet(context, clock=SystemClock(self.now), kubelet=settings.kubelet)
            await self._controllers.start(self.server)
        await self.load(self.settings.load)

    async def stop(self) -> None:
        """Stop everything; with `data_dir`, all acknowledged writes are on disk."""
        if self._controllers is not None:
            await self._controllers.stop()
        if self._http is not None:
            await self._http.stop()
        if self._chain is not None:
            await self._chain.close()
        self._memory.close()
        if self._journal is not None:
            self._journal.close()
        if self._folder is not None:
            self._folder.cleanup()

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    # ── in a thread ──────────────────────────────────────────────────────────────────────────────────────────────────

    def __enter__(self) -> Self:
        started: list[BaseException | None] = []
        ready = threading.Event()

        async def run() -> None:
            self._loop = asyncio.get_running_loop()
            self._stopping = asyncio.Event()
            try:
                await self.start()
                started.append(None)
            except BaseException as error:  # raised again in the thread that waits
                started.append(error)
            ready.set()
            if started == [None]:
                await self._stopping.wait()
            await self.stop()

        self._thread = threading.Thread(target=lambda: asyncio.run(run()), name="sandbox", daemon=True)
        self._thread.start()
        if not ready.wait(_START_SECONDS):
            raise UsageError("the sandbox did not start in time")
        if started[0] is not None:
            self._thread.join()
            raise started[0]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()

    # ── parts ────────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def audit(self) -> tuple[AuditRecord, ...]:
        """The newest requests with audit annotations of policies and webhooks, the oldest first."""
        return self._audit.records

    def now(self) -> datetime:
        """Return the time of the cluster."""
        return self.settings.clock()

    def client(self, user: User | None = None) -> LocalClient:
        """Return a client without HTTP, of an administrator by default.

        Its coroutines belong to the sandbox's event loop: await them under `async with`, pass them to `run` otherwise.
        """
        return LocalClient(self.server, user or User("system:admin", groups=(MASTERS,)))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the sandbox's thread and return its result; for sandboxes started by `with`.

        sandbox.run(sandbox.client().create("configmaps", {"metadata": {"name": "a", "namespace": "default"}}))
        """
        if self._loop is None:
            work.close()
            raise UsageError("the sandbox does not run in a thread of its own")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _give_memory_back(self) -> None:
        self.server.store.drop_bodies()
        trim_heap()

    def _admission(self, authorizer: Authorizer) -> Callable[[StoreView], Admission]:
        settings = self.settings

        def make(view: StoreView) -> Admission:
            self._chain = Admission(
                view,
                authorizer=authorizer,
                make_id=_new_uid,
                make_suffix=lambda: generated_name("", secrets.choice),
                kube_version=settings.kube_version,
                services=settings.services,
                waits_for_accounts=settings.controllers,
            )
            return self._chain

        return make

    def _data_folder(self) -> Path:
        folder = self.settings.data_dir
        if folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="pyverno-sandbox-")
            return Path(self._folder.name)
        make_private_folder(folder, known=_OBJECTS)
        return folder

    @property
    def _host(self) -> str:
        """The address at which this machine reaches the sandbox."""
        anywhere = ("0.0.0.0", "::", *_LOOPBACK)  # noqa: S104
        return "127.0.0.1" if self.settings.address in anywhere else self.settings.address

    def _write_kubeconfig(self, folder: Path, keys: _Keys, port: int) -> None:
        self.url = f"https://{self._host}:{port}"
        client = keys.authority.issue(ADMIN_USER, now=machine_time(), organizations=(ADMIN_GROUP,))
        document = kubeconfig(self.url, keys.authority.certificate, client=client)
        path = folder / "kubeconfig"
        write_private(path, encode_indent(document).encode())
        self.kubeconfig = str(path)

    async def _create_first(self, port: int) -> None:
        client = self.client(User("system:apiserver", groups=(MASTERS,)))
        for resource, body in first_objects(self.settings.namespaces):
            metadata = metadata_of(body)
            if client.get(resource, metadata["name"], metadata.get("namespace", "")) is None:
                await client.create(resource, body)
        for resource, body in server_objects(self._host, port):
            metadata = metadata_of(body)
            present = client.get(resource, metadata["name"], metadata["namespace"])
            if present is None:
                await client.create(resource, body)
            elif not equal(apply_merge_patch(present, body), present):
                # as Kubernetes does: rewritten when they differ; a webhook that does not answer must not stop the start
                try:
                    await client.patch(resource, metadata["name"], metadata["namespace"], body)
                except StatusError as error:
                    place = f"{resource} {metadata['namespace']}/{metadata['name']}"
                    _log.warning("%s could not be updated with the address of the server: %s", place, error.message)

    async def load(self, paths: Iterable[Path]) -> None:
        """Create the objects of these files in order, skipping those that exist; raises UsageError."""
        for path in paths:
            try:
                documents = load_documents(path.read_bytes(), file=str(path))
            except OSError as error:
                raise UsageError(f"`{path}` cannot be read: {(error.strerror or str(error)).lower()}") from None
            for document in expand_lists(documents):
                await self._create_one(document.value, str(document.location()))

    async def _create_one(self, body: JSONObject, place: str) -> None:
        kind = body.get("kind") if isinstance(body, dict) else None
        group, version = parse_api_version(str(body.get("apiVersion"))) if kind else ("", "")
        found = self.server.table.by_kind(GVK(group, version, str(kind)))
        if kind is None:
            raise UsageError(f"{place}: this is no Kubernetes object")
        if found is None:
            raise UsageError(f"{place}: no kind `{kind}` is served in `{body.get('apiVersion')}`")
        namespace = (metadata_of(body).get("namespace") or "default") if found.namespaced else ""
        try:
            await self.server.create(Write(found, namespace, "", _ADMIN, manager="pyverno-sandbox"), body)
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise UsageError(f"{place}: {error.message}") from None


def _new_uid() -> str:
    return str(uuid.uuid4())


def _store(journal: SqliteJournal | None, memory: MemoryRelease) -> Store:
    if journal is None:
        return Store(on_deleted=memory.note)
    return Store(journal.states(), revision=journal.revision, journal=journal, on_deleted=memory.note)


@dataclass(frozen=True, slots=True)
class _Keys:
    """The certificate authority and the key of ServiceAccount tokens."""

    authority: Authority
    signer: TokenSigner
    folder: Path

    @classmethod
    def read_or_make(cls, folder: Path, now: datetime) -> _Keys:
        paths = [folder / name for name in ("ca.crt", "ca.key", "sa.key")]
        if all(path.exists() for path in paths):
            certificate, key, signing = map(read_private, paths)
            return cls(Authority(KeyPair(certificate, key)), TokenSigner(signing), folder)
        authority, signer = Authority.make("pyverno-sandbox", now=now), TokenSigner.make()
        contents = (authority.pair.certificate, authority.pair.key, signer.pem)
        for path, content in zip(paths, contents, strict=True):
            write_private(path, content)
        return cls(authority, signer, folder)

    def server_context(self, now: datetime, address: str) -> ssl.SSLContext:
        pair = self.authority.issue("kube-apiserver", now=now, hosts=dict.fromkeys((*SERVER_HOSTS, address)))
        path = self.folder / "server.pem"
        write_private(path, pair.certificate + pair.key)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=self.authority.certificate.decode())
        context.load_cert_chain(path)
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def sign_secret_token(self, account: JSONObject, secret: str) -> str:
        return self.signer.sign(legacy_claims(account, secret))
