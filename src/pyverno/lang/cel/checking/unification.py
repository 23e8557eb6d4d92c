"""Assignability of types with type variables: the small unification that cel-go's checker uses.

A `Substitution` maps variables to types and grows while an expression is checked; a failed attempt leaves no trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import is_
from typing import Final

from pyverno.lang.cel.types import DYN, Type

__all__ = ["Substitution", "is_dyn", "is_optional", "may_fit", "most_general", "unwrap_optional"]

_NULLABLE: Final = frozenset({"opaque", "struct", "any", "duration", "timestamp"})
_COMPOUND: Final = frozenset({"opaque", "list", "map"})
# types of two different kinds among these are never assignable
_CONCRETE: Final = frozenset(
    {"bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration", "list", "map", "opaque", "struct"}
)


def may_fit(sources: Iterable[str], targets: Iterable[str]) -> bool:
    """Return whether types of some kinds may be assignable to types of others; False is certain, whatever is known.

    >>> may_fit(["int", "dyn"], ["int", "list"]), may_fit(["int"], ["list"])
    (True, False)
    """
    for source, target in zip(sources, targets, strict=True):
        if source != target and source in _CONCRETE and target in _CONCRETE:
            return False
    return True


def is_dyn(type_: Type) -> bool:
    """Return whether a type is dynamic."""
    return type_.kind in ("dyn", "any")


def is_optional(type_: Type) -> bool:
    """Return whether a type is `optional_type`."""
    return type_.kind == "opaque" and type_.name == "optional_type"


def unwrap_optional(type_: Type) -> tuple[Type, bool]:
    """Return the type inside an optional, and whether it was one."""
    return (type_.params[0], True) if is_optional(type_) else (type_, False)


class Substitution:
    """The bindings of the type variables of one expression."""

    def __init__(self) -> None:
        self._known: dict[str, Type] = {}
        self._undo: list[tuple[str, Type | None]] = []
        self._fresh = 0

    def fresh(self) -> Type:
        """Return a new type variable."""
        self._fresh += 1
        return _variable(self._fresh - 1)

    def instantiate(self, types: tuple[Type, ...]) -> tuple[Type, ...]:
        """Return types with their own variables replaced by fresh ones, the same for the same."""
        fresh: dict[str, Type] = {}
        return tuple([self._rename(type_, fresh) for type_ in types])

    def _rename(self, type_: Type, fresh: dict[str, Type]) -> Type:
        if type_.kind == "param":
            known = fresh.get(type_.name)
            if known is None:
                known = fresh[type_.name] = self.fresh()
            return known
        if not type_.params:
            return type_
        return Type(type_.kind, type_.name, tuple([self._rename(param, fresh) for param in type_.params]))

    def resolve(self, type_: Type, *, to_dyn: bool = False) -> Type:
        """Return a type with known variables replaced; with `to_dyn` unknown ones become dyn."""
        if type_.kind == "param":
            known = self._known.get(type_.name)
            if known is not None:
                return self.resolve(known, to_dyn=to_dyn)
            return DYN if to_dyn else type_
        if not type_.params:
            return type_
        params = tuple([self.resolve(param, to_dyn=to_dyn) for param in type_.params])
        if all(map(is_, params, type_.params)):
            return type_
        return Type(type_.kind, type_.name, params)

    def assign(self, source: Type, target: Type) -> bool:
        """Return whether a type can be used where another is wanted, and bind type variables accordingly."""
        return self.assign_all((source,), (target,))

    def assign_all(self, sources: Sequence[Type], targets: Sequence[Type]) -> bool:
        """Like `assign`, for two lists of types; all or nothing."""
        if len(sources) != len(targets):
            return False
        self._undo = []
        for source, target in zip(sources, targets, strict=True):
            if source.kind == "dyn" and target.kind in _CONCRETE:
                continue
            if not self._assign(source, target):
                for name, before in reversed(self._undo):
                    if before is None:
                        del self._known[name]
                    else:
                        self._known[name] = before
                return False
        return True

    def _remember(self, variable: Type, type_: Type) -> None:
        self._undo.append((variable.name, self._known.get(variable.name)))
        self._known[variable.name] = type_

    def _assign(self, one: Type, two: Type) -> bool:
        if one is two and not one.params and one.kind != "param":
            return True
        if two.kind == "param":
            valid, has_known = self._substitutes(one, two)
            if valid or has_known:
                return valid
        if one.kind == "param":
            return self._substitutes(two, one)[0]
        if is_dyn(one) or is_dyn(two) or one.kind == "error" or two.kind == "error":
            return True
        if one.kind == "null":
            return two.kind == "null" or two.kind in _NULLABLE or two.nullable
        if two.kind == "null":
            return one.kind in _NULLABLE or one.nullable
        if one.kind == "type":
            return two.kind == "type"
        if one.kind in _COMPOUND:
            return (
                one.kind == two.kind
                and one.name == two.name
                and len(one.params) == len(two.params)
                and all(self._assign(mine, other) for mine, other in zip(one.params, two.params, strict=True))
            )
        return one.kind == two.kind and one.name == two.name

    def _substitutes(self, type_: Type, variable: Type) -> tuple[bool, bool]:
        """Return whether a variable can be bound to a type, and whether it was bound before."""
        if type_.kind == "param" and type_.name == variable.name:
            return True, True
        known = self._known.get(variable.name)
        if known is not None:
            if type_ is known or type_ == known:
                return True, True
            if self._assign(type_, known):
                general = most_general(type_, known)
                if self._absent(variable, general):
                    self._remember(variable, general)
                return True, True
            return False, True
        if self._absent(variable, type_):
            self._remember(variable, type_)
            return True, False
        return False, False

    def _absent(self, variable: Type, within: Type) -> bool:
        """Return whether a variable does not occur in a type."""
        if within.kind == "param":
            if within.name == variable.name:
                return False
            known = self._known.get(within.name)
            return known is None or self._absent(variable, known)
        return not within.params or all(self._absent(variable, param) for param in within.params)


@lru_cache(maxsize=256)
def _variable(number: int) -> Type:
    return Type("param", f"_var{number}")


def most_general(one: Type, two: Type) -> Type:
    """Return the less specific of two types that fit together; null gives way to what takes null."""
    if one.kind == "null" or two.kind == "null":
        return two if one.kind == "null" and not is_dyn(one) else one
    return one if _less_specific(one, two) else two


def _less_specific(one: Type, two: Type) -> bool:
    if is_dyn(one) or one.kind == "param":
        return True
    if is_dyn(two) or two.kind == "param" or one.kind != two.kind:
        return False
    if one.kind == "type":
        return True
    if one.kind in _COMPOUND:
        return (
            one.name == two.name
            and len(one.params) == len(two.params)
            and all(_less_specific(mine, other) for mine, other in zip(one.params, two.params, strict=True))
        )
    return one == two
