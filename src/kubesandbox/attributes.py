"""Attributes of one write or connection: the user, the operation and the object.

Admission plugins and webhooks read `Attributes`; messages for the client go into `Notes`.
"""

from __future__ import annotations

from kubesandbox.types.resources import ResourceType
from pyverno.engine.request import Operation, User
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSONObject
from pyverno.kube.labelsyntax import label_key_problems
from pyverno.value import dataclass, field, replace

__all__ = ["Attributes", "Notes"]


@dataclass(frozen=True, slots=True)
class Attributes:
    """One request that may change something.

    `object` is None on DELETE, `old` on CREATE; both are in the version of `type`, or of the subresource's kind
    (`Scale`, `Eviction`), which is then `kind`. `name` is empty where a name is still to be generated. `options` is the
    CreateOptions, UpdateOptions or DeleteOptions object of `meta.k8s.io/v1`.
    """

    operation: Operation
    type: ResourceType
    subresource: str
    namespace: str
    name: str
    user: User
    object: JSONObject | None
    old: JSONObject | None
    kind: GVK
    options: JSONObject | None = None
    dry_run: bool = False

    def with_assigned_name(self, name: str, value: JSONObject) -> Attributes:
        """Return the same request about an object that has its name now; a new Namespace stays in none till then."""
        return replace(self, name=name, object=value)

    def with_object(self, value: JSONObject | None) -> Attributes:
        """Return the same request about a changed object."""
        return replace(self, object=value)


@dataclass(slots=True)
class Notes:
    """Notes of one request beside its answer: `Warning` headers and audit annotations."""

    _warnings: dict[str, None] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)

    def annotate(self, key: str, value: str) -> None:
        """Add an audit annotation.

        As an API server has it, the first value of a key stays, and keys that are no qualified name are left out.
        """
        if key.count("/") == 1 and not label_key_problems(key):
            self.annotations.setdefault(key, value)

    def warn(self, text: str) -> None:
        """Add a warning unless the response has it already."""
        self._warnings[text] = None

    @property
    def warnings(self) -> list[str]:
        """The warnings in the order in which they were given first."""
        return [*self._warnings]
