"""Places in policy documents: the path of a field, and its location in the file.

Kubernetes writes such a path as `spec.rules[0].match`.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias, runtime_checkable

from pyverno.errors import Location
from pyverno.kube.json import JSON
from pyverno.value import dataclass

__all__ = ["Path", "Place", "Source", "locate", "path_text"]

Path: TypeAlias = tuple[str | int, ...]
"""The way from the root of a document to a value: keys and list indexes."""


class Source(Protocol):
    """A document with the positions of its values in a file."""

    @property
    def value(self) -> JSON:
        """Return the whole document."""
        ...

    @property
    def file(self) -> str:
        """Return the name of the file, or `-`."""
        ...

    def location(self, path: Path, *, key: bool = False) -> Location:
        """Return the location of the value at that path (or of its key)."""
        ...


def path_text(path: Path) -> str:
    """Write a path as Kubernetes writes field paths.

    >>> path_text(("spec", "rules", 0, "match"))
    'spec.rules[0].match'
    >>> path_text(("metadata", "annotations", "a.b/c"))
    'metadata.annotations[a.b/c]'
    """
    parts: list[str] = []
    for step in path:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        elif step.isidentifier():
            parts.append(f".{step}" if parts else step)
        else:
            parts.append(f"[{step}]")
    return "".join(parts)


@runtime_checkable
class HasCharacters(Protocol):
    """A document with the positions of the characters of its texts."""

    def character(self, path: Path, offset: int) -> Location:
        """Return the place of a character."""
        ...


def locate(source: Source, path: Path, *, key: bool = False, offset: int | None = None) -> Location:
    """Return the location of a path; for a path missing in the document, that of its nearest parent.

    With `offset` it is the place of a character of the text at the path, where the source knows it.

    Autogen copies of rules have values at paths that are not in the document; their problems point at the original.
    """
    known = _existing(source.value, path)
    if offset is not None and known == path and isinstance(source, HasCharacters):
        return source.character(path, offset)
    return source.location(known, key=key and known == path)


@dataclass(frozen=True, slots=True)
class Place:
    """A character of a text in a document; of the name of a field with `key`.

    In a document whose text at the path is another one, as in those that autogen makes, it is the nearest place.
    """

    path: Path
    text: str
    offset: int | None = None
    key: bool = False

    def location(self, source: Source) -> Location:
        """Return the location of the character in a source."""
        value: JSON = source.value
        known = _existing(value, self.path)
        for step in known:
            value = value[step]
        is_written = known == self.path and not self.key and value == self.text
        return locate(source, self.path, key=self.key, offset=self.offset if is_written else None)


def _existing(value: JSON, path: Path) -> Path:
    for index, step in enumerate(path):
        try:
            value = value[step]
        except (LookupError, TypeError):
            return path[:index]
    return path
