"""The recorder of one explained review: collects nodes into the rule that is at work.

One recorder serves one review at a time, in one thread. It holds at most `MAX_NODES` nodes of a review; what is left
out is counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyverno.engine.explain.nodes import Node, OmittedNode, RuleTrace
from pyverno.engine.rule import RuleInfo

__all__ = ["MAX_NODES", "Recorder"]

MAX_NODES = 20_000


class _Open:
    """A rule at work."""

    __slots__ = ("is_old", "matched", "nodes", "reason", "rule")

    def __init__(self, rule: RuleInfo, *, is_old: bool) -> None:
        self.rule = rule
        self.is_old = is_old
        self.matched = True
        self.reason = ""
        self.nodes: list[Node] = []


class Recorder:
    """Collects what the parts of rules report.

    `hides_object` means that values of the object must not be stored, because it is a Secret.
    """

    def __init__(self, *, hides_object: bool = False, max_nodes: int = MAX_NODES) -> None:
        self.hides_object = hides_object
        self._max_nodes = max_nodes
        self.clear()

    def clear(self) -> None:
        """Forget everything, for the next review."""
        self._rules: list[_Open] = []
        self._started: set[int] = set()
        self._levels: list[list[Node]] = [[]]
        self._room = self._max_nodes
        self.omitted = 0

    def start(self, rule: RuleInfo) -> None:
        """Begin a rule: nodes go to it until the next one begins.

        A rule that begins twice judges the object before an update the second time.
        """
        opened = _Open(rule, is_old=id(rule) in self._started)
        self._started.add(id(rule))
        self._rules.append(opened)
        self._levels = [opened.nodes]

    def mismatch(self, reason: str | None) -> None:
        """Note why the current rule is not about the request; None = it is."""
        if self._rules and reason is not None:
            self._rules[-1].matched = False
            self._rules[-1].reason = reason

    def add(self, node: Node) -> None:
        """Add a node where the review is now."""
        if self._room <= 0:
            self.omitted += 1
            return
        self._room -= 1
        self._levels[-1].append(node)

    @contextmanager
    def inside(self) -> Iterator[list[Node]]:
        """Collect nodes for a parent that is added afterwards."""
        level: list[Node] = []
        levels = self._levels
        levels.append(level)
        try:
            yield level
        finally:
            # a generator that was left early closes late: what was opened since goes with it
            while any(each is level for each in levels):
                levels.pop()

    def traces(self) -> tuple[RuleTrace, ...]:
        """Return the rules in the order in which they ran."""
        found = tuple(
            RuleTrace(each.rule, each.matched, each.reason, tuple(each.nodes), is_old=each.is_old)
            for each in self._rules
        )
        if self.omitted and found:
            last = found[-1]
            rest = (*last.children, OmittedNode(self.omitted))
            found = (*found[:-1], RuleTrace(last.rule, last.matched, last.reason, rest, is_old=last.is_old))
        return found
