"""What of a rule can be told from the object alone: its pass-check, and the rule as a function of the object.

Laws: when the check of a rule returns True, the closures of its action return PASS; when the judge of a rule returns
results, they are those of the closures. Whether anything beside the action (guards, exceptions, matching, supplied
variables) stands in the way is the engine's business.
"""

from __future__ import annotations

from pyverno.engine.result import FailureAction
from pyverno.engine.rule import NO_SHORTCUT, Action, RuleInfo, Shortcut, Shortened

__all__ = ["make_shortcut"]


def make_shortcut(action: Action, info: RuleInfo, failure_action: FailureAction) -> Shortcut:
    """Return the fast tier of an action, which the action itself knows: how it is fused, and its judge."""
    return action.shortcut(info, failure_action) if isinstance(action, Shortened) else NO_SHORTCUT
