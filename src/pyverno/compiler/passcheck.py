"""The pass-check of a rule's action: generated where the action allows it, absent where it does not.

Law: when the check of a rule returns True, the closures of its action return PASS. Whether anything beside the action
(guards, exceptions, matching) stands in the way is the engine's business.
"""

from __future__ import annotations

from collections.abc import Callable

from pyverno.engine.actions.pattern import PatternCheck
from pyverno.engine.rule import Action
from pyverno.kube.json import JSON
from pyverno.lang.pattern.validate import Pattern

__all__ = ["pass_check"]


def pass_check(action: Action) -> tuple[Callable[[JSON], bool] | None, tuple[Pattern, ...]]:
    """Return the pass-check of an action (or None) and the patterns that it was generated from."""
    if isinstance(action, PatternCheck) and action.compiled is not None and not action.scoped:
        return action.compiled.passes, (action.compiled,)
    return None, ()
