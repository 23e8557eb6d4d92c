r"""Sets of fields of an object, as `managedFields` records them (`FieldsV1`).

A step of a path is a text in the form of FieldsV1: `f:spec` for a field, `k:{"name":"web"}` for the item of a list with
keys, `v:"x"` for the member of a set, `i:0` for an index. A set holds fields (`members`) and sets of the fields below
others (`children`); a field can be a member without the fields below it, and the other way round. Sets are
immutable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache

from pyverno.errors import DocumentError, ValueSyntaxError
from pyverno.kube.json import JSON, JSONObject, decode, encode
from pyverno.kube.names import MAX_NAME
from pyverno.value import dataclass, field

__all__ = ["FieldPath", "FieldSet", "field_step", "key_step", "path_text", "value_step"]

FieldPath = tuple[str, ...]
"""The steps from the root of an object to a field."""

_DEEPEST = 500
_ITSELF = "."
_KINDS = {"f": 0, "k": 1, "v": 2, "i": 3}


@dataclass(frozen=True, slots=True)
class FieldSet:
    """An immutable set of fields.

    >>> before = FieldSet.of([("f:spec", "f:replicas"), ("f:spec", "f:paused")])
    >>> before.difference(FieldSet.of([("f:spec", "f:paused")])).to_json()
    {'f:spec': {'f:replicas': {}}}
    """

    members: frozenset[str] = frozenset()
    children: Mapping[str, FieldSet] = field(default_factory=dict)

    @classmethod
    def of(cls, paths: Iterable[FieldPath]) -> FieldSet:
        """Return the set of these fields, those above them left out; the root is no field."""
        members: set[str] = set()
        below: dict[str, list[FieldPath]] = {}
        for first, *rest in filter(None, paths):
            if rest:
                below.setdefault(first, []).append(tuple(rest))
            else:
                members.add(first)
        return cls(frozenset(members), {step: cls.of(rest) for step, rest in below.items()})

    @classmethod
    def from_json(cls, fields: JSON) -> FieldSet:
        """Read FieldsV1; raises ValueSyntaxError.

        >>> FieldSet.from_json({"f:metadata": {"f:labels": {".": {}, "f:app": {}}}}).has(("f:metadata", "f:labels"))
        True
        """
        return _read(fields, 0)[1]

    def to_json(self) -> JSONObject:
        """Write FieldsV1, fields before items and each kind in order of its text."""
        written: JSONObject = {}
        for step in _sort({*self.members, *self.children}):
            below = self.children.get(step)
            if below is None:
                written[step] = {}
            else:
                written[step] = {**({_ITSELF: {}} if step in self.members else {}), **below.to_json()}
        return written

    def __bool__(self) -> bool:
        return bool(self.members or self.children)

    def paths(self) -> Iterator[FieldPath]:
        """Yield the fields in order, those of one level before those below."""
        for step in sorted(self.members, key=_order):
            yield (step,)
        for step in sorted(self.children, key=_order):
            for rest in self.children[step].paths():
                yield (step, *rest)

    def has(self, path: FieldPath) -> bool:
        """Return whether a field is in the set."""
        found: FieldSet | None = self
        for step in path[:-1]:
            found = found.children.get(step) if found is not None else None
        return found is not None and path[-1] in found.members

    def below(self, step: str) -> FieldSet:
        """Return the fields below a step."""
        return self.children.get(step, _EMPTY)

    def union(self, other: FieldSet) -> FieldSet:
        """Return the fields of either set."""
        if not other:
            return self
        if not self:
            return other
        children = dict(self.children)
        for step, theirs in other.children.items():
            ours = children.get(step)
            children[step] = theirs if ours is None else ours.union(theirs)
        return FieldSet(self.members | other.members, children)

    def intersection(self, other: FieldSet) -> FieldSet:
        """Return the fields of both sets."""
        shared = ((step, ours, other.children.get(step)) for step, ours in self.children.items())
        both = {step: ours.intersection(theirs) for step, ours, theirs in shared if theirs is not None}
        return FieldSet(self.members & other.members, _without_empty(both))

    def difference(self, other: FieldSet) -> FieldSet:
        """Return the fields that the other set has not; a field stays when the other has only what is above it."""
        children = {
            step: ours.difference(other.children[step]) if step in other.children else ours
            for step, ours in self.children.items()
        }
        return FieldSet(self.members - other.members, _without_empty(children))

    def without(self, other: FieldSet) -> FieldSet:
        """Return the fields that neither are in the other set nor lie below a field of it.

        >>> FieldSet.of([("f:status", "f:phase"), ("f:spec",)]).without(FieldSet.of([("f:status",)])).to_json()
        {'f:spec': {}}
        """
        children = {
            step: ours.without(other.children[step]) if step in other.children else ours
            for step, ours in self.children.items()
            if step not in other.members
        }
        return FieldSet(self.members - other.members, _without_empty(children))


_EMPTY = FieldSet()


def field_step(name: str) -> str:
    """Return the step to a field."""
    return f"f:{name}"


def value_step(value: JSON) -> str:
    """Return the step to a member of a set."""
    return f"v:{_encode(value)}"


def key_step(keys: Mapping[str, JSON]) -> str:
    """Return the step to the item of a list with keys.

    >>> key_step({"protocol": "TCP", "port": 80})
    'k:{"port":80,"protocol":"TCP"}'
    """
    return f"k:{{{','.join(f'{_encode(key)}:{_encode(keys[key])}' for key in sorted(keys))}}}"


def _encode(value: JSON) -> str:
    return _quote(value) if value.__class__ is str and len(value) <= MAX_NAME else encode(value)


@lru_cache(maxsize=8192)
def _quote(value: str) -> str:
    return encode(value)


def path_text(path: FieldPath) -> str:
    """Write a path as conflicts show it.

    >>> path_text(("f:spec", "f:containers", 'k:{"name":"web"}', "f:image"))
    '.spec.containers[name="web"].image'
    """
    return "".join(_step_text(step) for step in path)


def _step_text(step: str) -> str:
    kind, _, rest = step.partition(":")
    match kind:
        case "f":
            return f".{rest}"
        case "k":
            return f"[{','.join(f'{key}={encode(value)}' for key, value in sorted(decode(rest).items()))}]"
        case "v":
            return f"[={rest}]"
        case _:
            return f"[{rest}]"


def _order(step: str) -> tuple[int, str]:
    return _KINDS[step[0]], step


def _sort(steps: Iterable[str]) -> list[str]:
    """Put steps in order; those of one kind, as they mostly are, need no look at their kinds."""
    found = sorted(steps)
    return found if not found or found[0][0] == found[-1][0] else sorted(found, key=_order)


def _without_empty(children: dict[str, FieldSet]) -> dict[str, FieldSet]:
    return {step: below for step, below in children.items() if below}


def _read(fields: JSON, depth: int) -> tuple[bool, FieldSet]:
    """Return whether the field itself is a member, and what is below it."""
    if not isinstance(fields, dict) or depth > _DEEPEST:
        raise ValueSyntaxError("managed fields are no map, or nested too deeply")
    members: set[str] = set()
    children: dict[str, FieldSet] = {}
    is_member = not fields or _ITSELF in fields
    for text, value in fields.items():
        if text == _ITSELF:
            continue
        step = _canonical(text) if len(text) <= MAX_NAME else _read_step(text)
        is_itself, below = _read(value, depth + 1)
        if is_itself:
            members.add(step)
        if below:
            children[step] = below
    return is_member, FieldSet(frozenset(members), children)


_READERS: Mapping[str, Callable[[JSON], bool]] = {
    "k": lambda value: isinstance(value, dict),
    "v": lambda value: True,
    "i": lambda value: isinstance(value, int) and not isinstance(value, bool),
}


def _read_step(text: str) -> str:
    """Return a step in the one form that can be compared; raises ValueSyntaxError."""
    kind, colon, rest = text.partition(":")
    if kind == "f" and colon:
        return text
    reads = _READERS.get(kind)
    if reads is None or not colon:
        raise ValueSyntaxError(f"`{text}` is no step of managed fields")
    try:
        value = decode(rest)
    except DocumentError as error:
        raise ValueSyntaxError(f"`{text}` is no step of managed fields: {error}") from None
    if not reads(value):
        raise ValueSyntaxError(f"`{text}` is no step of managed fields")
    return f"{kind}:{encode(value)}"


_canonical = lru_cache(maxsize=8192)(_read_step)
