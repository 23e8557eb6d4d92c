"""The page of error codes: the exception tree, and the codes of problems found in policies."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyverno
from pyverno import errors
from scripts.reference_pages.markdown import cell, code, page, table

__all__ = ["error_codes"]

_KEBAB = re.compile(r"[a-z]+(-[a-z]+)*")
_SOURCES = ("policy", "compiler")


def error_codes() -> str:
    """Return the exceptions with their codes, and every code of a PolicyError with its texts."""
    tree = (errors.__doc__ or "").partition("\n\n")[2].partition("\n\n")[0]
    rows = ((code(name), code(kind.code), cell(_first(kind))) for name, kind in _exceptions())
    found: dict[str, dict[str, None]] = {}
    for name, text in _problems():
        texts = found.setdefault(name, {})
        if text:
            texts[text] = None
    problems = ((code(name), "<br>".join(map(cell, found[name]))) for name in sorted(found))
    return page(
        "Errors",
        "Every exception that pyverno raises on purpose has a stable `code`; its text is for people and may change.",
        f"```\n{tree}\n```",
        table(("exception", "code", "when"), rows),
        "## Codes of problems in policies",
        "A `PolicyError` carries one of these codes, the place in the file and the field path. `...` stands for what "
        "the policy says.",
        table(("code", "texts"), problems),
    )


def _exceptions() -> list[tuple[str, type[errors.PyvernoError]]]:
    return [
        (name, kind)
        for name in errors.__all__
        if inspect.isclass(kind := getattr(errors, name)) and issubclass(kind, errors.PyvernoError)
    ]


def _first(kind: type) -> str:
    return (inspect.getdoc(kind) or "").split("\n\n")[0].replace("\n", " ")


def _problems() -> Iterator[tuple[str, str]]:
    """Yield (code, text) of every call `something.error("code", ..., text)` in the packages that judge policies."""
    root = Path(pyverno.__file__).parent
    for package in _SOURCES:
        for file in sorted((root / package).rglob("*.py")):
            module = ast.parse(file.read_text(encoding="utf-8"))
            constants = _assigned(module.body)
            for function in ast.walk(module):
                if isinstance(function, ast.FunctionDef):
                    yield from _problems_in(function, constants)


def _problems_in(function: ast.FunctionDef, constants: dict[str, list[tuple[int, str]]]) -> Iterator[tuple[str, str]]:
    known = {**constants, **_assigned(ast.walk(function))}
    for node in ast.walk(function):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "error":
            continue
        match node.args:
            case [ast.Constant(value=str(name)), *_, text] if _KEBAB.fullmatch(name):
                yield name, _text(text, known)


def _assigned(nodes: Iterable[ast.AST]) -> dict[str, list[tuple[int, str]]]:
    """Return the texts that names are given, each with its line."""
    found: dict[str, list[tuple[int, str]]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and (text := _text(node.value, {})):
            found.setdefault(node.targets[0].id, []).append((node.lineno, text))
    return found


def _text(node: ast.expr, known: dict[str, list[tuple[int, str]]]) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_text(part, known) if isinstance(part, ast.Constant) else "..." for part in parts)
        case ast.Name(id=name) if name in known:
            before = [text for line, text in sorted(known[name]) if line <= node.lineno]
            return before[-1] if before else known[name][0][1]
    return ""
