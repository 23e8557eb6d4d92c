"""Counts of notices, for `/metrics` and the page of targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from pyverno.telemetry.instruments import Reading

__all__ = ["NotificationCounts"]

_LABELS: Final = ("target",)


class NotificationCounts:
    """Notices by target: sent, dropped, and deliveries that failed; `problems` holds the last error of each target."""

    def __init__(self) -> None:
        """Begin at zero."""
        self.sent: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self.problems: dict[str, str] = {}

    def drop(self, target: str, count: int) -> None:
        """Count notices that are given up."""
        self.dropped[target] += count

    def readings(self, queued: Mapping[str, int]) -> Iterable[Reading]:
        """Return the metrics; `queued` are the notices that wait."""
        return (
            _make_reading("pyverno_notifications_sent_total", "Notices that a target took.", self.sent),
            _make_reading(
                "pyverno_notifications_failed_total", "Deliveries that failed; most are repeated.", self.failed
            ),
            _make_reading("pyverno_notifications_dropped_total", "Notices that were given up.", self.dropped),
            Reading(
                "pyverno_notifications_queued", "Notices that wait for delivery.", "gauge", _LABELS, _series(queued)
            ),
        )


def _make_reading(name: str, text: str, counts: Mapping[str, int]) -> Reading:
    return Reading(name, text, "counter", _LABELS, _series(counts))


def _series(counts: Mapping[str, int]) -> dict[tuple[str, ...], float]:
    return {(target,): float(count) for target, count in counts.items()}
