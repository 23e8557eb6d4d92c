"""Expressions of scenarios: JMESPath with bindings (`$name`), and texts `(expression)` in documents.

A binding is a value that is fixed while an expression runs, so it is written into the expression as a literal. This
module must never ask a cluster.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pyverno.errors import ExpressionError, UnknownKeyError
from pyverno.kube.json import encode
from pyverno.lang.jmespath import compile_expression
from pyverno.lang.runtime import Runtime
from tests.conformance.chainsaw.failure import ScenarioFailure

__all__ = ["Bindings", "evaluate", "expression_of", "substitute"]

Bindings = Mapping[str, Any]
# a text of several lines is just a text
_EXPRESSION = re.compile(r"\((?:\w+;)?(.+)\)")
_RENAMED = {"json_parse": "parse_json", "trim_space": "to_string"}
"""Functions of chainsaw by our names; what scripts say comes without space around it."""
_VERSION = "x_k8s_server_version($config)"
_VERSION_BINDING = "$server_version"
"""The runner reads `/version` before a scenario runs, because an expression makes no request."""
_TOKEN = re.compile(
    r"""'(?:\\.|[^'\\])*' | `(?:\\.|[^`\\])*` | "(?:\\.|[^"\\])*" | \$(?P<name>[A-Za-z_]\w*)""", re.VERBOSE | re.DOTALL
)


def expression_of(text: Any) -> str | None:
    """Return the expression that a text of a scenario stands for, None when it is just a text.

    >>> expression_of("(length(@))"), expression_of("plain"), expression_of(3)
    ('length(@)', None, None)
    """
    found = _EXPRESSION.fullmatch(text) if isinstance(text, str) else None
    return found[1].strip() if found else None


def evaluate(expression: str, value: Any, bindings: Bindings) -> Any:
    """Return what an expression gives on a value; a key that is not there is null, as chainsaw's dialect has it.

    >>> evaluate("a.b || $other", {"a": {}}, {"other": [1]})
    [1]
    """
    expression = expression.replace(_VERSION, _VERSION_BINDING)
    text = _TOKEN.sub(lambda token: _written(token, bindings), expression)
    for name, ours in _RENAMED.items():
        text = text.replace(f"{name}(", f"{ours}(")
    try:
        return compile_expression(text).evaluate(value, Runtime())
    except UnknownKeyError:
        return None
    except ExpressionError as error:
        raise ScenarioFailure(f"({expression}): {error}") from None


def _written(token: re.Match[str], bindings: Bindings) -> str:
    name = token["name"]
    if name is None:
        return token[0]
    if name not in bindings:
        raise ScenarioFailure(f"variable not defined: ${name}")
    literal = encode(bindings[name]).replace("`", "\\`")
    return f"`{literal}`"


def substitute(value: Any, bindings: Bindings) -> Any:
    """Return a document with the values of its expressions; keys stay as they are.

    >>> substitute({"(a)": ["($n)", "n"]}, {"n": 1})
    {'(a)': [1, 'n']}
    """
    if isinstance(value, dict):
        return {key: substitute(item, bindings) for key, item in value.items()}
    if isinstance(value, list):
        return [substitute(item, bindings) for item in value]
    expression = expression_of(value)
    # an empty object, because a list of expressions on null is null, whatever its items are
    return value if expression is None else evaluate(expression, {}, bindings)
