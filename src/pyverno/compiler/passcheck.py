"""The pass-check of a whole rule: generated where the action allows it, absent where it does not.

Law: when the check of a rule returns True, the closures of its action return PASS. Rules with preconditions, context
entries in use, exceptions or overrides have none; the engine then runs the closures.
"""

from __future__ import annotations

from collections.abc import Callable

from pyverno.engine.actions.pattern import PatternCheck
from pyverno.engine.rule import Action
from pyverno.kube.json import JSON

__all__ = ["pass_check"]


def pass_check(action: Action) -> Callable[[JSON], bool] | None:
    """Return the pass-check of an action, or None."""
    if isinstance(action, PatternCheck) and action.compiled is not None and not action.scoped:
        return action.compiled.passes
    return None
