"""Changes that a rule requests: objects to create, patch or delete.

The engine only describes effects; controllers perform them, the command line prints them, the sandbox applies them.
"""

from __future__ import annotations

from pyverno.engine.result import ResourceRef
from pyverno.kube.json import JSON, JSONObject
from pyverno.value import dataclass

__all__ = ["CreateEffect", "DeleteEffect", "Effect", "PatchEffect"]


@dataclass(frozen=True, slots=True)
class CreateEffect:
    """An object that a generate rule wants to exist.

    `source` names the object it was cloned from. With `synchronize` it is kept equal to the rule's data; without,
    an existing object is left as it is. With `orphan_on_policy_delete` it stays when the rule is gone.
    `server_side_apply` requests apply instead of create or replace. Without `adopts` an object of that name that no
    rule generated is left as it is.
    """

    resource: JSONObject
    synchronize: bool = False
    server_side_apply: bool = False
    orphan_on_policy_delete: bool = False
    source: ResourceRef | None = None
    adopts: bool = True


@dataclass(frozen=True, slots=True)
class PatchEffect:
    """An existing object, other than the request's own, that a rule changes: as it was and as it should be."""

    target: ResourceRef
    before: JSON
    after: JSON
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class DeleteEffect:
    """An object to delete for a cleanup rule, or for a generate rule that no longer applies."""

    target: ResourceRef
    propagation_policy: str = ""


Effect = CreateEffect | PatchEffect | DeleteEffect
