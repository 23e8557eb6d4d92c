"""Whether the value of an expression can hold values of some variables, as far as its syntax shows.

Conditions, comparisons and the names of fields decide which value it is, and put nothing into it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from pyverno.kube.json import JSON, encode
from pyverno.lang.jmespath.ast import Node, NodeType, operands_of, steps_of
from pyverno.lang.jmespath.tokens import PLACEHOLDER_END

__all__ = ["can_hold"]

_LOOKUP: Final = "lookup"
"""The function whose second argument only chooses among the values of its first."""


def can_hold(node: Node, is_source: Callable[[str], bool], *, filled: bool) -> bool:
    """Return whether a value can hold values of the variables that `is_source` names, in whole or in part.

    `filled` is for expressions whose placeholders get such values.

    >>> from pyverno.lang.jmespath.parser import parse
    >>> [can_hold(parse(text), {"a"}.__contains__, filled=True) for text in ("a.b", "join('', [c, a])", "b.a")]
    [True, True, False]
    >>> [can_hold(parse(text), {"a"}.__contains__, filled=True) for text in ("a == '1' && '*' || b", "c[?x == '2']")]
    [False, False]
    """
    return _Origins(is_source, filled).of(node, None) is not False


class _Origins:
    """Follows values through an expression: None is the scope itself, True what may hold a source, False the rest."""

    __slots__ = ("filled", "is_source")

    def __init__(self, is_source: Callable[[str], bool], filled: bool) -> None:
        self.is_source = is_source
        self.filled = filled

    def of(self, node: Node, current: bool | None) -> bool | None:
        """Return what a node makes of the current value."""
        match node.type:
            case NodeType.CURRENT | NodeType.IDENTITY:
                return current
            case NodeType.FIELD:
                return self.named(node.value) if current is None else current
            case NodeType.INDEX | NodeType.SLICE:
                return current is not False
            case NodeType.LITERAL:
                return self.is_filled(node.value)
            case NodeType.NOT | NodeType.COMPARATOR:
                return False
            case NodeType.SUBEXPRESSION | NodeType.INDEX_EXPRESSION:
                return self.after(steps_of(node), current)
            case NodeType.PIPE:
                return self.after(operands_of(node), current)
            case NodeType.PROJECTION | NodeType.FILTER_PROJECTION | NodeType.VALUE_PROJECTION:
                return self.of(node.children[1], self.of(node.children[0], current) is not False)
            case NodeType.FLATTEN:
                return self.of(node.children[0], current)
            case NodeType.AND:
                return self.of(node.children[-1], current)  # what is false holds no text
            case NodeType.OR:
                return self.any(operands_of(node), current)
            case NodeType.KEY_VALUE:
                return self.is_filled(node.value) or self.any(node.children, current)
            case NodeType.EXPREF:
                return self.of(node.children[0], False)  # its current value is of another argument
            case NodeType.FUNCTION:
                return self.any(node.children[:1] if node.value == _LOOKUP else node.children, current)
            case NodeType.MULTI_SELECT_HASH | NodeType.MULTI_SELECT_LIST:
                return self.any(node.children, current)

    def named(self, name: str) -> bool:
        return PLACEHOLDER_END in name or self.is_source(name)

    def is_filled(self, written: JSON) -> bool:
        return self.filled and PLACEHOLDER_END in (written if isinstance(written, str) else encode(written))

    def after(self, nodes: Iterable[Node], current: bool | None) -> bool | None:
        for node in nodes:
            current = self.of(node, current)
        return current

    def any(self, nodes: Iterable[Node], current: bool | None) -> bool:
        return any(self.of(node, current) is not False for node in nodes)
