"""The effect of a PolicyException on most actions: the whole rule is skipped."""

from __future__ import annotations

from collections.abc import Sequence

from pyverno.engine.result import Status, Verdict
from pyverno.engine.rule import Exemption, Run

__all__ = ["SkippedByException", "skip_message"]


def skip_message(exemptions: Sequence[Exemption]) -> str:
    """Return Kyverno's text, which has no space before the names."""
    return "rule is skipped due to policy exceptions" + ",".join(exemption.key for exemption in exemptions)


class SkippedByException:
    """Mixin of actions that an exception skips as a whole."""

    __slots__ = ()

    def exempt(self, run: Run, exemptions: Sequence[Exemption]) -> Sequence[Verdict] | None:
        """Skip the rule and name the exceptions."""
        keys = tuple(exemption.key for exemption in exemptions)
        return (Verdict(Status.SKIP, skip_message(exemptions), exceptions=keys),)
