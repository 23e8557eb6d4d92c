"""The one table of target kinds: their options, how much goes into one delivery, and how often."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyverno.value import dataclass

__all__ = ["KINDS", "Kind", "find_kind"]

_HTTP: Final = ("headers", "skipTLS", "certificate")
_TLS: Final = ("skipTLS", "certificate")
_AWS: Final = ("region", "endpoint", "accessKeyId", "secretAccessKey", "sessionToken")
_LOGIN: Final = ("username", "password")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of target; `addresses` are the options of which a target needs at least one.

    `most` notices are one delivery, `digest_most` those of a digest; `sends_resolved` is the default of `resolved`.
    """

    options: tuple[str, ...]
    addresses: tuple[str, ...]
    most: int
    digest_most: int
    per_minute: int
    sends_resolved: bool


def _chat(*more: str, per_minute: int) -> Kind:
    return Kind(("webhook", *_HTTP, *more), ("webhook",), 20, 200, per_minute, sends_resolved=True)


KINDS: Final[Mapping[str, Kind]] = {
    "slack": _chat("channel", per_minute=50),
    "teams": _chat(per_minute=50),
    "discord": _chat(per_minute=25),
    "webhook": Kind(("webhook", *_HTTP, *_LOGIN, "keepalive"), ("webhook",), 1, 500, 6000, sends_resolved=True),
    "email": Kind(
        ("host", "port", "from", "to", "encryption", "titlePrefix", "skipTLS", "certificate", *_LOGIN),
        ("host",),
        50,
        500,
        20,
        sends_resolved=True,
    ),
    "loki": Kind(("host", "path", *_HTTP, *_LOGIN), ("host",), 500, 500, 6000, sends_resolved=True),
    "elasticsearch": Kind(
        ("host", "index", "rotation", "apiKey", "typelessApi", *_HTTP, *_LOGIN),
        ("host",),
        500,
        500,
        6000,
        sends_resolved=True,
    ),
    "alertManager": Kind(("host", *_HTTP, *_LOGIN), ("host",), 500, 500, 6000, sends_resolved=True),
    "s3": Kind(
        (
            "bucket",
            "prefix",
            "region",
            "endpoint",
            "accessKeyId",
            "secretAccessKey",
            "sessionToken",
            "kmsKeyId",
            "serverSideEncryption",
            "bucketKeyEnabled",
            "pathStyle",
            "skipTLS",
            "certificate",
        ),
        ("bucket",),
        50,
        500,
        600,
        sends_resolved=True,
    ),
    "jira": Kind(
        (
            "host",
            "apiToken",
            "projectKey",
            "issueType",
            "labels",
            "components",
            "summaryTemplate",
            "apiVersion",
            *_HTTP,
            *_LOGIN,
        ),
        ("host",),
        1,
        1,
        60,
        sends_resolved=False,
    ),
    "googleChat": _chat(per_minute=50),
    "telegram": Kind(
        ("token", "chatId", "host", "webhook", *_HTTP), ("token", "chatId"), 20, 200, 20, sends_resolved=True
    ),
    "splunk": Kind(("host", "token", *_HTTP), ("host",), 500, 500, 6000, sends_resolved=True),
    "gcs": Kind(("bucket", "prefix", "endpoint", "credentials", *_TLS), ("bucket",), 50, 500, 600, sends_resolved=True),
    "kinesis": Kind(("streamName", *_AWS, *_TLS), ("streamName",), 500, 500, 6000, sends_resolved=True),
    "securityHub": Kind(
        ("accountId", "productName", "companyName", "delayInSeconds", "synchronize", *_AWS, *_TLS),
        ("accountId",),
        100,
        100,
        600,
        sends_resolved=True,
    ),
}


def find_kind(name: str) -> Kind | None:
    """Return the kind with a name, in Policy Reporter's spelling."""
    return KINDS.get(name)
