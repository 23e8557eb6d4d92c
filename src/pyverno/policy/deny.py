"""A `deny` block, as written: conditions under which something is denied.

Conditions stay plain JSON. This module must not evaluate them.
"""

from __future__ import annotations

from pyverno.kube.json import JSON
from pyverno.policy.schema import Field, Record, free
from pyverno.value import dataclass

__all__ = ["DENY", "Deny"]


@dataclass(frozen=True, slots=True)
class Deny:
    """The conditions of a denial; None means that none are written, which always denies."""

    conditions: JSON = None


DENY = Record(Deny, Field("conditions", free))
