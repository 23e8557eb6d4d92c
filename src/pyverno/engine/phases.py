"""The order in which rules of all kinds are judged; data, not code.

A phase names a stage and the policy kinds it takes. Front doors choose a tuple of phases and nothing else, so that
all have the same order.
"""

from __future__ import annotations

from pyverno.engine.rule import Family, Stage
from pyverno.value import dataclass

__all__ = [
    "ADMISSION",
    "DELETING",
    "GENERATING",
    "MUTATING",
    "MUTATING_EXISTING",
    "MUTATION_CHECK",
    "SCAN",
    "VALIDATING",
    "Phase",
]


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """Rules of one stage, of one family of policies; compared by identity, because each phase exists once.

    Without `takes_deletes` no rule runs for a DELETE: there is nothing left that it could change.
    """

    stage: Stage
    family: Family
    takes_deletes: bool = True


_MUTATE = Phase(Stage.MUTATE, Family.RULES, takes_deletes=False)
_VERIFY_IMAGES = Phase(Stage.VERIFY_IMAGES, Family.RULES, takes_deletes=False)
_VALIDATE = Phase(Stage.VALIDATE, Family.RULES)
_MUTATE_EXISTING = Phase(Stage.MUTATE_EXISTING, Family.RULES)
_GENERATE = Phase(Stage.GENERATE, Family.RULES)
_CLEANUP = Phase(Stage.CLEANUP, Family.CLEANUP)

# Kubernetes: mutating admission policies come before webhooks, validating ones before validating webhooks
MUTATING = (
    Phase(Stage.MUTATE, Family.ADMISSION),
    _MUTATE,
    _VERIFY_IMAGES,
    Phase(Stage.MUTATE, Family.CEL),
    Phase(Stage.MUTATE, Family.IMAGES, takes_deletes=False),
)
VALIDATING = (
    Phase(Stage.VALIDATE, Family.ADMISSION),
    _VALIDATE,
    Phase(Stage.VALIDATE, Family.CEL),
    Phase(Stage.VALIDATE, Family.IMAGES),
    # any policy of the request may have verified an image
    Phase(Stage.REQUIRE_IMAGES, Family.IMAGES),
)
SCAN = (*VALIDATING, _VERIFY_IMAGES)
"""Phases of a background scan of a live object."""

MUTATION_CHECK = (Phase(Stage.MUTATE, Family.ADMISSION), Phase(Stage.MUTATE, Family.CEL))
"""Phases that a scan runs for one policy at a time, to find out whether the object has its changes."""

MUTATING_EXISTING = (_MUTATE_EXISTING, Phase(Stage.MUTATE_EXISTING, Family.CEL))
GENERATING = (Phase(Stage.GENERATE, Family.CEL), _GENERATE)
DELETING = (_CLEANUP, Phase(Stage.CLEANUP, Family.CEL))

ADMISSION = MUTATING + VALIDATING + MUTATING_EXISTING + GENERATING
"""The phases of an admission request and of the work that it triggers."""
