"""The certificates that a replica serves: read from two Secrets, watched, and renewed by the leader.

A new authority is published to the API server before any replica serves a certificate of it, and the old one stays
trusted until all replicas have had time to switch.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from typing import Final

from pyverno.cluster.client import Client
from pyverno.cluster.informer import Informer
from pyverno.controllers.certificates.secrets import (
    SECRETS,
    CertificateController,
    CertificateSettings,
    KeyPair,
    is_good_leaf,
    read_pair,
)
from pyverno.controllers.runtime.reconcile import Again, Controller, LoopSettings
from pyverno.controllers.runtime.workqueue import Backoff
from pyverno.telemetry.catalog import METRICS
from pyverno.telemetry.metrics import Metrics
from pyverno.webhook.tls import Clients, ServerTls

__all__ = ["ServingCertificates"]

_LOOK_SECONDS: Final = 12 * 3600.0
_BACKOFF: Final = Backoff(first=1.0, longest=30.0)
_KEY: Final = "certificates"
_OVERLAP_SECONDS: Final = 60.0
_CONTROLLER: Final = "certmanager-controller"
_PUBLISH_SECONDS: Final = 1.0
"""How long an API server may take to use a new bundle."""

log = logging.getLogger("pyverno.certificates")


class ServingCertificates:
    """The current authority and leaf; `tls` is the server's TLS configuration once `start` has returned.

    `publish` makes the API server trust `bundle`; only the leader calls it.
    """

    def __init__(
        self,
        client: Client,
        settings: CertificateSettings,
        publish: Callable[[], Awaitable[None]],
        metrics: Metrics | None = None,
        clients: Clients | None = None,
    ) -> None:
        """Take the settings of the Secrets, metrics, and the admitted clients; nothing is read before `start`."""
        self._clients = clients or Clients()
        self._metrics = metrics or Metrics()
        self._metrics.instruments.gauge(METRICS["kyverno_certificate_end_timestamp_seconds"], self._ends)
        self._settings = settings
        self._controller = CertificateController(client, settings)
        self._publish = publish
        self._authority: KeyPair | None = None
        self._leaf: KeyPair | None = None
        self._previous = b""
        self._previous_until = 0.0
        self._changed = asyncio.Event()
        self.controller: Controller[str] = Controller(
            _CONTROLLER,
            self._renew,
            keys=lambda: (_KEY,),
            settings=LoopSettings(backoff=_BACKOFF),
            metrics=self._metrics,
        )
        """Renews certificates while it runs, when a Secret changes and every few hours; in one replica only."""
        self._secrets = [
            (Informer(client, SECRETS, namespace=settings.namespace, fields=f"metadata.name={name}"), name)
            for name in (settings.ca_name, settings.tls_name)
        ]
        self.tls: ServerTls | None = None

    @property
    def bundle(self) -> bytes:
        """The certificates (PEM) that the API server is to trust."""
        current = b"" if self._authority is None else self._authority.certificates
        return current + (self._previous if time.monotonic() < self._previous_until else b"")

    def problem(self) -> str:
        """Return why this replica has no valid certificate, or the empty text."""
        if self._leaf is None or self._leaf.parsed()[0].not_valid_after_utc <= datetime.now(UTC):
            return "there is no valid certificate"
        return ""

    async def start(self) -> None:
        """Read or create the certificates; raises HostError when that fails."""
        authority, leaf = await self._controller.reconcile()
        self._authority = authority
        self._leaf = leaf
        self.tls = ServerTls(leaf.certificates, leaf.key, clients=self._clients)

    async def follow(self) -> None:
        """Serve the certificates of the Secrets; a change applies from the next handshake on."""
        async with asyncio.TaskGroup() as group:
            for informer, _ in self._secrets:
                informer.listen(lambda _notice, _body: self._wake())
                group.create_task(informer.run())
            group.create_task(self._adopt_for_ever())

    async def _renew(self, _key: str) -> Again:
        """Renew certificates that are missing or expire soon, and return when to check again."""
        _, leaf = await self._controller.reconcile(publish=self._trust)
        self._serve(leaf)
        if self._previous and time.monotonic() >= self._previous_until:
            self._previous = b""
            await self._publish()
        return Again(self._previous_until - time.monotonic() if self._previous else _LOOK_SECONDS)

    async def _trust(self, authority: KeyPair) -> None:
        """Let the API server trust an authority, and for a while the one before it, before its leaf is made."""
        known = self._authority
        if known is not None and known.certificates != authority.certificates:
            self._previous, self._previous_until = known.certificates, time.monotonic() + _OVERLAP_SECONDS
            self._authority = authority
            await self._publish()
            await asyncio.sleep(_PUBLISH_SECONDS)

    def _wake(self) -> None:
        self._changed.set()
        self.controller.add(_KEY)

    async def _adopt_for_ever(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self.controller.is_running:  # it serves what it renews
                continue
            try:
                await self._adopt()
            except Exception:  # the next certificates must be adopted all the same
                log.exception("certificates could not be adopted")

    async def _adopt(self) -> None:
        """Serve the certificates that another replica has stored."""
        authority, leaf = (
            self._read(informer, name, is_authority=name == self._settings.ca_name) for informer, name in self._secrets
        )
        if authority is None or leaf is None:
            return
        if not is_good_leaf(leaf, authority, self._settings, datetime.now(UTC)):
            return  # one of them is still to be written
        if authority != self._authority:
            await asyncio.sleep(_PUBLISH_SECONDS)  # both were replaced: the leader has to publish the bundle first
        self._authority = authority
        self._serve(leaf)

    def _read(self, informer: Informer, name: str, *, is_authority: bool) -> KeyPair | None:
        secret = informer.get(name, self._settings.namespace)
        return None if secret is None else read_pair(secret, is_authority=is_authority)

    def _ends(self) -> Iterator[tuple[tuple[str, ...], float]]:
        """Yield for each Secret the expiry of its newest certificate, in seconds since 1970."""
        for (_, name), pair in zip(self._secrets, (self._authority, self._leaf), strict=True):
            if pair is not None:
                yield (name,), pair.parsed()[0].not_valid_after_utc.timestamp()

    def _serve(self, leaf: KeyPair) -> None:
        if self.tls is not None and leaf != self._leaf:
            self.tls.swap(leaf.certificates, leaf.key)
            self._leaf = leaf
