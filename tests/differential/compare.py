"""Differences between two sets of answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyverno.kube.json import JSONObject
from tests.differential.generate.batches import Batch
from tests.differential.runs import Answer, Answers, Key

__all__ = ["ABSENT", "Difference", "differences"]

ABSENT = Answer("none")
"""The answer of a command that says nothing about a key."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Two answers for one key, and the documents that gave them."""

    batch: Batch
    key: Key
    ours: Answer
    theirs: Answer
    again: Answer | None = None
    """The answer of a second run of Kyverno."""

    @property
    def aspect(self) -> str:
        """Return the first aspect that differs: `status`, `text` or `details`."""
        if self.ours.status != self.theirs.status:
            return "status"
        return "text" if self.ours.text != self.theirs.text else "details"

    @property
    def policy(self) -> JSONObject:
        """Return the policy; an empty object for a query."""
        return next((item for item in self.batch.policies if item["metadata"]["name"] == self.key.policy), {})

    @property
    def rule(self) -> JSONObject:
        """Return the rule as written, also for a rule that was derived for controllers; else an empty object."""
        name = self.key.rule.removeprefix("autogen-cronjob-").removeprefix("autogen-")
        return next((rule for rule in self.policy.get("spec", {}).get("rules", ()) if rule["name"] == name), {})

    @property
    def resource_name(self) -> str:
        """Return the name of the resource."""
        return self.key.resource.rpartition("/")[2]

    @property
    def resource(self) -> JSONObject:
        """Return the resource; an empty object where there is none."""
        name = self.resource_name
        return next((item for item in self.batch.resources if item.get("metadata", {}).get("name") == name), {})


def differences(batch: Batch, ours: Answers, theirs: Answers, again: Answers | None = None) -> Iterator[Difference]:
    """Yield every difference; of a policy that only one side refuses, the refusal alone.

    `again` are the answers of a second run of Kyverno.
    """
    refused = {key.policy for answers in (ours, theirs) for key in answers if key.kind == "policy"}
    for key in sorted({*ours, *theirs}):
        if key.kind != "policy" and key.policy in refused:
            continue
        mine, other = ours.get(key, ABSENT), theirs.get(key, ABSENT)
        if key.kind == "policy" and ABSENT not in (mine, other):
            mine, other = Answer("refused", mine.text), Answer("refused", other.text)
        if mine != other:
            second = None if again is None or key.kind == "policy" else again.get(key, ABSENT)
            yield Difference(batch, key, mine, other, second)
