"""A compiled JMESPath expression: the fields and functions that it names, and its evaluation.

An expression is compiled once and is immutable and safe to share between threads.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from pyverno.errors import EvaluationError, ExpressionSyntaxError, UnknownKeyError
from pyverno.kube.json import JSON
from pyverno.lang.jmespath.ast import Node, NodeType
from pyverno.lang.jmespath.compiler import compile_node, field_names
from pyverno.lang.jmespath.functions import FUNCTIONS
from pyverno.lang.jmespath.parser import parse
from pyverno.lang.jmespath.tokens import PLACEHOLDER
from pyverno.lang.jmespath.values import Missing, PlaceholderValues, Run
from pyverno.lang.runtime import Runtime
from pyverno.value import dataclass, field

__all__ = ["EVERYTHING", "Expression", "compile_expression", "parse_expression"]

MAX_REMEMBERED: Final = 1024
"""Longest expression that is remembered, in characters: with 8,192 of them at most 8 MiB of keys."""

EVERYTHING: Final = "@"
"""Stands among the roots of an expression that looks at the whole document."""


@dataclass(frozen=True, slots=True)
class Expression:
    """One compiled expression.

    `text` is the source, `ast` its syntax tree, `roots` the names of the fields that it reads from the document's top
    level (`EVERYTHING` among them when it looks at the document as a whole, or by a name known only at run time),
    `functions` the names of the functions it calls, and `chain` the names of a plain chain of fields (`a.b.c`), None
    for any other expression. Equality is that of the text.
    """

    text: str
    ast: Node = field(compare=False, repr=False)
    roots: frozenset[str] = field(compare=False)
    functions: frozenset[str] = field(compare=False)
    chain: tuple[str, ...] | None = field(compare=False, repr=False)
    _run: Run = field(compare=False, repr=False)

    def evaluate(self, data: JSON, runtime: Runtime, placeholders: PlaceholderValues = ()) -> JSON:
        """Return the expression's value on a document.

        `data` is a JSON value or a dict subclass that loads lazily by `__missing__` (and offers `materialise()`);
        `placeholders` are the values of the nested variables. Raises UnknownKeyError when the result is a key that a
        map lacks, EvaluationError for every other failure of the expression, BudgetExceededError when it uses too much,
        and HostError when a call to the host fails.

        >>> compile_expression("spec.containers[].name").evaluate({"spec": {"containers": [{"name": "a"}]}}, Runtime())
        ['a']
        """
        try:
            value = self._run(data, runtime, placeholders)
        except RecursionError:
            raise EvaluationError("the expression or its data is nested too deeply") from None
        if value.__class__ is Missing:
            raise UnknownKeyError(value.key, is_data=value.is_data)
        return value


def compile_expression(text: str) -> Expression:
    """Return the compiled form of an expression of a policy; the most recent ones of at most 1,024 characters are kept.

    An expression that came out of data is parsed by `parse_expression`, so that no request fills the memory.

    >>> sorted(compile_expression("a.b || length(c)").roots)
    ['a', 'c']
    """
    return _remembered(text) if len(text) <= MAX_REMEMBERED else parse_expression(text)


@lru_cache(maxsize=8192)
def _remembered(text: str) -> Expression:
    return parse_expression(text)


def parse_expression(text: str) -> Expression:
    """Parse and compile an expression without remembering it.

    Raises ExpressionSyntaxError, whose message is the fork's own (`SyntaxError: …`) and whose offset counts code
    points. Unknown functions are found only when they are called, as upstream; see `Expression.functions`.
    """
    try:
        node = parse(text)
        roots, functions = _names(node)
        return Expression(text, node, roots, functions, field_names(node), compile_node(node, FUNCTIONS))
    except RecursionError:
        raise ExpressionSyntaxError("SyntaxError: expression is nested too deeply") from None


def _names(node: Node) -> tuple[frozenset[str], frozenset[str]]:
    """Collect the fields that are read at the top level, and the functions."""
    roots: set[str] = set()
    functions: set[str] = set()
    todo = [(node, True)]
    while todo:
        current, at_root = todo.pop()
        kind, children = current.type, current.children
        if kind is NodeType.FUNCTION:
            functions.add(current.value)
        elif kind is NodeType.FIELD and at_root:
            roots.add(EVERYTHING if PLACEHOLDER.search(current.value) else current.value)
        elif kind in (NodeType.CURRENT, NodeType.IDENTITY) and at_root:
            roots.add(EVERYTHING)
        if kind is NodeType.EXPREF:
            todo.append((children[0], False))
        elif kind in (NodeType.PIPE, NodeType.SUBEXPRESSION) and children[0].type is NodeType.CURRENT:
            todo.append((children[1], at_root))
        elif kind in _FIRST_CHILD_ONLY:
            todo.append((children[0], at_root))
            todo.extend((child, False) for child in children[1:])
        else:
            todo.extend((child, at_root) for child in children)
    return frozenset(roots), frozenset(functions)


# Of these only the first child sees the current value, the others see what it gives.
_FIRST_CHILD_ONLY: Final = frozenset(
    {
        NodeType.PIPE,
        NodeType.SUBEXPRESSION,
        NodeType.INDEX_EXPRESSION,
        NodeType.PROJECTION,
        NodeType.FILTER_PROJECTION,
        NodeType.VALUE_PROJECTION,
    }
)
