"""Notification targets in this process: notices, settings from text, and deliveries to a stub."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyverno.cluster.egressrules import EgressRules
from pyverno.kube.yaml.documents import load_documents
from pyverno.ui.notifications.delivery import Delivery
from pyverno.ui.notifications.notice import OPENED, RESOLVED, Notice, notice_of
from pyverno.ui.notifications.options import Secrets
from pyverno.ui.notifications.settings import NotificationSettings, read_notifications
from pyverno.ui.notifications.targets.opening import open_target
from pyverno.ui.notifications.transport import Transport
from pyverno.ui.store.writer import Change
from tests.unit.ui.store.samples import result

__all__ = ["ANYWHERE", "HOSTILE", "change", "deliver", "notice", "settings"]

ANYWHERE = EgressRules.read(())
"""Egress rules that permit calls of stubs on this machine."""

HOSTILE = (
    " ".join(("<!channel>", "<script>alert(1)</script>", "*b*", "_i_", "[x](https://evil.example)", "@everyone"))
    + ' "q" \\ {{ .result.Rule }}\r\nBcc: a@b.example'
)
"""A message with the marks of every target."""


def change(before: str = "", after: str = "fail", *, at: int = 1000, **fields: str) -> Change:
    """Return a change of a result in cluster `c`."""
    return Change(result(status=after or before, **fields), "c", before, after, at)  # type: ignore[arg-type]


def notice(event: str = OPENED, **fields: str) -> Notice:
    """Return a notice of an opened or resolved result."""
    changed = change("fail", "", **fields) if event == RESOLVED else change("", "fail", **fields)
    return notice_of(changed, event)


def settings(text: str) -> NotificationSettings:
    """Return the settings in a file."""
    return read_notifications(load_documents(text, file="targets.yaml"))


async def deliver(
    text: str,
    notices: Sequence[Notice],
    *,
    rules: EgressRules = ANYWHERE,
    attempt: int = 1,
    custom: Mapping[str, str] | None = None,
) -> None:
    """Send a delivery to the only target of a file; raises DeliveryError, UsageError."""
    (target,) = settings(text).targets
    transport = Transport(rules)
    try:
        opened = await open_target(target.kind, transport, await Secrets(None).options(target))
        await opened.send(Delivery("d" * 32, notices, 1000, attempt, bool(target.digest), custom or target.custom))
    finally:
        await transport.close()
