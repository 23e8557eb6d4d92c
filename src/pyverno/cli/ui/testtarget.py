"""`pyverno ui test-target NAME`: sends a sample notice to one target, past the queue and its filters."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import AsyncExitStack

from pyverno.cli.terminal import STDOUT
from pyverno.cli.ui.notifications import egress_rules, read_settings
from pyverno.cli.ui.run import UiOptions
from pyverno.cluster.client import Client
from pyverno.engine.result import ResourceRef
from pyverno.errors import PyvernoError, UsageError
from pyverno.report.collected import Collected
from pyverno.report.finding import Finding
from pyverno.ui.notifications.delivery import Delivery
from pyverno.ui.notifications.notice import OPENED, Notice, notice_of
from pyverno.ui.notifications.options import Secrets
from pyverno.ui.notifications.settings import NotificationSettings, TargetSettings
from pyverno.ui.notifications.targets.opening import open_target
from pyverno.ui.notifications.transport import Transport
from pyverno.ui.store.writer import Change

# trust rows: environment

__all__ = ["find_target", "test_target"]


def test_target(options: UiOptions) -> int:
    """Send the sample and print the outcome; return 0 when the target accepted it, 1 otherwise."""
    if not options.notifications or len(options.files) != 2:
        raise UsageError("test-target needs the name of a target and --notifications")
    settings = read_settings(options.notifications)
    target = find_target(settings, options.files[1])
    try:
        asyncio.run(_send(options, settings, target))
    except PyvernoError as error:
        STDOUT.write(f"wrong: {error.message}\n")
        return 1
    STDOUT.write(f"good: `{target.name}` ({target.kind}) took a sample\n")
    return 0


def find_target(settings: NotificationSettings, name: str) -> TargetSettings:
    """Return the target with a name; raises UsageError with the existing names."""
    target = next((each for each in settings.targets if each.name == name), None)
    if target is None:
        raise UsageError(f"there is no target `{name}`: expected {', '.join(each.name for each in settings.targets)}")
    return target


async def _send(options: UiOptions, settings: NotificationSettings, target: TargetSettings) -> None:
    async with AsyncExitStack() as stack:
        transport = Transport(egress_rules(settings))
        stack.push_async_callback(transport.close)
        client: Client | None = None
        if any(layer.secret for layer in target.layers):
            from pyverno.cluster.access import find_access

            context = options.contexts[0] if options.contexts else ""
            client = await stack.enter_async_context(Client(find_access(options.kubeconfig, context, os.environ)))
        opened = await open_target(target.kind, transport, await Secrets(client, settings.namespace).options(target))
        sample = _sample(options.cluster_name)
        await opened.send(Delivery(sample.id, [sample], sample.at, is_digest=bool(target.digest), custom=target.custom))


def _sample(cluster: str) -> Notice:
    finding = Finding(
        policy="pyverno-test-target",
        rule="sample",
        resource=ResourceRef("v1", "Pod", "default", "sample"),
        status="fail",
        message="this is a test of notifications: nothing is wrong",
        severity="info",
        category="Test",
    )
    return notice_of(Change(Collected(finding, "pyverno"), cluster, "", "fail", int(time.time())), OPENED)
