"""The order in which rules of all kinds are judged; data, not code.

A phase names a stage and the policy kinds it takes. Front doors choose a tuple of phases and nothing else, so that no
door can have an order of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyverno.engine.rule import Stage

__all__ = ["ADMISSION", "DELETING", "GENERATING", "MUTATING", "MUTATING_EXISTING", "VALIDATING", "Phase"]

_RULE_KINDS = frozenset({"ClusterPolicy", "Policy"})
_CLEANUP_KINDS = frozenset({"ClusterCleanupPolicy", "CleanupPolicy"})


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """Rules of one stage, of some policy kinds; compared by identity, because each phase exists once."""

    stage: Stage
    kinds: frozenset[str]


_MUTATE = Phase(Stage.MUTATE, _RULE_KINDS)
_VERIFY_IMAGES = Phase(Stage.VERIFY_IMAGES, _RULE_KINDS)
_VALIDATE = Phase(Stage.VALIDATE, _RULE_KINDS)
_MUTATE_EXISTING = Phase(Stage.MUTATE_EXISTING, _RULE_KINDS)
_GENERATE = Phase(Stage.GENERATE, _RULE_KINDS)
_CLEANUP = Phase(Stage.CLEANUP, _CLEANUP_KINDS)

MUTATING = (_MUTATE, _VERIFY_IMAGES)
VALIDATING = (_VALIDATE,)
MUTATING_EXISTING = (_MUTATE_EXISTING,)
GENERATING = (_GENERATE,)
DELETING = (_CLEANUP,)

ADMISSION = MUTATING + VALIDATING + MUTATING_EXISTING + GENERATING
"""What an admission request goes through, and what it sets in motion."""
