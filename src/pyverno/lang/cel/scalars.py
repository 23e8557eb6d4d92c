"""Scalar values of CEL that Python has no type for: unsigned integers, durations, timestamps and types."""

from __future__ import annotations

from typing import ClassVar

__all__ = ["Duration", "Instant", "Timestamp", "TypeValue", "Uint"]


class Uint(int):
    """An unsigned 64-bit integer, kept apart from int by its Python type.

    >>> Uint(3), Uint(3) == 3
    (3u, True)
    """

    __slots__ = ()
    cel_type: ClassVar[str] = "uint"

    def __repr__(self) -> str:
        return f"{int(self)}u"

    def __str__(self) -> str:
        return str(int(self))


class Instant:
    """Nanoseconds with an order among values of the same class."""

    __slots__ = ("ns",)
    ns: int

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.ns == self.ns

    def __hash__(self) -> int:
        return hash((type(self), self.ns))

    def __lt__(self, other: Instant) -> bool:
        return self.ns < other.ns

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.ns})"


class Duration(Instant):
    """A span of time in nanoseconds, within ±2^63."""

    __slots__ = ()
    cel_type: ClassVar[str] = "google.protobuf.Duration"

    def __init__(self, ns: int) -> None:
        self.ns = ns


class Timestamp(Instant):
    """A moment: nanoseconds since the Unix epoch, years 1 to 9999; `offset` is the zone it was written in (seconds).

    Two timestamps are equal when they are the same moment, whatever their offset.
    """

    __slots__ = ("offset",)
    cel_type: ClassVar[str] = "google.protobuf.Timestamp"

    def __init__(self, ns: int, offset: int = 0) -> None:
        self.ns = ns
        self.offset = offset


class TypeValue:
    """The type of a value, as `type(x)` answers it; equal when the names are."""

    __slots__ = ("name",)
    cel_type: ClassVar[str] = "type"

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeValue) and other.name == self.name

    def __hash__(self) -> int:
        return hash(("type", self.name))

    def __repr__(self) -> str:
        return f"TypeValue({self.name!r})"
