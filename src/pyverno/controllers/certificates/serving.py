"""The certificates that a replica serves: read from two Secrets, watched, and renewed by the leader.

A new authority is published to the API server before any replica that is ready serves a certificate of it, and the old
one stays trusted until all replicas have had time to switch.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final, Protocol

from pyverno.cluster.client import Client
from pyverno.cluster.informer import Informer
from pyverno.controllers.certificates.secrets import (
    SECRETS,
    CertificateController,
    CertificateSettings,
    KeyPair,
    is_good_leaf,
    is_trusted,
    others_of,
    read_pair,
)
from pyverno.controllers.runtime.reconcile import Again, Controller, LoopSettings
from pyverno.controllers.runtime.recurring import RecurringFault
from pyverno.controllers.runtime.workqueue import Backoff
from pyverno.errors import HostError
from pyverno.kube.status import StatusError
from pyverno.telemetry.catalog import METRICS
from pyverno.telemetry.metrics import Metrics
from pyverno.webhook.tls import Clients, ServerTls

__all__ = ["Callers", "ServingCertificates"]

_LOOK_SECONDS: Final = 12 * 3600.0
_BACKOFF: Final = Backoff(first=1.0, longest=30.0)
_KEY: Final = "certificates"
_OVERLAP_SECONDS: Final = 60.0
_CONTROLLER: Final = "certmanager-controller"
_PUBLISH_SECONDS: Final = 1.0
"""How long an API server may take to use a new bundle."""
_AGAIN_SECONDS: Final = 1.0
"""Delay before a replica looks again whether the API server trusts a certificate."""
_ADOPT_SECONDS: Final = 60.0
"""How often a replica compares what it serves with the Secrets although no change of them was seen."""

log = logging.getLogger("pyverno.certificates")


class Callers(Protocol):
    """The clients that are to trust the certificates: for the webhook, the API server by its configurations.

    Both raise StatusError and HostError.
    """

    async def publish(self) -> None:
        """Have them trust `ServingCertificates.bundle`; only the leader calls this."""
        ...

    async def published(self) -> Sequence[bytes]:
        """Return the bundles (PEM) that they trust; none if there is no caller yet."""
        ...


class ServingCertificates:
    """The current authority and leaf; `tls` is the server's TLS configuration once `start` has returned."""

    def __init__(
        self,
        client: Client,
        settings: CertificateSettings,
        callers: Callers,
        metrics: Metrics | None = None,
        clients: Clients | None = None,
    ) -> None:
        """Take the settings of the Secrets, the callers, metrics, and the admitted clients; `start` reads first."""
        self._clients = clients or Clients()
        self._metrics = metrics or Metrics()
        self._metrics.instruments.gauge(METRICS["kyverno_certificate_end_timestamp_seconds"], self._ends)
        self._settings = settings
        self._controller = CertificateController(client, settings)
        self._callers = callers
        self._authority: KeyPair | None = None
        self._leaf: KeyPair | None = None
        self._is_trusted = False
        self._is_published = False
        self._previous = b""
        self._previous_until = 0.0
        self._changed = asyncio.Event()
        self.controller: Controller[str] = Controller(
            _CONTROLLER,
            self._renew,
            keys=lambda: (_KEY,),
            prepare=self._begin_term,
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
        """Return why this replica has no certificate that its callers accept, or the empty text."""
        if self._leaf is None or _end_of(self._leaf) <= datetime.now(UTC):
            return "there is no valid certificate"
        return "" if self._is_trusted else "the API server does not trust its certificate yet"

    async def start(self) -> None:
        """Read or create the certificates; raises HostError when that fails.

        No leader may have published an authority that is created here: until one has, this replica is not ready.
        """
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

    async def _begin_term(self) -> None:
        self._is_published = False

    async def _renew(self, _key: str) -> Again:
        """Renew certificates that are missing or expire soon, and return when to check again."""
        _, leaf = await self._controller.reconcile(publish=self._trust)
        self._serve(leaf)
        self._is_trusted = True
        if self._previous and time.monotonic() >= self._previous_until:
            self._previous, self._is_published = b"", False
            await self._callers.publish()
            self._is_published = True
        return Again(self._previous_until - time.monotonic() if self._previous else _LOOK_SECONDS)

    async def _trust(self, authority: KeyPair) -> None:
        """Have the callers trust an authority before its leaf is made, and for a while what they trusted before.

        The first call of a term compares in any case: an earlier leader may have ended before it had published.
        """
        known = self._authority
        if known is None or known.certificates != authority.certificates:
            self._authority, self._is_published = authority, False
        if self._is_published:
            return
        bundles = await self._callers.published()
        others = others_of(authority, bundles, datetime.now(UTC))
        if others:
            self._previous, self._previous_until = others, time.monotonic() + _OVERLAP_SECONDS
        if any(bundle != self.bundle for bundle in bundles):
            await self._callers.publish()
            log.info("a certificate authority is published", extra={"fields": {"until": str(_end_of(authority))}})
            await asyncio.sleep(_PUBLISH_SECONDS)
        self._is_published = True

    def _wake(self) -> None:
        self._changed.set()
        self.controller.add(_KEY)

    async def _adopt_for_ever(self) -> None:
        fault = RecurringFault(
            log, "what the API server trusts cannot be read", "what the API server trusts can be read again"
        )
        self._changed.set()
        is_done = False
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_ADOPT_SECONDS if is_done else _AGAIN_SECONDS):
                    await self._changed.wait()
            self._changed.clear()
            try:
                is_done = await self._adopt()
                fault.succeeded()
            except (HostError, StatusError) as error:
                is_done = False
                fault.failed(error.message)
            except Exception:  # the next certificates must be adopted all the same
                is_done = False
                log.exception("certificates could not be adopted")

    async def _adopt(self) -> bool:
        """Serve what another replica has stored once callers trust it; return whether nothing is left to do.

        The leader serves what it renews: here it only learns whether callers trust that.
        """
        before = self._state()
        wanted = self._served() if self.controller.is_running else self._stored() or self._served()
        if wanted is None or (self._is_trusted and wanted == self._served()):
            return wanted is not None
        authority, leaf = wanted
        bundles = await self._callers.published()
        if not all(is_trusted(leaf, bundle, datetime.now(UTC)) for bundle in bundles):
            return False
        if authority != self._authority:
            await asyncio.sleep(_PUBLISH_SECONDS)  # not all API servers may use the bundle yet
        if self._state() != before:
            return False  # the lease was won or lost meanwhile, or the leader renewed
        self._authority = authority
        self._serve(leaf)
        self._is_trusted = True
        return True

    def _state(self) -> tuple[tuple[KeyPair, KeyPair] | None, bool]:
        return self._served(), self.controller.is_running

    def _served(self) -> tuple[KeyPair, KeyPair] | None:
        return None if self._authority is None or self._leaf is None else (self._authority, self._leaf)

    def _stored(self) -> tuple[KeyPair, KeyPair] | None:
        """Return authority and leaf of the Secrets; None while one of them is still to be written."""
        authority, leaf = (
            self._read(informer, name, is_authority=name == self._settings.ca_name) for informer, name in self._secrets
        )
        if authority is None or leaf is None or not is_good_leaf(leaf, authority, self._settings, datetime.now(UTC)):
            return None
        return authority, leaf

    def _read(self, informer: Informer, name: str, *, is_authority: bool) -> KeyPair | None:
        secret = informer.get(name, self._settings.namespace)
        return None if secret is None else read_pair(secret, is_authority=is_authority)

    def _ends(self) -> Iterator[tuple[tuple[str, ...], float]]:
        """Yield for each Secret the expiry of its newest certificate, in seconds since 1970."""
        for (_, name), pair in zip(self._secrets, (self._authority, self._leaf), strict=True):
            if pair is not None:
                yield (name,), _end_of(pair).timestamp()

    def _serve(self, leaf: KeyPair) -> None:
        if self.tls is not None and leaf != self._leaf:
            self.tls.swap(leaf.certificates, leaf.key)
            self._leaf = leaf
            log.info("another certificate is served", extra={"fields": {"until": str(_end_of(leaf))}})


def _end_of(pair: KeyPair) -> datetime:
    return pair.parsed()[0].not_valid_after_utc
