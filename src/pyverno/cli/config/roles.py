"""Which files may set a flag: a file that is found beside what is judged, one that `--config` names, or none.

The role of each flag decides; it is declared with the flag. A found file may come with the judged tree, so it selects
and formats, and no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyverno.cli.args.flags import Role
from pyverno.value import dataclass

__all__ = ["ROLES", "Rights"]


@dataclass(frozen=True, slots=True)
class Rights:
    """Which files may set the flags of a role; `reason` says what such a flag does."""

    reason: str
    in_found: bool = False
    in_named: bool = True


ROLES: Final[Mapping[Role, Rights]] = {
    "selection": Rights("selects what is judged", in_found=True),
    "form": Rights("forms the output", in_found=True),
    "strictness": Rights("adds failures", in_found=True),
    "leniency": Rights("can let failures pass"),
    "facts": Rights("supplies facts that results depend on"),
    "network": Rights("can reach the network"),
    "cluster": Rights("reaches a cluster"),
    "programs": Rights("starts programs"),
    "writes": Rights("writes files"),
    "secret": Rights("is a secret", in_named=False),
    "once": Rights("is for one run", in_named=False),
    "": Rights("has no role", in_named=False),
}
"""The rights of every role. A flag without a role is in no file, until its author has decided."""
