"""The syntax tree of a JMESPath expression, its chains unfolded, and its dump as `kyverno jp parse` prints it.

A tree is made by `parser` and never changed.
"""

from __future__ import annotations

from enum import Enum

from pyverno.kube.json import JSON, float_text, is_number
from pyverno.value import dataclass

__all__ = ["Node", "NodeType", "SliceParts", "dump", "operands_of", "steps_of"]

SliceParts = tuple["int | str | None", "int | str | None", "int | str | None"]
"""start, stop and step of a slice; a text is a placeholder that gives the number."""


class NodeType(Enum):
    """Kinds of nodes; the values are the names that the dump shows."""

    COMPARATOR = "ASTComparator"
    CURRENT = "ASTCurrentNode"
    EXPREF = "ASTExpRef"
    FUNCTION = "ASTFunctionExpression"
    FIELD = "ASTField"
    FILTER_PROJECTION = "ASTFilterProjection"
    FLATTEN = "ASTFlatten"
    IDENTITY = "ASTIdentity"
    INDEX = "ASTIndex"
    INDEX_EXPRESSION = "ASTIndexExpression"
    KEY_VALUE = "ASTKeyValPair"
    LITERAL = "ASTLiteral"
    MULTI_SELECT_HASH = "ASTMultiSelectHash"
    MULTI_SELECT_LIST = "ASTMultiSelectList"
    OR = "ASTOrExpression"
    AND = "ASTAndExpression"
    NOT = "ASTNotExpression"
    PIPE = "ASTPipe"
    PROJECTION = "ASTProjection"
    SUBEXPRESSION = "ASTSubexpression"
    SLICE = "ASTSlice"
    VALUE_PROJECTION = "ASTValueProjection"


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One node: its kind, its own value, its children, and how deep the closures made of it nest.

    `value` is the name of a field, function or hash key, the number of an index (or a placeholder's text), the parts of
    a slice, the comparator's token name, or the JSON value of a literal. Long flat chains (`a.b.c…`, `a || b || …`)
    count as one level.
    """

    type: NodeType
    value: JSON = None
    children: tuple[Node, ...] = ()
    depth: int = 1


def steps_of(node: Node) -> list[Node]:
    """Unfold `a.b[0].c` into the nodes that run one after the other."""
    found: list[Node] = []
    todo = [node]
    while todo:
        current = todo.pop()
        if current.type in (NodeType.SUBEXPRESSION, NodeType.INDEX_EXPRESSION):
            todo.extend((current.children[1], current.children[0]))
        else:
            found.append(current)
    needed = [step for step in found if step.type not in (NodeType.IDENTITY, NodeType.CURRENT)]
    return needed or found[:1]


def operands_of(node: Node) -> list[Node]:
    """Unfold `a || b || c` (any left-growing chain of one kind) into its operands."""
    found: list[Node] = []
    while node.children and node.children[0].type is node.type:
        found.append(node.children[1])
        node = node.children[0]
    return [*node.children, *reversed(found)]


def dump(node: Node, indent: int = 0) -> str:
    """Return the tree as text, two spaces per level, closed by a newline.

    Values are written in Go syntax. The closing brace of `children` is missing, as upstream.

    >>> print(dump(Node(NodeType.FIELD, "a")), end="")
    ASTField {
      value: "a"
    }
    """
    lines: list[str] = []
    todo: list[tuple[Node | None, int]] = [(node, indent)]
    while todo:
        current, level = todo.pop()
        pad = " " * level
        if current is None:
            lines.append(f"{pad}}}\n")
            continue
        lines.append(f"{pad}{current.type.value} {{\n")
        if current.value is not None:
            lines.append(f"{pad}  value: {_go_value(current)}\n")
        if current.children:
            lines.append(f"{pad}  children: {{\n")
        todo.append((None, level))
        todo.extend((child, level + 4) for child in reversed(current.children))
    return "".join(lines)


def _go_value(node: Node) -> str:
    if node.type is NodeType.COMPARATOR:
        return str(node.value)
    if node.type is NodeType.SLICE:
        # COMPAT: upstream shows addresses of memory here; numbers are more useful
        return "[]*int{" + ", ".join("nil" if part is None else str(part) for part in node.value) + "}"
    if node.type is NodeType.INDEX:
        return str(node.value)
    return _go_syntax(node.value)


def _go_syntax(value: JSON) -> str:
    """Write a JSON value as Go's %#v does."""
    if value is None:
        return "interface {}(nil)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if is_number(value):
        return float_text(float(value))
    if isinstance(value, str):
        return go_quote(value)
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(map(_go_syntax, value)) + "}"
    pairs = (f"{go_quote(key)}:{_go_syntax(item)}" for key, item in sorted(value.items()))
    return "map[string]interface {}{" + ", ".join(pairs) + "}"


_ESCAPES = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"} | {
    "\\": "\\\\",
    '"': r"\"",
}


def go_quote(text: str) -> str:
    """Quote a text as Go's strconv.Quote does.

    >>> print(go_quote('a"b'))
    "a\\"b"
    """
    return '"' + "".join(map(_go_char, text)) + '"'


def _go_char(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
