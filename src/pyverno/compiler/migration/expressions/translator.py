"""JMESPath to CEL: one method for each kind of node of the syntax tree.

Values are built as JMESPath computes them: a missing field is null except at the end of a whole expression, where it is
an error (`loud`). An expression without an exact equivalent raises UnconvertibleError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Final

from pyverno.compiler.migration.expressions.functions import FUNCTIONS
from pyverno.compiler.migration.expressions.paths import CHAIN
from pyverno.compiler.migration.expressions.projections import ProjectionTranslator
from pyverno.compiler.migration.expressions.value import (
    BOOLEAN,
    NOTHING,
    RECORD,
    TEXTS,
    Value,
    both,
    constant,
    either,
    equal,
    truth,
    written_list,
)
from pyverno.compiler.migration.schema import Shape
from pyverno.compiler.migration.text import (
    TRUE,
    Cel,
    CelType,
    all_of,
    compare,
    literal,
    quote,
)
from pyverno.lang.jmespath.ast import Node, NodeType
from pyverno.lang.jmespath.tokens import PLACEHOLDER
from pyverno.value import replace

__all__ = ["Translator"]


_ORDERS: Final[Mapping[str, str]] = {"tLT": "<", "tLTE": "<=", "tGT": ">", "tGTE": ">="}
_FEW: Final = 3
"""Operands of `||` that are joined from the left, in the order in which they are written."""

_MIRRORED: Final[Mapping[str, str]] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Translator(ProjectionTranslator):
    """Translates the trees of one expression; `path` is the field that the expression stands in, for refusals."""

    def loud(self, node: Node, current: Value | None = None) -> Value:
        """Translate a whole expression: a field that is missing at its end is an error."""
        value = self.chain(node, current, loud=True) if node.type in (NodeType.FIELD, *CHAIN) else None
        if value is None:
            value = self.quiet(node, current)
        if value.keys is not None:
            raise self.refuse("function-object-from-lists", "object_from_lists() has a form for its keys only")
        return value

    def quiet(self, node: Node, current: Value | None) -> Value:
        """Translate a node whose missing field is null; `current` is None at the root of the names."""
        value = self.truth_of(node, current)
        if value.stands_for:
            reason = "`||` and `&&` that give values of several types, which have no type in CEL"
            raise self.refuse("truth-only", reason, "compare the operands, so that each of them is a bool")
        return value

    def truth_of(self, node: Node, current: Value | None) -> Value:
        """Translate a node of which only the truth is asked; it may stand for a value of another type."""
        method = _METHODS.get(node.type)
        if method is None:
            raise self.refuse("expression", f"JMESPath's {node.type.value} has no form in CEL")
        return method(self, node, current)

    # ------------------------------------------------------------------------------------------------- operators

    def comparator(self, node: Node, current: Value | None) -> Value:
        """Return a comparison."""
        left, right = (self.quiet(child, current) for child in node.children)
        fails = left.fails or right.fails
        if node.value in ("tEQ", "tNE"):
            counted = counted_against(left, right, "==")
            same = counted if counted is not None else equal(left, right)
            return Value(same if node.value == "tEQ" else same.not_(), BOOLEAN, fails=fails)
        return self.order(left, right, _ORDERS[node.value], fails)

    def order(self, left: Value, right: Value, operator: str, fails: bool) -> Value:
        """Return a comparison of numbers; it is null when one side is none."""
        if (counted := counted_against(left, right, operator)) is not None:
            return Value(counted, BOOLEAN, fails=fails)
        sides = []
        for side in (left, right):
            if side.is_null or (side.shape is not Shape.ANY and not side.is_number):
                return NOTHING
            sides.append(self.assumed(side, Shape.INT) if side.shape is Shape.ANY else side)
        left, right = sides
        present = all_of([left.present, right.present])
        cel = all_of([present, compare(left.cel, operator, right.cel)])
        return Value(cel, BOOLEAN, present, fails=fails, is_total=True)

    def either(self, node: Node, current: Value | None) -> Value:
        """Return the first operand that is not false or empty."""
        operands = [self.truth_of(child, current) for child in _operands(node)]
        known = next((each.shape for each in reversed(operands) if each.shape is not Shape.ANY), None)
        if known is not None:
            operands = [
                self.assumed(each, known) if each.shape is Shape.ANY and not each.is_null else each for each in operands
            ]
        if len(operands) <= _FEW:
            return reduce(either, operands)
        # `a || (b || c)` is `(a || b) || c`, and only there is the text of many operands as long as they are
        return reduce(lambda found, operand: either(operand, found), reversed(operands))

    def both(self, node: Node, current: Value | None) -> Value:
        """Return the last operand if all are true."""
        return both(*(self.truth_of(child, current) for child in node.children))

    def negation(self, node: Node, current: Value | None) -> Value:
        """Return whether the operand is false or empty."""
        inner = self.truth_of(node.children[0], current)
        return Value(truth(inner).not_(), BOOLEAN, fails=inner.fails)

    def pipe(self, node: Node, current: Value | None) -> Value:
        """Return the right side evaluated on the left one."""
        left = self.quiet(node.children[0], current)
        right = node.children[1]
        return self.quiet(right, left)

    # ------------------------------------------------------------------------------------------------- selections

    def multi_select_list(self, node: Node, current: Value | None) -> Value:
        """Return a list of values."""
        parts = tuple(self.quiet(child, current) for child in node.children)
        present = TRUE if current is None else current.present
        if all(part.is_constant for part in parts):
            return replace(constant([part.constant for part in parts]), present=present)
        fails = any(part.fails for part in parts)
        return Value(written_list(parts), TEXTS, present, parts=parts, fails=fails)

    def multi_select_hash(self, node: Node, current: Value | None) -> Value:
        """Return a map of values."""
        members = {child.value: self.quiet(child.children[0], current) for child in node.children}
        if any(PLACEHOLDER.search(name) for name in members):
            raise self.refuse("computed-key", "a key that is computed")
        text = ", ".join(f"{quote(name)}: {part.or_value(literal(None)).text}" for name, part in members.items())
        present = TRUE if current is None else current.present
        fails = any(part.fails for part in members.values())
        return Value(Cel(f"{{{text}}}", CelType.MAP), RECORD, present, members=members, fails=fails)

    def call(self, node: Node, current: Value | None) -> Value:
        """Return the result of a function."""
        function = FUNCTIONS.get(node.value)
        if function is None:
            reason, advice = _NO_FUNCTION.get(node.value, ("has no form in CEL", "write the expression by hand"))
            raise self.refuse(f"function-{node.value.replace('_', '-')}", f"{node.value}() {reason}", advice)
        arguments: list[Value | Callable[[Value], Value]] = []
        for child in node.children:
            if child.type is NodeType.EXPREF:
                arguments.append(self.reference_to(child.children[0]))
            else:
                arguments.append(self.quiet(child, current))
        return function(self, *arguments)

    def reference_to(self, node: Node) -> Callable[[Value], Value]:
        """Return `&expression` as a function of the current value."""
        return lambda item: self.quiet(node, item)


def counted_against(left: Value, right: Value, operator: str) -> Cel | None:
    """Return a comparison of a length with 0 or 1 as a test of existence; None where it is none.

    Only the lengths of lists that loops make are written so: `size(list) > 0` reads as well for the others.
    """
    if right.counted is not None and left.counted is None:
        left, right, operator = right, left, _MIRRORED.get(operator, operator)
    if left.counted is None or left.counted.sequence is None or not right.is_constant:
        return None
    sequence = left.counted.sequence
    if not left.counted.is_always and left.fails:
        return None
    match operator, right.constant:
        case (">", 0) | (">=", 1):
            return sequence.exists(_whatever)
        case ("==", 0) | ("<", 1) | ("<=", 0):
            return sequence.exists(_whatever).not_()
    return None


def _whatever(_element: Value) -> Cel:
    return TRUE


# ------------------------------------------------------------------------------------------------------------- helpers


_NO_FUNCTION: Final[Mapping[str, tuple[str, str]]] = {
    "base64_decode": (
        "takes other texts than base64.decode() of CEL, which needs no padding and fails where the bytes are no UTF-8",
        "keep the rule, or compare the encoded text",
    ),
    "is_external_url": ("resolves names of hosts, which CEL cannot", "keep the rule, or list the hosts"),
    "path_canonicalize": ("has no form in CEL", "compare the path as it is written"),
    "x509_decode": ("gives other fields in CEL", "write the expression with x509.decode()"),
    "image_normalize": ("gives another canonical form in CEL", "write the expression with image()"),
    "parse_json": ("gives a value of any type, whose fields JMESPath reads as null", "write it with json.unmarshal()"),
    "parse_yaml": ("gives a value of any type, whose fields JMESPath reads as null", "write it with yaml.parse()"),
    "random": ("cannot be compared", "keep the rule"),
}


def _operands(node: Node) -> list[Node]:
    """Unfold `a || b || c` into its operands."""
    found: list[Node] = []
    while node.type is NodeType.OR:
        found.append(node.children[1])
        node = node.children[0]
    return [node, *reversed(found)]


_METHODS: Final[Mapping[NodeType, Callable[[Translator, Node, Value | None], Value]]] = {
    NodeType.CURRENT: Translator.current,
    NodeType.IDENTITY: Translator.current,
    NodeType.LITERAL: Translator.literal,
    NodeType.FIELD: Translator.field,
    NodeType.SUBEXPRESSION: Translator.chain,
    NodeType.INDEX_EXPRESSION: Translator.chain,
    NodeType.INDEX: Translator.index,
    NodeType.SLICE: Translator.slice,
    NodeType.FLATTEN: Translator.flatten,
    NodeType.PROJECTION: Translator.projection,
    NodeType.FILTER_PROJECTION: Translator.filter_projection,
    NodeType.VALUE_PROJECTION: Translator.value_projection,
    NodeType.COMPARATOR: Translator.comparator,
    NodeType.OR: Translator.either,
    NodeType.AND: Translator.both,
    NodeType.NOT: Translator.negation,
    NodeType.PIPE: Translator.pipe,
    NodeType.MULTI_SELECT_LIST: Translator.multi_select_list,
    NodeType.MULTI_SELECT_HASH: Translator.multi_select_hash,
    NodeType.FUNCTION: Translator.call,
}
