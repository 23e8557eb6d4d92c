"""Opens targets: makes senders from settings, with the current secrets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from pyverno.ui.notifications.delivery import Target
from pyverno.ui.notifications.options import Options
from pyverno.ui.notifications.targets.alertmanager import open_alertmanager
from pyverno.ui.notifications.targets.aws import open_kinesis, open_security_hub
from pyverno.ui.notifications.targets.discord import open_discord
from pyverno.ui.notifications.targets.elasticsearch import open_elasticsearch
from pyverno.ui.notifications.targets.gcs import open_gcs
from pyverno.ui.notifications.targets.googlechat import open_google_chat
from pyverno.ui.notifications.targets.jira import open_jira
from pyverno.ui.notifications.targets.loki import open_loki
from pyverno.ui.notifications.targets.mail import open_mail
from pyverno.ui.notifications.targets.s3 import open_s3
from pyverno.ui.notifications.targets.slack import open_slack
from pyverno.ui.notifications.targets.splunk import open_splunk
from pyverno.ui.notifications.targets.teams import open_teams
from pyverno.ui.notifications.targets.telegram import open_telegram
from pyverno.ui.notifications.targets.webhook import open_webhook
from pyverno.ui.notifications.transport import Transport

__all__ = ["open_target"]

_OPENERS: Final[Mapping[str, Callable[[Transport, Options], Awaitable[Target]]]] = {
    "slack": open_slack,
    "teams": open_teams,
    "discord": open_discord,
    "webhook": open_webhook,
    "email": open_mail,
    "loki": open_loki,
    "elasticsearch": open_elasticsearch,
    "alertManager": open_alertmanager,
    "s3": open_s3,
    "jira": open_jira,
    "googleChat": open_google_chat,
    "telegram": open_telegram,
    "splunk": open_splunk,
    "gcs": open_gcs,
    "kinesis": open_kinesis,
    "securityHub": open_security_hub,
}


async def open_target(kind: str, transport: Transport, options: Options) -> Target:
    """Return a target of a kind of the catalogue; raises UsageError for options that it cannot use."""
    return await _OPENERS[kind](transport, options)
