"""Expands autogen once for each policy: the compiler keeps the copies with the policy, and later readers find them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pyverno.policy.kinds import Family
from pyverno.value import replace

if TYPE_CHECKING:
    from pyverno.policy.cel.policies import CelPolicy
    from pyverno.policy.clusterpolicy import ClusterPolicy
    from pyverno.policy.decode import AnyPolicy

__all__ = ["with_copies"]


def with_copies(policy: AnyPolicy, family: Family) -> AnyPolicy:
    """Return a policy that knows its autogen copies; kinds without autogen are returned as they are."""
    # imported here, because most runs have policies of one family
    if family is Family.RULES:
        from pyverno.compiler.autogen.patterns import expand

        rules = cast("ClusterPolicy", policy)
        return replace(rules, expanded=expand(rules))
    if family is Family.CEL:
        from pyverno.compiler.autogen.cel import copies_of

        cel = cast("CelPolicy", policy)
        copies = copies_of(cel)
        return replace(cel, copies=copies)
    return policy
