"""`pyverno ui send-report NAME`: mails the results of now to one target, for a schedule of your own."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack

from pyverno.cli.report.sources import Source, read_cluster, read_files
from pyverno.cli.terminal import STDERR, STDOUT
from pyverno.cli.ui.notifications import egress_rules, read_settings
from pyverno.cli.ui.run import UiOptions
from pyverno.cli.ui.testtarget import find_target
from pyverno.cluster.client import Client
from pyverno.errors import PyvernoError, UsageError
from pyverno.report.collected import STATUSES
from pyverno.report.html import html_page
from pyverno.report.overview import Overview, overview_of
from pyverno.ui.notifications.options import Secrets
from pyverno.ui.notifications.settings import NotificationSettings, TargetSettings
from pyverno.ui.notifications.targets.mail import open_mail
from pyverno.ui.notifications.transport import Transport

# trust rows: environment

__all__ = ["send_report"]


def send_report(options: UiOptions) -> int:
    """Mail the results that the target's filter admits; return 0 when the server accepted the message, 1 otherwise."""
    if not options.notifications or len(options.files) < 2:
        raise UsageError("send-report needs the name of a target and --notifications")
    settings = read_settings(options.notifications)
    target = find_target(settings, options.files[1])
    if target.kind != "email":
        raise UsageError(f"`{target.name}` is of type {target.kind}: reports are sent to targets of type email")
    if target.filter.namespace_labels is not None:
        raise UsageError(f"`{target.name}` chooses namespaces by labels, which a report cannot: use `where`")
    source = _read(options, options.files[2:])
    for problem in source.problems:
        STDERR.write(f"warning: {problem}\n")
    overview = overview_of(
        each for each in source.results if target.filter.admits(each, each.finding.status, options.cluster_name, {})
    )
    try:
        asyncio.run(_send(options, settings, target, overview, source.name))
    except PyvernoError as error:
        STDOUT.write(f"wrong: {error.message}\n")
        return 1
    STDOUT.write(f"good: `{target.name}` took a report of {len(overview.results)} results\n")
    return 0


def _read(options: UiOptions, files: Sequence[str]) -> Source:
    if files:
        return read_files(files)
    if len(options.contexts) > 1:
        raise UsageError("send-report reads one cluster: give one --context")
    return read_cluster(options.kubeconfig, options.contexts[0] if options.contexts else "", options.namespaces)


async def _send(
    options: UiOptions, settings: NotificationSettings, target: TargetSettings, overview: Overview, name: str
) -> None:
    async with AsyncExitStack() as stack:
        transport = Transport(egress_rules(settings))
        stack.push_async_callback(transport.close)
        client: Client | None = None
        if any(layer.secret for layer in target.layers):
            from pyverno.cluster.access import find_access

            context = options.contexts[0] if options.contexts else ""
            client = await stack.enter_async_context(Client(find_access(options.kubeconfig, context, os.environ)))
        mail = await open_mail(transport, await Secrets(client, settings.namespace).options(target))
        title = f"policy report of {options.cluster_name}: {_format_counts(overview.counts) or 'no problems'}"
        lines = [title, "", *(f"{each.label}: {_format_counts(each.counts)}" for each in overview.groups)]
        page = html_page(overview, made=f"From {name}.")
        await mail.send_page(title, "\n".join(lines), page, int(time.time()))


def _format_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{counts[each]} {each}" for each in STATUSES if counts.get(each))
