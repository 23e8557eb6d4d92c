"""Writes on their way through the server, and what they led to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from kubesandbox.attributes import Attributes, Notes
from kubesandbox.parsing.requests import WriteOptions
from kubesandbox.storage.store import Key, Stored
from kubesandbox.types.resources import ResourceType
from pyverno.engine.request import Operation, User
from pyverno.kube.json import JSONObject

__all__ = ["Outcome", "Write"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a write: the object in the requested version, the HTTP code, the state that was stored."""

    body: JSONObject
    status: int = 200
    state: Stored | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """One write: its target, user and options; `name` is empty where one is to be generated.

    `manager` is what managed fields name; an empty one leaves them as they are. `check_create` raises StatusError when
    the user may not create the object; an update or a patch that turns out to create it must pass it.
    """

    type: ResourceType
    namespace: str
    name: str
    user: User
    subresource: str = ""
    options: WriteOptions = field(default_factory=WriteOptions)
    notes: Notes = field(default_factory=Notes)
    manager: str = "unknown"
    check_create: Callable[[], None] = lambda: None

    @property
    def key(self) -> Key:
        """The storage key of the object."""
        return Key(self.type.key, self.namespace, self.name)

    def attributes(self, operation: Operation, body: JSONObject | None, old: JSONObject | None) -> Attributes:
        """Return the write as admission sees it."""
        kind = "CreateOptions" if operation is Operation.CREATE else "UpdateOptions"
        return Attributes(
            operation=operation,
            type=self.type,
            subresource=self.subresource,
            namespace=self.name if self.type.key == "namespaces" else self.namespace,
            name=self.name,
            user=self.user,
            object=body,
            old=old,
            kind=self.type.gvk,
            options=self.options.to_json(kind),
            dry_run=self.options.dry_run,
        )
