"""Kinds that background scans cover."""

from __future__ import annotations

from pyverno.controllers.state.scannedkinds import DISABLED_LABEL, is_scannable, matched_kinds
from pyverno.kube.kinds import BUILTIN_KINDS
from tests.unit.controllers.reports.policies import compiled, policy


def test_kinds_are_those_of_rules_and_of_their_copies() -> None:
    """A resource appears once even if several rules match it."""
    found = [info.plural for info in matched_kinds(compiled(policy("a"), policy("b")).policies, BUILTIN_KINDS)]
    assert len(found) == len(set(found))
    assert {"pods", "deployments", "cronjobs"} <= {*found}


def test_a_policy_can_be_left_out() -> None:
    """Its label disables reports, or it is for admission only."""
    variants = (policy("a"), policy("b", labels={DISABLED_LABEL: ""}), policy("c", background=False))
    assert [True, False, False] == [is_scannable(each) for each in compiled(*variants).policies]
