"""Places in an object: how they are read in CEL, where a JSON patch finds them, and how merges treat them."""

from __future__ import annotations

from pyverno.compiler.migration.mutations.changes import Pointer
from pyverno.compiler.migration.text import Cel, Reference
from pyverno.kube.schemas import MergeField, merge_table
from pyverno.value import dataclass, field, replace

__all__ = ["Place"]


@dataclass(frozen=True, slots=True)
class Place:
    """A field: its value, its JSON pointer, and its properties in strategic merge.

    `outer` is the same value for conditions of the whole patch, where no parent is known to be there.
    """

    value: Reference
    pointer: Pointer = field(default_factory=Pointer)
    merge: MergeField | None = None
    outer: Reference | None = None

    def field(self, name: str) -> Place:
        """Return the place of a field or entry below."""
        kind = self.merge.type if self.merge is not None else None
        merge = merge_table().field(kind, name) if kind else None
        outer = None if self.outer is None else self.outer.field(name)
        return Place(self.value.field(name), self.pointer.key(name), merge, outer)

    @property
    def unguarded(self) -> Reference:
        """The value of a field without a known type."""
        return self.value if self.outer is None else self.outer

    def assumed(self) -> Place:
        """Return the place of a value that is there, for use behind a guard."""
        return replace(self, value=self.value.assumed(), outer=self.unguarded)

    def element(self, index: Cel) -> Place:
        """Return the place of an element of this list."""
        schema = self.value.schema.element
        value = Reference(f"{self.value.value().text}[{index.text}]", schema)
        kind = self.merge.type if self.merge is not None else None
        return Place(value, self.pointer.index(index), MergeField(type=kind) if kind else None)

    def at(self, pointer: Pointer) -> Place:
        """Return the same place under another pointer."""
        return replace(self, pointer=pointer)
