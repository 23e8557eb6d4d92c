"""Notifications of `pyverno ui`: reads the files, opens the queue, and makes the senders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from pyverno.cli.terminal import STDERR
from pyverno.cluster.egressrules import DEFAULT_BLOCKLIST, EgressRules
from pyverno.kube.yaml.documents import load_documents
from pyverno.offline.files import read_file
from pyverno.ui.notifications.counts import NotificationCounts
from pyverno.ui.notifications.namespaces import NamespaceLabels
from pyverno.ui.notifications.options import Secrets
from pyverno.ui.notifications.outbox import NoticeRecorder, Outbox
from pyverno.ui.notifications.settings import NotificationSettings, read_notifications
from pyverno.ui.notifications.transport import Transport
from pyverno.ui.server.targets import TargetStatus
from pyverno.value import replace

if TYPE_CHECKING:
    from pyverno.cluster.client import Client
    from pyverno.telemetry.instruments import Reading
    from pyverno.ui.notifications.dispatcher import Dispatcher

__all__ = ["Notifications", "egress_rules", "open_notifications", "read_settings"]


def read_settings(files: Sequence[str]) -> NotificationSettings:
    """Return the settings of files; notes on stderr name parts without effect. Raises UsageError, DocumentError."""
    found = read_notifications(each for file in files for each in load_documents(read_file(Path(file)), file=file))
    for note in dict.fromkeys(found.notes):
        STDERR.write(f"note: {note}\n")
    return replace(found, notes=())


def egress_rules(settings: NotificationSettings) -> EgressRules:
    """Return the egress rules of targets: by default, neither this machine nor metadata services of clouds."""
    blocked = DEFAULT_BLOCKLIST if settings.blocklist is None else settings.blocklist
    return EgressRules.read(blocked, settings.allowlist)


class Notifications:
    """The queue of one server, with its writer and its dispatcher."""

    def __init__(self, settings: NotificationSettings, path: str, stack: AsyncExitStack) -> None:
        """Open the queue in the file of the store."""
        self._settings = settings
        self._counts = NotificationCounts()
        self._outbox = Outbox(path)
        stack.callback(self._outbox.close)
        self._transport = Transport(egress_rules(settings))
        stack.push_async_callback(self._transport.close)
        self._dispatcher: Dispatcher | None = None
        self.recorder = NoticeRecorder(settings.targets, self._counts.drop)

    def dispatcher(self, clients: Mapping[str, Client]) -> Dispatcher:
        """Return the dispatcher; Secrets are read from the first cluster."""
        from pyverno.ui.notifications.dispatcher import Dispatcher

        self._dispatcher = Dispatcher(
            self._settings.targets,
            self._outbox,
            transport=self._transport,
            secrets=Secrets(next(iter(clients.values()), None), self._settings.namespace),
            namespaces=NamespaceLabels(clients),
            counts=self._counts,
        )
        return self._dispatcher

    def targets(self) -> Sequence[TargetStatus]:
        """Return the targets as the server shows them."""
        return [TargetStatus(each, self._counts) for each in self._settings.targets]

    async def readings(self) -> Iterable[Reading]:
        """Return the metrics."""
        queued = await self._dispatcher.queued() if self._dispatcher else {}
        return self._counts.readings({each.name: queued.get(each.name, 0) for each in self._settings.targets})


def open_notifications(files: Sequence[str], path: str, stack: AsyncExitStack) -> Notifications | None:
    """Return the notifications of a server whose store is at `path`; None without files."""
    return Notifications(read_settings(files), path, stack) if files else None
