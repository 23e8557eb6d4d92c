"""CleanupPolicy and ClusterCleanupPolicy, as written (`kyverno.io/v2`, `v2beta1`).

Both kinds are one dataclass: a CleanupPolicy has a namespace. This module must not delete or schedule anything.
"""

from __future__ import annotations

from enum import StrEnum

from pyverno.kube.json import JSON, JSONObject
from pyverno.policy.context import CONTEXT, ContextEntry
from pyverno.policy.document import PolicyDocument, policy_record
from pyverno.policy.match import MATCH_WITHOUT_FLAT, MatchBlocks
from pyverno.policy.schema import Field, Record, choice, free, text
from pyverno.value import dataclass, field

__all__ = ["CLEANUP_POLICY", "CleanupPolicy", "CleanupSpec", "PropagationPolicy"]


class PropagationPolicy(StrEnum):
    """The treatment of the dependents of a deleted object."""

    FOREGROUND = "Foreground"
    BACKGROUND = "Background"
    ORPHAN = "Orphan"


@dataclass(frozen=True, slots=True)
class CleanupSpec:
    """The objects to delete and the schedule; `conditions` stays plain JSON."""

    schedule: str
    match: MatchBlocks
    exclude: MatchBlocks | None = None
    context: tuple[ContextEntry, ...] = ()
    conditions: JSON = None
    deletion_propagation_policy: PropagationPolicy | None = None
    raw: JSONObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupPolicy(PolicyDocument):
    """A ClusterCleanupPolicy, or with a namespace a CleanupPolicy."""

    spec: CleanupSpec

    @property
    def is_namespaced(self) -> bool:
        """Return whether this policy sees its own namespace only."""
        return self.kind == "CleanupPolicy"


_SPEC = Record(
    CleanupSpec,
    Field("schedule", text, required=True),
    Field("match", MATCH_WITHOUT_FLAT, required=True),
    Field("exclude", MATCH_WITHOUT_FLAT),
    Field("context", CONTEXT),
    Field("conditions", free),
    Field("deletion_propagation_policy", choice(PropagationPolicy)),
)

CLEANUP_POLICY = policy_record(CleanupPolicy, _SPEC)
