"""The way in: a text with variables in braces, or a JMESPath expression, becomes a value in CEL."""

from __future__ import annotations

from pyverno.compiler.migration.expressions.concatenation import concatenated
from pyverno.compiler.migration.expressions.names import Names
from pyverno.compiler.migration.expressions.translator import Translator
from pyverno.compiler.migration.expressions.value import TEXTS, Value, constant, written_list
from pyverno.compiler.migration.outcome import UnconvertibleError
from pyverno.errors import ExpressionSyntaxError, SubstitutionError
from pyverno.kube.json import JSON
from pyverno.lang.jmespath.ast import Node
from pyverno.lang.jmespath.expression import compile_expression
from pyverno.lang.template.syntax import has_variables, parse_string

__all__ = ["is_static", "translate", "translate_query"]


def is_static(document: JSON) -> bool:
    """Return whether a part of a policy has no variables.

    >>> is_static(["a", 1]), is_static({"a": "{{ b }}"})
    (True, False)
    """
    return not has_variables(document)


def translate(document: JSON, names: Names, path: str) -> Value:
    """Translate a value of a policy that may contain variables; a missing field at the end of one is an error.

    >>> from pyverno.compiler.migration.expressions.names import names_of
    >>> from pyverno.compiler.migration.text import Reference
    >>> names = names_of(Reference("object"))
    >>> translate("a-{{ request.operation }}", names, "").cel.text
    "'a-' + request.operation"
    """
    if is_static(document):
        return constant(document)
    if isinstance(document, list):
        return _translate_list(document, names, path)
    if not isinstance(document, str):
        raise UnconvertibleError("variable-in-map", path, "a map with variables inside", "write the expression by hand")
    try:
        parsed = parse_string(document)
    except SubstitutionError as error:
        raise UnconvertibleError("syntax", path, error.message, "mend the expression") from error
    values: list[Value] = []
    for occurrence in parsed.occurrences:
        if occurrence.constant is not None:
            values.append(constant(occurrence.constant))
            continue
        placeholders = tuple(values[number] for number in occurrence.placeholders)
        node = _parse(occurrence.text, path)
        values.append(Translator(names, path, placeholders).loud(node))
    if parsed.whole is not None:
        return values[parsed.whole]
    return concatenated([part if isinstance(part, str) else values[part] for part in parsed.parts], path)


def translate_query(text: str, names: Names, path: str, *, current: Value | None = None, loud: bool = False) -> Value:
    """Translate an expression without surrounding text (`list`, `jmesPath`), on a value or on all names.

    Variables in braces inside of it fill its placeholders. A missing field is null, unless it is `loud`.
    """
    placeholders: list[Value] = []
    if "{{" in text:
        text, placeholders = _with_placeholders(text, names, path)
    translator = Translator(names, path, tuple(placeholders))
    node = _parse(text, path)
    return translator.loud(node, current) if loud else translator.quiet(node, current)


def _with_placeholders(text: str, names: Names, path: str) -> tuple[str, list[Value]]:
    parsed = parse_string(text)
    if parsed.whole is not None or any(each.placeholders or each.constant for each in parsed.occurrences):
        raise UnconvertibleError(
            "nested-variables", path, "an expression that is computed", "write the expression by hand"
        )
    pieces: list[str] = []
    placeholders: list[Value] = []
    for part in parsed.parts:
        if isinstance(part, int):
            pieces.append(f"\ue000{len(placeholders)}\ue001")
            placeholders.append(Translator(names, path).loud(_parse(parsed.occurrences[part].text, path)))
        else:
            pieces.append(part)
    return "".join(pieces), placeholders


def _translate_list(items: list[JSON], names: Names, path: str) -> Value:
    parts = tuple(translate(item, names, f"{path}[{index}]") for index, item in enumerate(items))
    return Value(written_list(parts), TEXTS, parts=parts, fails=any(part.fails for part in parts))


def _parse(text: str, path: str) -> Node:
    try:
        return compile_expression(text).ast
    except ExpressionSyntaxError as error:
        raise UnconvertibleError("syntax", path, error.message, "mend the expression") from error
