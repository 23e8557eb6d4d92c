"""The two rounds of mutation: a webhook sees an object again after others have changed it.

Webhooks and policies are counted separately, as in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Hashable

from pyverno.kube.json import JSON, equal
from pyverno.value import dataclass, field

__all__ = ["Invoked", "Rounds"]


@dataclass(slots=True)
class Invoked:
    """Rounds of one plugin: webhooks to reinvoke, `called` since the last change or still `due`.

    `left` is the object as the plugin left it.
    """

    called: set[Hashable] = field(default_factory=set)
    due: set[Hashable] = field(default_factory=set)
    left: JSON = None

    def changed(self) -> None:
        """Note that the object has changed: webhooks that were called before are due again."""
        self.due |= self.called
        self.called = set()


@dataclass(slots=True)
class Rounds:
    """State that the rounds of one request share; `is_due` is set when a second round is needed."""

    number: int = 0
    is_due: bool = False
    webhooks: Invoked = field(default_factory=Invoked)
    policies: Invoked = field(default_factory=Invoked)

    def begin(self, invoked: Invoked, present: JSON) -> None:
        """Begin a plugin's part of a round: a change since its last part makes all its webhooks due."""
        if self.number and not equal(invoked.left, present):
            invoked.changed()

    def is_skipped(self, invoked: Invoked, key: Hashable) -> bool:
        """Return whether a webhook is left out of this round; the second round only repeats calls."""
        return bool(self.number) and key not in invoked.due

    def changed(self, invoked: Invoked) -> None:
        """Note that a webhook has changed the object."""
        invoked.changed()
        self.is_due = True
