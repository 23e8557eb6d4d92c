"""Changes of an object as CEL: operations of a JSON patch, under conditions and for elements of lists.

A tree of changes becomes one expression that gives a list of JSONPatch. All conditions look at the object as it was
before; operations run one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pyverno.compiler.migration.text import TRUE, Cel, CelType, Level, all_of, quote, ternary
from pyverno.value import dataclass, replace

__all__ = ["Change", "Each", "Operation", "Pointer", "When", "render_changes", "when"]

_EMPTY: Final = Cel("[]", CelType.LIST)


@dataclass(frozen=True, slots=True)
class Pointer:
    """A JSON pointer: constant text, and parts that are computed.

    >>> str(Pointer().key("spec").key("containers").index(Cel("i")).key("a/b").text())
    "'/spec/containers/' + string(i) + '/a~1b'"
    """

    parts: tuple[str | Cel, ...] = ()

    def key(self, name: str) -> Pointer:
        """Return the pointer to a field or entry."""
        return self._with("/" + name.replace("~", "~0").replace("/", "~1"))

    def index(self, number: Cel) -> Pointer:
        """Return the pointer to an element."""
        if number.text.isdigit():
            return self._with("/" + number.text)
        return self._with("/")._with(Cel(f"string({number.text})", CelType.STRING))

    def last(self) -> Pointer:
        """Return the pointer behind the last element."""
        return self._with("/-")

    def computed_key(self, name: Cel) -> Pointer:
        """Return the pointer to an entry whose name is computed."""
        return self._with("/")._with(Cel(f"jsonpatch.escapeKey({name.text})", CelType.STRING))

    def text(self) -> Cel:
        """Return the pointer as an expression."""
        if not self.parts:
            return Cel("''", CelType.STRING)
        texts = [quote(each) if isinstance(each, str) else each.within(Level.SUM) for each in self.parts]
        return Cel(" + ".join(texts), CelType.STRING, Level.SUM if len(texts) > 1 else Level.PRIMARY)

    def mentions(self, variable: str) -> bool:
        """Return whether a part is computed from a variable of a loop."""
        return any(isinstance(each, Cel) and f"({variable})" in each.text for each in self.parts)

    def _with(self, part: str | Cel) -> Pointer:
        if isinstance(part, str) and self.parts and isinstance(self.parts[-1], str):
            return replace(self, parts=(*self.parts[:-1], self.parts[-1] + part))
        return replace(self, parts=(*self.parts, part))


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a JSON patch."""

    op: str
    path: Pointer
    value: Cel | None = None
    source: Pointer | None = None

    @property
    def text(self) -> str:
        """The operation as CEL."""
        fields = [f"op: {quote(self.op)}"]
        if self.source is not None:
            fields.append(f"from: {self.source.text().text}")
        fields.append(f"path: {self.path.text().text}")
        if self.value is not None:
            fields.append(f"value: {self.value.text}")
        return f"JSONPatch{{{', '.join(fields)}}}"


@dataclass(frozen=True, slots=True)
class When:
    """Changes under a condition, and others where it does not hold."""

    condition: Cel
    then: tuple[Change, ...]
    otherwise: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Each:
    """Changes for each element of a list whose number fulfils a condition; `variable` holds the number.

    `items` is the list where it is there, if `elements` is an empty one elsewhere.
    """

    elements: Cel
    variable: str
    condition: Cel
    changes: tuple[Change, ...]
    is_reversed: bool = False
    items: Cel = _EMPTY


Change = Operation | When | Each


def when(condition: Cel, then: Iterable[Change], otherwise: Iterable[Change] = ()) -> tuple[Change, ...]:
    """Return changes under a condition, without the condition where it is constant."""
    yes, no = tuple(then), tuple(otherwise)
    if condition.text == "true" or not (yes or no):
        return yes
    if condition.text == "false":
        return no
    if not yes:
        return (When(condition.not_(), no),)
    return (When(condition, yes, no),)


def render_changes(changes: Sequence[Change]) -> Cel:
    """Return the expression that gives the operations.

    >>> name = Pointer().key("spec").key("hostname")
    >>> render_changes([When(Cel("has(object.spec.hostname)"), (Operation("remove", name),))]).text
    "has(object.spec.hostname) ? [JSONPatch{op: 'remove', path: '/spec/hostname'}] : []"
    """
    parts: list[Cel] = []
    plain: list[str] = []

    def close() -> None:
        if plain:
            parts.append(Cel(f"[{', '.join(plain)}]", CelType.LIST))
            plain.clear()

    for change in changes:
        match change:
            case Operation():
                plain.append(change.text)
            case When():
                close()
                parts.append(ternary(change.condition, render_changes(change.then), render_changes(change.otherwise)))
            case Each():
                close()
                parts.append(_render_each(change))
    close()
    if not parts:
        return _EMPTY
    if len(parts) == 1:
        return parts[0]
    return Cel(" + ".join(each.within(Level.PRODUCT) for each in parts), CelType.LIST, Level.SUM)


def _render_each(each: Each) -> Cel:
    size = Cel(f"{each.elements.within(Level.PRIMARY)}.size()", CelType.INT)
    numbers = Cel(f"lists.range({size.text})", CelType.LIST)
    if each.is_reversed:
        numbers = numbers.method("reverse", returns=CelType.LIST)
    condition, changes = each.condition, each.changes
    while len(changes) == 1 and isinstance(changes[0], When) and not changes[0].otherwise:
        condition, changes = all_of([condition, changes[0].condition]), changes[0].then
    if condition.text != TRUE.text:
        numbers = numbers.macro("filter", each.variable, condition, CelType.LIST)
    if len(changes) == 1 and isinstance(changes[0], Operation):
        return Cel(f"{numbers.text}.map({each.variable}, {changes[0].text})", CelType.LIST)
    body = render_changes(changes)
    return Cel(f"{numbers.text}.map({each.variable}, {body.text}).flatten()", CelType.LIST)
