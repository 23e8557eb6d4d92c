"""JSON patches written as text (YAML or JSON) with variables inside.

The text is parsed once, at load, with placeholders where variables are: what a variable yields can never become a
further operation, path or key. A variable that is unquoted and alone keeps its type, as YAML would read it; a
quoted one is text.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyverno.errors import DocumentError, EvaluationError, ExpressionSyntaxError, Location
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.documents import find_value, load_documents
from pyverno.kube.yaml.scalars import resolve_plain
from pyverno.lang.runtime import Budget, Runtime
from pyverno.lang.template.references import Surroundings
from pyverno.lang.template.syntax import parse_string
from pyverno.lang.template.template import Template, compile_template
from pyverno.lazyregex import regex
from pyverno.value import dataclass

__all__ = ["PatchText", "compile_patch_text"]

_OPEN, _CLOSE = "\ue002", "\ue003"
_TOKEN = regex(f"{_OPEN}([0-9]+){_CLOSE}")
_QUOTED = "\ue004"
_MARK = regex(f"{_OPEN}([0-9]+){_CLOSE}{_QUOTED}?")


@dataclass(frozen=True, slots=True)
class PatchText:
    """Compiled operations; `plain` are the paths of values that are one unquoted variable, and of all around them."""

    template: Template
    plain: frozenset[tuple[str | int, ...]] = frozenset()
    has_quoted: bool = False
    text: str = ""

    def positions(self) -> PatchPositions:
        """Return the positions of the operations in the text, which reads the text again."""
        return PatchPositions(self.text)

    def render(self, scope: Mapping[str, JSON], runtime: Runtime, *, delete_request: bool = False) -> list[JSONObject]:
        """Return the operations with their variables resolved; raises SubstitutionError or EvaluationError."""
        rendered = self.template.render(scope, runtime, delete_request=delete_request)
        if isinstance(rendered, str):
            # the whole patch is one expression that makes JSON (`… | to_string(@)`)
            from pyverno.lang.jmespath.jsontext import read_json  # few patches are one expression

            problem = f"patchesJson6902 is not JSON ({len(rendered)} characters)"
            rendered = read_json(rendered, runtime.budget, problem)
        elif self.plain or self.has_quoted:
            try:
                rendered = self._finish(rendered, (), runtime.budget)
            except RecursionError:
                raise EvaluationError("patchesJson6902 is nested too deeply") from None
        if isinstance(rendered, dict):
            rendered = [rendered]
        if not isinstance(rendered, list) or not all(isinstance(item, dict) for item in rendered):
            raise EvaluationError("patchesJson6902 must be a list of operations")
        return rendered

    def _finish(self, value: JSON, path: tuple[str | int, ...], budget: Budget) -> JSON:
        if isinstance(value, str):
            if path in self.plain:
                return resolve_plain(value)
            return value.replace(_QUOTED, "") if self.has_quoted else value
        if isinstance(value, dict | list):
            budget.charge_steps(1 + len(value))
        if isinstance(value, list):
            return [self._finish(item, (*path, index), budget) for index, item in enumerate(value)]
        if isinstance(value, dict) and (self.has_quoted or path in self.plain):
            return {
                (key.replace(_QUOTED, "") if self.has_quoted else key): self._finish(item, (*path, key), budget)
                for key, item in value.items()
            }
        return value


class PatchPositions:
    """The positions in the text of a patch of the values of its operations; made by reading the text once."""

    __slots__ = ("_document", "_marked", "_spans")

    def __init__(self, text: str) -> None:
        self._marked, self._spans = _mark(text)
        self._document = load_documents(self._marked, file="patchesJson6902")[0]

    def find(self, path: tuple[str | int, ...], offset: int | None = None) -> int:
        """Return the index in the text of the value at a path of the operations, or of a character of it."""
        value = find_value(self._document.value, path)
        if offset is not None and isinstance(value, str):
            grown = 0
            for match in _TOKEN.finditer(value):
                start, end = self._spans[int(match[1])]
                begin = match.start() + grown
                if begin <= offset < begin + end - start:
                    return start + offset - begin
                if offset >= begin:
                    grown += end - start - len(match[0])
            offset -= grown
        return _written_index(self._document.text_index(path, offset), self._marked, self._spans)


def compile_patch_text(text: str, path: str = "", within: JSON = None) -> PatchText:
    """Compile the text of `patchesJson6902`; raises ExpressionSyntaxError when it is neither YAML nor JSON.

    `path` is where the text is: it begins every path in error texts. References look at the document `within`, where
    the text has that path, or else at the operations.

    >>> patch = compile_patch_text('- {op: add, path: /a, value: "{{ n }}"}')
    >>> patch.render({"n": 5}, Runtime())
    [{'op': 'add', 'path': '/a', 'value': '5'}]
    """
    marked, spans = _mark(text)
    tokens = [text[start:end] for start, end in spans]
    try:
        documents = load_documents(marked, file="patchesJson6902")
    except DocumentError as error:
        offset = _fault_offset(text, error.location)
        message = f"invalid patchesJson6902: {error.message}"
        raise ExpressionSyntaxError(message, offset=offset, location=error.location) from error
    if len(documents) != 1:
        raise ExpressionSyntaxError(f"invalid patchesJson6902: expected one list of operations, found {len(documents)}")
    plain: set[tuple[str | int, ...]] = set()
    try:
        document = _unmark(documents[0].value, tokens, (), plain)
    except RecursionError:
        raise ExpressionSyntaxError("invalid patchesJson6902: nested too deeply") from None
    surroundings = None if within is None else Surroundings(within, path, is_text=True)
    template = compile_template(document, path=path, within=surroundings)
    return PatchText(template, frozenset(plain), _QUOTED in marked, text)


def _fault_offset(text: str, location: Location | None) -> int:
    """Return the index in the text of the place that a reader of the marked text complained of."""
    marked, spans = _mark(text)
    if location is None or not location.line:
        return 0
    lines = marked.split("\n")[: location.line - 1]
    return _written_index(sum(len(line) + 1 for line in lines) + location.column - 1, marked, spans)


def _written_index(index: int, marked: str, spans: list[tuple[int, int]]) -> int:
    """Return the index in the text of a character of the marked text; of a token, where its variable begins."""
    grown = 0
    for match in _MARK.finditer(marked):
        start, end = spans[int(match[1])]
        if index < match.end():
            return start if index >= match.start() else index + grown
        grown += end - start - len(match[0])
    return index + grown


def _mark(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Replace every outermost variable by a token, and return where each variable begins and ends in the text.

    A token that fills its quotes is marked as text.
    """
    spans: list[tuple[int, int]] = []
    pieces: list[str] = []
    for part in _outermost(text):
        if isinstance(part, str):
            pieces.append(part)
            continue
        start, end = part
        number = len(spans)
        spans.append(part)
        before, after = text[start - 1 : start], text[end : end + 1]
        quoted = before in ('"', "'") and before == after
        pieces.append(f"{_OPEN}{number}{_CLOSE}{_QUOTED if quoted else ''}")
    return "".join(pieces), spans


def _outermost(text: str) -> list[str | tuple[int, int]]:
    parts: list[str | tuple[int, int]] = []
    position = 0
    while True:
        start = text.find("{{", position)
        if start < 0:
            parts.append(text[position:])
            return parts
        if start and text[start - 1] == "\\":
            parts.append(text[position : start + 2])
            position = start + 2
            continue
        end = _closing(text, start)
        if end < 0:
            parts.append(text[position:])
            return parts
        parts.append(text[position:start])
        parts.append((start, end))
        position = end


def _closing(text: str, start: int) -> int:
    """Return where the variable that opens at `start` ends, or -1; braces nest."""
    depth = 0
    position = start
    while position < len(text):
        if text.startswith("{{", position):
            depth += 1
            position += 2
        elif text.startswith("}}", position) and depth:
            depth -= 1
            position += 2
            if not depth:
                return position
        else:
            position += 1
    return -1


def _unmark(value: JSON, tokens: list[str], path: tuple[str | int, ...], plain: set[tuple[str | int, ...]]) -> JSON:
    if isinstance(value, str):
        if _OPEN not in value:
            return value
        whole = _TOKEN.fullmatch(value)
        if whole and parse_string(tokens[int(whole[1])]).whole is not None:
            place = path
            while place not in plain:  # all around a known place is known
                plain.add(place)
                place = place[:-1]
        return _TOKEN.sub(lambda match: tokens[int(match[1])], value)
    if isinstance(value, list):
        return [_unmark(item, tokens, (*path, index), plain) for index, item in enumerate(value)]
    if isinstance(value, dict):
        return {
            _TOKEN.sub(lambda match: tokens[int(match[1])], key): _unmark(item, tokens, (*path, key), plain)
            for key, item in value.items()
        }
    return value
