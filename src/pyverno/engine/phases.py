"""The order in which rules of all kinds are judged; data, not code.

A phase names a stage and the policy kinds it takes. Front doors choose a tuple of phases and nothing else, so that no
door can have an order of its own.
"""

from __future__ import annotations

from pyverno.engine.rule import Stage
from pyverno.value import dataclass

__all__ = ["ADMISSION", "DELETING", "GENERATING", "MUTATING", "MUTATING_EXISTING", "VALIDATING", "Phase"]

_RULE_KINDS = frozenset({"ClusterPolicy", "Policy"})
_CLEANUP_KINDS = frozenset({"ClusterCleanupPolicy", "CleanupPolicy"})


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """Rules of one stage, of some policy kinds; compared by identity, because each phase exists once.

    Without `takes_deletes` no rule is asked about a DELETE: there is nothing left that it could change.
    """

    stage: Stage
    kinds: frozenset[str]
    takes_deletes: bool = True


_MUTATING_KINDS = frozenset({"MutatingPolicy", "NamespacedMutatingPolicy"})
_VALIDATING_KINDS = frozenset({"ValidatingPolicy", "NamespacedValidatingPolicy"})
_IMAGE_KINDS = frozenset({"ImageValidatingPolicy", "NamespacedImageValidatingPolicy"})
_GENERATING_KINDS = frozenset({"GeneratingPolicy", "NamespacedGeneratingPolicy"})
_DELETING_KINDS = frozenset({"DeletingPolicy", "NamespacedDeletingPolicy"})

_MUTATE = Phase(Stage.MUTATE, _RULE_KINDS, takes_deletes=False)
_VERIFY_IMAGES = Phase(Stage.VERIFY_IMAGES, _RULE_KINDS, takes_deletes=False)
_VALIDATE = Phase(Stage.VALIDATE, _RULE_KINDS)
_MUTATE_EXISTING = Phase(Stage.MUTATE_EXISTING, _RULE_KINDS)
_GENERATE = Phase(Stage.GENERATE, _RULE_KINDS)
_CLEANUP = Phase(Stage.CLEANUP, _CLEANUP_KINDS)

# Kubernetes: mutating admission policies come before webhooks, validating ones before validating webhooks
MUTATING = (
    Phase(Stage.MUTATE, frozenset({"MutatingAdmissionPolicy"})),
    _MUTATE,
    _VERIFY_IMAGES,
    Phase(Stage.MUTATE, _MUTATING_KINDS),
)
VALIDATING = (
    Phase(Stage.VALIDATE, frozenset({"ValidatingAdmissionPolicy"})),
    _VALIDATE,
    Phase(Stage.VALIDATE, _VALIDATING_KINDS),
    Phase(Stage.VALIDATE, _IMAGE_KINDS),
)
MUTATING_EXISTING = (_MUTATE_EXISTING, Phase(Stage.MUTATE_EXISTING, _MUTATING_KINDS))
GENERATING = (Phase(Stage.GENERATE, _GENERATING_KINDS), _GENERATE)
DELETING = (_CLEANUP, Phase(Stage.CLEANUP, _DELETING_KINDS))

ADMISSION = MUTATING + VALIDATING + MUTATING_EXISTING + GENERATING
"""What an admission request goes through, and what it sets in motion."""
