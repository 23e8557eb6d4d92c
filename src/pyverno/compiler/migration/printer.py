"""The text of converted policies: YAML whose long CEL expressions are folded at their operators."""

from __future__ import annotations

from typing import Final

from pyverno.compiler.migration.lexical import scan
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.writer import dump_yaml

__all__ = ["fold", "print_policy"]

WIDTH: Final = 96
_EXPRESSIONS: Final = frozenset({"expression", "messageExpression", "valueExpression"})
_OPEN, _CLOSE = "([{", ")]}"


def print_policy(document: JSONObject) -> str:
    """Return a policy as YAML, with long expressions on several lines.

    >>> print(print_policy({"kind": "X", "expression": "a"}), end="")
    kind: X
    expression: a
    """
    return dump_yaml(_fold(document), sort_keys=False)


def _fold(value: JSON, key: str = "") -> JSON:
    match value:
        case dict():
            return {name: _fold(below, name) for name, below in value.items()}
        case list():
            return [_fold(below, key) for below in value]
        case str() if key in _EXPRESSIONS and "\n" not in value:
            return fold(value)
    return value


def fold(text: str, width: int = WIDTH, indent: str = "") -> str:
    r"""Break an expression at `&&`, `||`, `? :` and `+`, or within its last call, until its lines fit.

    >>> print(fold("aaaaaaaa && bbbbbbbb.all(c, cccccccc || dddddddd)", 24))
    aaaaaaaa
    && bbbbbbbb.all(c,
        cccccccc || dddddddd)
    """
    if len(indent) + len(text) <= width:
        return text
    first, rest = _split(text)
    if rest:
        lines = [fold(first, width, indent)]
        lines += [f"{word} {fold(part, width, indent + '  ')}" for word, part in rest]
        return f"\n{indent}".join(lines)
    return _within_call(text, width, indent)


def _split(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Split at the weakest operator that is outside of brackets and quotes."""
    found: dict[str, list[int]] = {}
    depth = 0
    for index, character, is_quoted in scan(text):
        if is_quoted:
            continue
        depth += (character in _OPEN) - (character in _CLOSE)
        if depth or character != " ":
            continue
        for word in ("||", "&&", "?", ":", "+"):
            if text.startswith(f" {word} ", index):
                found.setdefault(word, []).append(index)
    if "?" in found:
        places = sorted((index, word) for word in ("?", ":") for index in found.get(word, []))
    else:
        weakest = next((word for word in ("||", "&&", "+") if word in found), None)
        if weakest is None:
            return text, []
        places = [(index, weakest) for index in found[weakest]]
    ends = [index for index, _ in places[1:]] + [len(text)]
    rest = [(word, text[index + len(word) + 2 : end]) for (index, word), end in zip(places, ends, strict=True)]
    return text[: places[0][0]], rest


def _within_call(text: str, width: int, indent: str) -> str:
    """Break after the comma of a macro, or after the opening bracket of the longest argument list."""
    best: tuple[int, int] | None = None
    stack: list[int] = []
    for index, character, is_quoted in scan(text):
        if is_quoted:
            continue
        if character in _OPEN:
            stack.append(index)
        elif character in _CLOSE and stack:
            start = stack.pop()
            if not stack and (best is None or index - start > best[1] - best[0]):
                best = (start, index)
    if best is None or best[1] - best[0] < width // 4:
        return text
    start, end = best
    inner = text[start + 1 : end]
    deeper = indent + "  "
    comma = _first_comma(inner)
    if comma is not None and comma < width // 2:
        head, body = inner[: comma + 1], inner[comma + 1 :].strip()
        return f"{text[: start + 1]}{head}\n{deeper}{fold(body, width, deeper)}{text[end:]}"
    return f"{text[: start + 1]}\n{deeper}{fold(inner.strip(), width, deeper)}{text[end:]}"


def _first_comma(text: str) -> int | None:
    depth = 0
    for index, character, is_quoted in scan(text):
        if is_quoted:
            continue
        depth += (character in _OPEN) - (character in _CLOSE)
        if character == "," and not depth:
            return index
    return None
