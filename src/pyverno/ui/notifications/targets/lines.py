"""Notices as rows of name and text, for targets that people read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pyverno.sinks.characters import visible
from pyverno.ui.notifications.delivery import Delivery
from pyverno.ui.notifications.notice import Notice

__all__ = ["list_fields", "one_line", "split_visible", "summarize"]

_SEVERITIES: Final = ("critical", "high", "medium", "low", "info", "")


def list_fields(notice: Notice, custom: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the fields of a notice that have a text."""
    status = f"{notice.before} → {notice.outcome}" if notice.before else notice.outcome
    fields = {
        "Status": status,
        "Severity": notice.severity,
        "Policy": notice.policy,
        "Rule": notice.rule,
        "Resource": f"{notice.api_version} {notice.resource}".strip(),
        "Category": notice.category,
        "Source": notice.source,
        "Cluster": notice.cluster,
        "Message": notice.message,
        **notice.properties,
        **custom,
    }
    yield from ((name, text) for name, text in fields.items() if text)


def summarize(notice: Notice) -> str:
    """Return a notice as one line of a list."""
    severity = f" [{notice.severity}]" if notice.severity else ""
    rule = f"/{notice.rule}" if notice.rule else ""
    return one_line(f"{notice.outcome}{severity} {notice.policy}{rule}: {notice.resource} — {notice.message}")


def split_visible(delivery: Delivery, most: int) -> tuple[Sequence[Notice], int]:
    """Return the notices to show, open ones and the most severe first, and how many are left out."""
    ordered = sorted(delivery.notices, key=lambda each: (each.is_resolved, _SEVERITIES.index(each.severity)))
    return ordered[:most], max(0, len(ordered) - most)


def one_line(text: str) -> str:
    """Return a text without line breaks, and with visible escapes of control characters.

    >>> one_line("a\\r\\nBcc: b\\x1b")
    'a Bcc: b\\\\x1b'
    """
    return " ".join(visible(text).split())
