"""Compiled documents with variables: parse once, render often, share everything that does not change.

`compile_template` walks a document once; `Template.render` returns a new document in which static parts are the very
objects of the original. This module must never scan text that came out of a substitution (that is `rescan`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import TYPE_CHECKING

from pyverno.errors import SubstitutionError
from pyverno.kube.json import JSON, JSONObject
from pyverno.lang.runtime import Runtime
from pyverno.lang.template.location import join_path
from pyverno.lang.template.references import Surroundings, resolve_references
from pyverno.lang.template.slot import Query, Slot, byte_length, compile_slot, text_of
from pyverno.lang.template.syntax import Occurrence, parse_string
from pyverno.value import dataclass, field

if TYPE_CHECKING:
    from pyverno.lang.jmespath import Expression

__all__ = ["DataMark", "Template", "TemplateProblem", "Variable", "compile_template"]

Render = Callable[[Mapping[str, JSON], Runtime, bool, str], JSON]
_DATA = "x"
"""What stands for data in what a policy wrote of a key."""

_Faulty = list[tuple[int, Occurrence, Slot]]

_COPIED_PER_STEP = 8
_MOST_PLACES = 20
"""How many problems of a document have exact places, each text of which is read again."""
_TOO_DEEP = "the document is nested too deeply"


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable as written: expression text (inner variables in braces), where it is, and what it compiles to.

    `expression` is None when the text does not parse; `in_key` means that it is in a map key, whose `path` is that
    of the map. `number` is its number in its text, inner ones first; `is_inner` means that it is in another variable.
    """

    text: str
    path: str
    expression: Expression | None
    is_shallow: bool = False
    in_key: bool = False
    number: int = 0
    is_inner: bool = False


@dataclass(frozen=True, slots=True)
class DataMark:
    """What becomes of the values of variables that read data.

    `is_data` judges a variable by its source. `whole` gets the value of one that is a whole text, `within` a text with
    the pieces that come from such variables. `key` gets keys, whole or not, if they are another case than values, and
    what the policy wrote of them: the key with `x` in place of such pieces.
    """

    is_data: Callable[[str], bool]
    whole: Callable[[JSON], JSON]
    within: Callable[[str, Sequence[str]], str]
    key: Callable[[JSON, str], JSON] | None = None


@dataclass(frozen=True, slots=True)
class TemplateProblem:
    """A fault of a template: the steps to the text at fault, and the offset of the character in it.

    `offset` is None where the whole document is at fault; `in_key` means that the text is the last step itself.
    """

    message: str
    text: str = ""
    steps: tuple[str | int, ...] = ()
    offset: int | None = None
    in_key: bool = False


@dataclass(frozen=True, slots=True)
class Template:
    """A compiled document.

    `document` is what was written, references already resolved; `errors` are the problems known before any
    rendering, with their places; `variables` lists every variable in document order, inner ones first.
    """

    document: JSON
    variables: tuple[Variable, ...] = ()
    errors: tuple[TemplateProblem, ...] = ()
    _render: Render | None = field(default=None, repr=False)
    _failure: str = field(default="", repr=False)
    _steps: int = field(default=0, repr=False)

    @property
    def is_static(self) -> bool:
        """Return whether rendering returns the document itself, whatever the scope."""
        return self._render is None and not self._failure

    def render(
        self, scope: Mapping[str, JSON], runtime: Runtime, *, path: str = "", delete_request: bool = False
    ) -> JSON:
        """Return the document with every variable replaced by its value; the original is not changed.

        A string that is one variable becomes its typed value, otherwise values are inserted as text. `path` is put in
        front of the paths in error texts. On a delete request `request.object` means `request.oldObject`. Raises
        SubstitutionError, or BudgetExceededError when a text would grow too large.

        >>> compile_template({"n": "{{ a }}", "t": "v={{ a }}"}).render({"a": 5}, Runtime())
        {'n': 5, 't': 'v=5'}
        """
        if self._failure:
            raise SubstitutionError(self._failure)
        if self._render is None:
            return self.document
        if self._steps:
            runtime.budget.charge_steps(self._steps)
        try:
            return self._render(scope, runtime, delete_request, path)
        except RecursionError as error:
            raise SubstitutionError(_TOO_DEEP) from error


def compile_template(
    document: JSON,
    *,
    path: str = "",
    rescan: bool = False,
    within: Surroundings | None = None,
    mark: DataMark | None = None,
) -> Template:
    """Compile a document; problems are collected in `Template.errors` and raised by `Template.render`.

    `path` is where the document is in a larger one: it is part of every path in error texts, and the variable `@`
    is resolved by it. References look at the document, or at the one that it is `within`. With `rescan`, values are
    scanned for variables again as Kyverno does, at most 16 rounds deep. `mark` marks values that are data.

    >>> compile_template({"a": 1}).is_static
    True
    """
    try:
        resolved = resolve_references(document, within)
        compiler = _Compiler(resolved, path, mark)
        render = compiler.node(resolved, path)
    except RecursionError:
        return _broken(document, path, _TOO_DEEP)
    except SubstitutionError as error:
        return _broken(document, path, error.message)
    if rescan and render is not None:
        from pyverno.lang.template.rescan import render_rescanning  # off by default

        render = render_rescanning(resolved, path, compiler.queries())
    steps = compiler.copied // _COPIED_PER_STEP
    return Template(resolved, tuple(compiler.variables), tuple(compiler.errors), render, _steps=steps)


def _broken(document: JSON, path: str, message: str) -> Template:
    compiler = _Compiler(document, path)
    try:
        compiler.node(document, path)
    except (RecursionError, SubstitutionError):
        compiler = _Compiler(document, path)
    errors = (TemplateProblem(message), *compiler.errors)
    return Template(document, tuple(compiler.variables), errors, None, message)


class _Compiler:
    """Turns nodes of a document into closures, and notes variables and errors on the way."""

    __slots__ = ("base", "copied", "document", "errors", "mark", "slots", "variables")

    def __init__(self, document: JSON, base: str, mark: DataMark | None = None) -> None:
        self.document = document
        self.base = base
        self.mark = mark
        self.variables: list[Variable] = []
        self.errors: list[TemplateProblem] = []
        self.slots: list[Slot] = []
        self.copied = 0  # items and entries that every rendering copies

    def queries(self) -> dict[str, Query]:
        """Return every compiled query without placeholders by its text."""
        queries = [query for slot in self.slots if not slot.placeholders for query in (slot.query, slot.delete)]
        return {query.text: query for query in queries}

    def node(self, value: JSON, path: str) -> Render | None:
        """Return the closure that renders a value, or None when it is static."""
        if isinstance(value, str):
            return self.text(value, path)
        if isinstance(value, dict):
            return self.map(value, path)
        if isinstance(value, list):
            return self.list(value, path)
        return None

    def list(self, items: list[JSON], path: str) -> Render | None:
        dynamic = [
            (index, render)
            for index, item in enumerate(items)
            if (render := self.node(item, join_path(path, index))) is not None
        ]
        if not dynamic:
            return None
        self.copied += len(items)

        def render_list(scope: Mapping[str, JSON], runtime: Runtime, deleting: bool, prefix: str) -> JSON:
            result = items.copy()
            for index, render in dynamic:
                result[index] = render(scope, runtime, deleting, prefix)
            return result

        return render_list

    def map(self, entries: JSONObject, path: str) -> Render | None:
        compiled: list[tuple[str, Render | None, JSON, Render | None]] = []
        for key, value in entries.items():
            render_key = self.text(key, path, in_key=True)
            compiled.append((key, render_key, value, self.node(value, join_path(path, key))))
        if any(render_key is not None for _, render_key, _, _ in compiled):
            self.copied += _COPIED_PER_STEP * len(compiled)
            return _map_with_dynamic_keys(compiled)
        dynamic = [(key, render) for key, _, _, render in compiled if render is not None]
        if not dynamic:
            return None
        self.copied += len(entries)

        def render_map(scope: Mapping[str, JSON], runtime: Runtime, deleting: bool, prefix: str) -> JSON:
            result = entries.copy()
            for key, render in dynamic:
                result[key] = render(scope, runtime, deleting, prefix)
            return result

        return render_map

    def text(self, text: str, path: str, *, in_key: bool = False) -> Render | None:
        if "{{" not in text:
            return None
        parsed = parse_string(text)
        slots = [compile_slot(occurrence, path) for occurrence in parsed.occurrences]
        self.slots += slots
        faulty: _Faulty = []
        inner = {number for occurrence in parsed.occurrences for number in occurrence.placeholders}
        for number, (occurrence, slot) in enumerate(zip(parsed.occurrences, slots, strict=True)):
            if slot.constant is None:
                expression, is_shallow = slot.query.expression, occurrence.is_shallow
                self.variables.append(
                    Variable(occurrence.source, slot.path, expression, is_shallow, in_key, number, number in inner)
                )
                if expression is None:
                    faulty.append((number, occurrence, slot))
        if faulty:
            self._report(faulty, text, path, in_key=in_key)
        data = self.data(parsed.occurrences)
        if parsed.whole is not None:
            render = _whole(slots[parsed.whole], slots[:-1])
            return (
                _marked(render, self.mark, in_key=in_key) if self.mark is not None and parsed.whole in data else render
            )
        if not slots:
            literal = text.replace("\\{{", "{{")
            return None if literal == text else lambda scope, runtime, deleting, prefix: literal
        return _join(slots, parsed.parts, self.mark, data, in_key=in_key)

    def data(self, occurrences: Sequence[Occurrence]) -> frozenset[int]:
        """Return the numbers of variables whose values are data."""
        if self.mark is None:
            return frozenset()
        return frozenset(number for number, each in enumerate(occurrences) if self.mark.is_data(each.source))

    def _report(self, faulty: _Faulty, text: str, path: str, *, in_key: bool) -> None:
        """Note the variables of one text that do not parse, with their places while there are few."""
        from pyverno.lang.template.positions import VariablePositions, find_steps  # only for what is reported

        exact = max(_MOST_PLACES - len(self.errors), 0)
        steps = find_steps(self.document, path, self.base) if exact else ()
        positions = VariablePositions(text) if exact else None
        for number, occurrence, slot in faulty:
            query = slot.query
            message = f"failed to resolve {occurrence.source} at path {slot.path}: {query.problem}"
            if positions is None or len(self.errors) >= _MOST_PLACES:
                self.errors.append(TemplateProblem(message))
                continue
            offset = positions.find(number, query.offset if query.text == occurrence.text else 0)
            self.errors.append(TemplateProblem(message, text, (*steps, text) if in_key else steps, offset, in_key))


def _whole(slot: Slot, inner: list[Slot]) -> Render:
    if not inner:
        return lambda scope, runtime, deleting, prefix: slot.evaluate(scope, runtime, deleting, prefix, ())

    def render_nested(scope: Mapping[str, JSON], runtime: Runtime, deleting: bool, prefix: str) -> JSON:
        return slot.evaluate(scope, runtime, deleting, prefix, _values(inner, scope, runtime, deleting, prefix))

    return render_nested


def _values(slots: list[Slot], scope: Mapping[str, JSON], runtime: Runtime, deleting: bool, prefix: str) -> list[JSON]:
    values: list[JSON] = []
    for slot in slots:
        values.append(slot.evaluate(scope, runtime, deleting, prefix, values))
    return values


def _marked(render: Render, mark: DataMark, *, in_key: bool) -> Render:
    whole, key = mark.whole, mark.key
    if in_key and key is not None:
        return lambda scope, runtime, deleting, prefix: key(render(scope, runtime, deleting, prefix), _DATA)
    return lambda scope, runtime, deleting, prefix: whole(render(scope, runtime, deleting, prefix))


def _join(
    slots: list[Slot],
    parts: tuple[str | int, ...],
    mark: DataMark | None = None,
    data: Set[int] = frozenset(),
    *,
    in_key: bool = False,
) -> Render:
    def render_text(scope: Mapping[str, JSON], runtime: Runtime, deleting: bool, prefix: str) -> JSON:
        values = _values(slots, scope, runtime, deleting, prefix)
        pieces = [part if isinstance(part, str) else text_of(values[part], runtime.budget) for part in parts]
        runtime.budget.produce(sum(map(byte_length, pieces)))
        text = "".join(pieces)
        if mark is None or not data:
            return text
        if in_key and mark.key is not None:
            own = (_DATA if part in data else piece for part, piece in zip(parts, pieces, strict=True))
            return mark.key(text, "".join(own))
        return mark.within(text, [piece for part, piece in zip(parts, pieces, strict=True) if part in data])

    return render_text


def _map_with_dynamic_keys(compiled: list[tuple[str, Render | None, JSON, Render | None]]) -> Render:
    def render_map(scope: Mapping[str, JSON], runtime: Runtime, deleting: bool, prefix: str) -> JSON:
        result: JSONObject = {}
        for key, render_key, static, render in compiled:
            name = key if render_key is None else render_key(scope, runtime, deleting, prefix)
            value = static if render is None else render(scope, runtime, deleting, prefix)
            result[checked_key(key, name)] = value
        return result

    return render_map


def checked_key(key: str, name: JSON) -> str:
    """Return the new name of a key; null keeps the old one, anything but text is an error."""
    if name is None:
        return key
    if not isinstance(name, str):
        raise SubstitutionError(f'expected string after substituting variables in key "{key}"')
    return name
