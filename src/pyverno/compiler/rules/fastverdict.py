"""What of a rule can be told from the object alone: its pass-check, and the rule as a function of the object.

Laws: when the check of a rule returns True, the closures of its action return PASS; when the judge of a rule returns
results, they are those of the closures. Whether anything beside the action (guards, exceptions, matching, supplied
variables) stands in the way is the engine's business.
"""

from __future__ import annotations

from collections.abc import Callable

from pyverno.engine.result import FailureAction
from pyverno.engine.rule import Action, FastVerdict, HasFastVerdict, RuleInfo

__all__ = ["later_shortcut"]


def later_shortcut(action: Action, info: RuleInfo, failure_action: FailureAction) -> Callable[[], FastVerdict] | None:
    """Return what gives the fast tier of an action, made when it is first asked for; None when it has none."""
    if not isinstance(action, HasFastVerdict):
        return None
    made: list[FastVerdict] = []  # `functools.cache` takes more memory than most of a rule
    make = action.shortcut

    def shortcut() -> FastVerdict:
        if not made:
            made.append(make(info, failure_action))
        return made[0]

    return shortcut
