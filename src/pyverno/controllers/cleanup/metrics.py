"""The metrics of the cleanup controller, with Kyverno's names and labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyverno.engine.result import ResourceRef
from pyverno.engine.rule import PolicyInfo
from pyverno.kube.kinds import KindInfo
from pyverno.policy.kinds import find_kind
from pyverno.telemetry.catalog import CLEANUP_WORDS, METRICS
from pyverno.telemetry.instruments import Instruments

__all__ = ["CleanupMetrics"]


class CleanupMetrics:
    """Counts deletions and failures: of cleanup policies, of deleting policies, and of times to live."""

    def __init__(self, instruments: Instruments, watched: Callable[[], Iterable[KindInfo]] = tuple) -> None:
        """Take what makes instruments, and what lists the kinds that are watched for times to live."""
        self._deleted = {
            word: instruments.counter(METRICS[f"kyverno_{word}_controller_deletedobjects"]) for word in CLEANUP_WORDS
        }
        self._errors = {
            word: instruments.counter(METRICS[f"kyverno_{word}_controller_errors"]) for word in CLEANUP_WORDS
        }
        self.watched = watched
        instruments.gauge(
            METRICS["kyverno_ttl_controller_info"],
            lambda: (((info.group, info.version, info.plural), 1.0) for info in self.watched()),
        )

    def count(self, policy: PolicyInfo, info: KindInfo, target: ResourceRef, propagation: str, *, failed: bool) -> None:
        """Count an object that a policy deleted, or failed to delete."""
        row = find_kind(policy.api_version.partition("/")[0], policy.kind)
        is_cel = row is not None and row.group == "policies.kyverno.io"
        what = info.plural if is_cel else target.kind
        labels = (policy.kind, policy.namespace, policy.name, what, target.namespace, propagation)
        self._of("deleting" if is_cel else "cleanup", failed=failed, labels=labels)

    def count_ttl(self, info: KindInfo, namespace: str, *, failed: bool) -> None:
        """Count an object whose time to live was over."""
        self._of("ttl", failed=failed, labels=(namespace, info.group, info.version, info.plural))

    def _of(self, word: str, *, failed: bool, labels: tuple[str, ...]) -> None:
        (self._errors if failed else self._deleted)[word].add(labels)
