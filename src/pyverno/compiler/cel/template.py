"""Templates of GeneratingPolicies: YAML documents with `(( expressions ))`, parsed and compiled once.

A placeholder that is the whole of a string keeps the type of its value, any other must be a scalar. Keys hold no
placeholders. What an expression yields is data and never looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyverno.compiler.cel.environment import CelCompiler
from pyverno.engine.actions.cel.generate import TemplateSource
from pyverno.engine.cel.session import CelSession
from pyverno.errors import DocumentError, EvaluationError
from pyverno.kube.json import JSON, JSONObject, go_text
from pyverno.kube.yaml.documents import expand_lists, load_documents
from pyverno.kube.yaml.fieldpath import Path
from pyverno.lang.cel import Program
from pyverno.lang.cel.json_values import to_json

__all__ = ["lower_template"]

Render = Callable[[CelSession], JSON]


def lower_template(text: str, path: Path, compiler: CelCompiler, *, is_interpolated: bool) -> TemplateSource | None:
    """Compile a template; None when it is not valid (which is reported)."""
    try:
        documents = [document.value for document in expand_lists(load_documents(text, file="template"))]
    except DocumentError as error:
        compiler.parser.report(f"the template is not valid YAML: {error.message}", path, code="template")
        return None
    if not all(isinstance(document, dict) for document in documents):
        compiler.parser.report("every document of a template must be an object", path, code="template")
        return None
    if not is_interpolated:
        return lambda session: documents
    known = len(compiler.parser.errors)
    renders = [_Compiler(compiler, path).value(document) for document in documents]
    if len(compiler.parser.errors) > known:
        return None

    def rendered(session: CelSession) -> Sequence[JSONObject]:
        pairs = zip(documents, renders, strict=True)
        return [document if render is None else render(session) for document, render in pairs]

    return rendered


class _Compiler:
    """Turns values with placeholders into functions of a session; None means that a value has none."""

    __slots__ = ("compiler", "path")

    def __init__(self, compiler: CelCompiler, path: Path) -> None:
        self.compiler = compiler
        self.path = path

    def value(self, value: JSON) -> Render | None:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            items = [(item, self.value(item)) for item in value]
            if not any(render for _, render in items):
                return None
            return lambda session: [item if render is None else render(session) for item, render in items]
        if isinstance(value, dict):
            return self.map(value)
        return None

    def map(self, value: JSONObject) -> Render | None:
        for key in value:
            if "((" in key.replace("\\((", ""):
                self.report(f"placeholders are not supported in mapping keys; key {key!r}")
        entries = [(key.replace("\\((", "(("), item, self.value(item)) for key, item in value.items()]
        if not any(render for _, _, render in entries) and all(key in value for key, _, _ in entries):
            return None
        return lambda session: {key: item if render is None else render(session) for key, item, render in entries}

    def text(self, text: str) -> Render | None:
        if "((" not in text:
            return None
        parts: list[str | tuple[str, Program | None]] = []
        position = 0
        while True:
            start = text.find("((", position)
            if start < 0:
                parts.append(text[position:])
                break
            if start and text[start - 1] == "\\":
                parts.append(text[position : start - 1] + "((")
                position = start + 2
                continue
            end = _closing(text, start + 2)
            if end < 0:
                self.report(f"unclosed placeholder at offset {start}")
                return None
            parts.append(text[position:start])
            parts.append((text[start : end + 2], self.program(text[start + 2 : end], start)))
            position = end + 2
        return _rendering([part for part in parts if part != ""])

    def program(self, text: str, offset: int) -> Program | None:
        if not text.strip():
            self.report(f"empty placeholder at offset {offset}")
            return None
        return self.compiler.compile(text.strip(), self.path)

    def report(self, message: str) -> None:
        self.compiler.parser.report(message, self.path, code="template")


def _closing(text: str, start: int) -> int:
    """Return where the `))` of a placeholder begins; strings and nested parentheses of the expression are skipped."""
    depth, position, quote = 0, start, ""
    while position < len(text):
        character = text[position]
        if quote:
            if character == "\\":
                position += 1
            elif character == quote:
                quote = ""
        elif character in "'\"":
            quote = character
        elif character == "(":
            depth += 1
        elif character == ")":
            if depth == 0:
                return position if text.startswith("))", position) else -1
            depth -= 1
        position += 1
    return -1


def _rendering(parts: list[str | tuple[str, Program | None]]) -> Render:
    if len(parts) == 1 and isinstance(parts[0], tuple):
        _, program = parts[0]
        return lambda session: None if program is None else to_json(session.evaluate(program))

    def joined(session: CelSession) -> str:
        pieces = []
        for part in parts:
            if isinstance(part, str):
                pieces.append(part)
                continue
            source, program = part
            value = None if program is None else to_json(session.evaluate(program))
            if isinstance(value, dict | list) or value is None:
                kind = "map" if isinstance(value, dict) else "list" if isinstance(value, list) else "null"
                raise EvaluationError(
                    f'placeholder "{source}" embedded in a string must evaluate to a scalar, found a {kind}'
                )
            pieces.append(value if isinstance(value, str) else go_text(value))
        session.run.runtime.budget.produce(sum(map(len, pieces)))
        return "".join(pieces)

    return joined
