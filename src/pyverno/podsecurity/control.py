"""The shape of a control: what it restricts, which checks enforce it, and since which version.

A control documents itself in its fields, from which the reference pages are generated.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from pyverno.podsecurity.finding import Finding
from pyverno.podsecurity.pod import Pod
from pyverno.podsecurity.versions import Version
from pyverno.value import dataclass

__all__ = ["Check", "Control", "Judge", "Level", "Reach", "Variant", "container_fields"]

Judge = Callable[[Pod], Finding | None]
"""A check's judgement: None when the pod is allowed."""


class Level(Enum):
    """The level of the standards that a check belongs to."""

    BASELINE = "baseline"
    RESTRICTED = "restricted"


class Reach(Enum):
    """The objects with a control's fields, which decide whether an exclude names images."""

    POD = "pod"
    """Pod fields only: an exclude must not name images."""
    CONTAINER = "container"
    """Container fields only: an exclude must name images."""
    BOTH = "pod and container"
    """Either: an exclude with images concerns containers, one without concerns the pod."""


@dataclass(frozen=True, slots=True)
class Variant:
    """The requirements of a check since one version."""

    since: Version
    judge: Judge
    note: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """One check of Pod Security admission, with its variants from oldest to newest."""

    id: str
    level: Level
    variants: tuple[Variant, ...]

    def variant(self, version: Version) -> Variant:
        """Return the newest variant not newer than the version, or the oldest when all are newer."""
        # COMPAT: Kubernetes leaves a check out before its first version; Kyverno runs its oldest variant.
        chosen = self.variants[0]
        for candidate in self.variants[1:]:
            if candidate.since <= version:
                chosen = candidate
        return chosen


@dataclass(frozen=True, slots=True)
class Control:
    """One control of the standards: its name in excludes, what it restricts and why, its fields and its checks.

    `name` is empty for a control that no exclude can name. `fields` are the restricted paths; `allowed` describes
    which values pass.
    """

    name: str
    title: str
    what: str
    why: str
    reach: Reach
    fields: tuple[str, ...]
    allowed: str
    checks: tuple[Check, ...]

    @property
    def is_restricted_only(self) -> bool:
        """True if no check of this control belongs to the baseline level."""
        return all(check.level is Level.RESTRICTED for check in self.checks)


def container_fields(path: str) -> tuple[str, ...]:
    """Return the path under each of the three lists of containers.

    >>> container_fields("securityContext.privileged")[0]
    'spec.containers[*].securityContext.privileged'
    """
    return tuple(f"spec.{listed}[*].{path}" for listed in ("containers", "initContainers", "ephemeralContainers"))
