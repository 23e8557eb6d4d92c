"""Conformance of the CEL engine: the tests of google/cel-spec as JSON, run one by one.

`run(folder)` yields one outcome per test: its id, `passed`, `failed` or `skipped`, and why. Tests that need protobuf
messages are skipped, and so are the few in `EXCEPTIONS`. Values, errors (any error will do, texts differ between
implementations) and deduced types are compared.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyverno.errors import EvaluationError
from pyverno.lang.cel.declarations import Declaration, Library, Overload
from pyverno.lang.cel.environment import Environment
from pyverno.lang.cel.libraries.addresses import NETWORK
from pyverno.lang.cel.libraries.bindings import BINDINGS, TWO_VARIABLE_COMPREHENSIONS
from pyverno.lang.cel.libraries.encoders import ENCODERS
from pyverno.lang.cel.libraries.lists import LISTS
from pyverno.lang.cel.libraries.math import MATH
from pyverno.lang.cel.libraries.optionals import OPTIONALS
from pyverno.lang.cel.libraries.sets import SETS
from pyverno.lang.cel.libraries.standard import CROSS_TYPE_COMPARISONS, SPECIFIED_LIBRARY
from pyverno.lang.cel.libraries.strings import STRINGS
from pyverno.lang.cel.scalars import Duration, Timestamp, TypeValue, Uint
from pyverno.lang.cel.syntax import ast
from pyverno.lang.cel.syntax.macros import MacroTable, NewId
from pyverno.lang.cel.syntax.source import CompileError
from pyverno.lang.cel.times import parse_duration, parse_timestamp
from pyverno.lang.cel.types import (
    Signature,
    Type,
    list_of,
    map_of,
    opaque,
    wrapper_of,
)
from pyverno.lang.cel.types import parse_type as parse_known_type
from pyverno.lang.cel.values import MISSING as NOT_FOUND
from pyverno.lang.cel.values import Optional, Value, map_find, map_items, new_map, type_name
from pyverno.lang.cel.wellknown import WellKnownTypes
from pyverno.lang.cel.work import instant

__all__ = ["run"]

SKIPPED = {"message": "needs protobuf messages, which Kubernetes does not have"}
_LOST_ESCAPE = "the corpus lost a backslash: its expression has `?` where the expected bytes have `\\?`"
_OFFSET = "cel-go, which Kubernetes runs, answers -1 for a start beyond the text; cel-spec wants an error"
EXCEPTIONS = {
    "parse/bytes_literals/triple_single_quoted_unescaped_punctuation": _LOST_ESCAPE,
    "parse/bytes_literals/triple_double_quoted_unescaped_punctuation": _LOST_ESCAPE,
    "string_ext/value_errors/indexof_out_of_range": _OFFSET,
    "string_ext/value_errors/lastindexof_out_of_range": _OFFSET,
}
"""Tests whose expectation is not Kubernetes' behaviour, with the reason."""


def _block(new_id: NewId, offset: int, target: ast.Node | None, args: tuple[ast.Node, ...]) -> ast.Node | None:
    """Read `cel.block([a, b], result)`, an optimiser's form: bind @index0, @index1, ... around the result."""
    if not isinstance(args[0], ast.ListLiteral):
        return None
    body = args[1]
    for position, value in reversed(tuple(enumerate(args[0].elements))):
        body = ast.Bind(new_id(), offset, f"@index{position}", value, body)
    return body


def _numbered(prefix: str) -> Any:
    def expand(new_id: NewId, offset: int, target: ast.Node | None, args: tuple[ast.Node, ...]) -> ast.Node:
        numbers = "_".join(str(arg.value) for arg in args if isinstance(arg, ast.Literal))
        return ast.Ident(new_id(), offset, f"@{prefix}{numbers}")

    return expand


BLOCK_MACROS: MacroTable = {
    ("block", 2, True): _block,
    ("index", 1, True): _numbered("index"),
    ("iterVar", 2, True): _numbered("it"),
    ("accuVar", 2, True): _numbered("ac"),
}
LIBRARIES = (
    SPECIFIED_LIBRARY, CROSS_TYPE_COMPARISONS, OPTIONALS, STRINGS.at(4), MATH, ENCODERS, LISTS, SETS, BINDINGS,
    TWO_VARIABLE_COMPREHENSIONS, NETWORK, Library("block", macros=BLOCK_MACROS),
)  # fmt: skip
_WELL_KNOWN = WellKnownTypes()


def run(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield (id, outcome, detail) of every test below a folder."""
    for path in sorted(folder.glob("*.json")):
        for test in json.loads(path.read_text())["tests"]:
            identity = f"{path.stem}/{test['section']}/{test['name']}"
            if test.get("proto") in SKIPPED:
                yield identity, "skipped", SKIPPED[test["proto"]]
                continue
            if identity in EXCEPTIONS:
                yield identity, "skipped", EXCEPTIONS[identity]
                continue
            problem = _problem(test)
            yield identity, "failed" if problem else "passed", problem


def _problem(test: dict[str, Any]) -> str:
    """Return the error in our answer to a test, or an empty text."""
    expected = test["expect"]
    wants_error = expected["kind"] == "eval_error"
    try:
        program = _environment(test).compile(test["expr"], lenient=bool(test.get("disable_check")))
        deduced = expected.get("deduced_type")
        if deduced is not None and program.type != parse_type(deduced):
            return f"deduced {program.type}, expected {deduced}"
        if test.get("check_only"):
            return ""
        value = program.evaluate({name: decode(item) for name, item in test.get("bindings", {}).items()})
    except (CompileError, EvaluationError) as error:
        return "" if wants_error else f"{test['expr']}: {error}"
    if wants_error:
        return f"{test['expr']}: gave {value!r} instead of an error"
    if "value" in expected and not same(decode(expected["value"]), value):
        return f"{test['expr']}: gave {value!r}, expected {expected['value']}"
    return ""


def _environment(test: dict[str, Any]) -> Environment:
    variables: dict[str, Type] = {}
    functions: list[Declaration] = []
    for item in test.get("type_env") or ():
        if "ident" in item:
            variables[item["name"]] = parse_type(item["ident"])
        else:
            functions.append(Declaration(item["name"], tuple(map(_overload, item["overloads"])), ""))
    return Environment(
        (*LIBRARIES, Library("test", tuple(functions))),
        variables,
        structs=_WELL_KNOWN,
        container=test.get("container") or "",
        constants=_WELL_KNOWN.constants,
        strict_presence=True,
    )


def _overload(item: dict[str, Any]) -> Overload:
    params = tuple(parse_type(param) for param in item["params"])
    signature = Signature(params, parse_type(item["result"]), item["instance"])
    return Overload(signature, lambda *_: None, instant)


_SPECIAL = re.compile(r"message\((.*)\)|param\((\w)\)")


def parse_type(text: str) -> Type:
    """Return a type written in the corpus: `message(name)` and `param(T)` beside our own forms."""
    match = _SPECIAL.fullmatch(text)
    if match and match.group(1):
        return _WELL_KNOWN.struct_type(match.group(1))
    if match:
        return Type("param", match.group(2))
    head, _, rest = text.partition("(")
    if not rest:
        return parse_known_type(text)
    params = tuple(parse_type(part) for part in _split(rest[:-1]))
    if head == "list":
        return list_of(*params)
    if head == "map":
        return map_of(*params)
    if head == "wrapper":
        return wrapper_of(*params)
    return Type("type", params=params) if head == "type" else opaque(head, *params)


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for position, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    return [*parts, text[start:].strip()]


def decode(item: dict[str, Any]) -> Value:
    """Return the value that the corpus writes as a tagged object."""
    kind, value = item["type"], item.get("value")
    if kind == "int":
        return int(value)
    if kind == "uint":
        return Uint(value)
    if kind == "double":
        return float(value)
    if kind == "bytes":
        return base64.b64decode(item["base64"])
    if kind == "list":
        return [decode(element) for element in item["values"]]
    if kind == "map":
        return new_map([(decode(key), decode(entry)) for key, entry in item["entries"]])
    if kind == "timestamp":
        return parse_timestamp(value)
    if kind == "duration":
        return parse_duration(value)
    if kind == "type":
        return TypeValue({"null": "null_type"}.get(value, value))
    if kind == "message":
        return _message(item)
    return value


def _message(item: dict[str, Any]) -> Value:
    """Return a well-known message as CEL sees it."""
    value, wrapped = item["json"], item.get("wrapper_of")
    if wrapped in ("int", "uint"):
        return Uint(value) if wrapped == "uint" else int(value)
    return base64.b64decode(value) if wrapped == "bytes" else value


def same(expected: Value, actual: Value) -> bool:
    """Return whether two values are of one type and equal; NaN is like NaN."""
    if type_name(expected) != type_name(actual):
        return False
    if isinstance(expected, float):
        return (math.isnan(expected) and math.isnan(actual)) or (
            expected == actual and math.copysign(1, expected) == math.copysign(1, actual)
        )
    if isinstance(expected, (list, tuple)):
        return len(expected) == len(actual) and all(map(same, expected, actual))
    if isinstance(expected, dict):
        pairs = ((value, map_find(actual, key)) for key, value in map_items(expected))
        return len(expected) == len(actual) and all(other is not NOT_FOUND and same(one, other) for one, other in pairs)
    if isinstance(expected, (Timestamp, Duration, Optional, TypeValue)):
        return bool(expected == actual)
    return bool(expected == actual)
