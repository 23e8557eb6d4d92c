"""Autogen copies of a policy in CEL, as values: the resources that a copy selects, and the rewritten policy."""

from __future__ import annotations

from typing import Generic, TypeVar

from pyverno.value import dataclass

__all__ = ["AutogenConfig", "Target"]

P_co = TypeVar("P_co", covariant=True)


@dataclass(frozen=True, slots=True, order=True)
class Target:
    """A resource that a copy selects."""

    group: str
    version: str
    resource: str
    kind: str


@dataclass(frozen=True, slots=True)
class AutogenConfig(Generic[P_co]):
    """One copy: `defaults` or `cronjobs`, the resources that it selects, and the policy with the rewritten spec."""

    name: str
    targets: tuple[Target, ...]
    policy: P_co
