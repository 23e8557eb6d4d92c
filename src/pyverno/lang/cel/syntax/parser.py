"""Parser of CEL: text to tree, by precedence climbing.

The grammar is cel-go's (parser/gen/CEL.g4); macros are recognised while parsing (see `macros`). Every node points at
the place that cel-go's messages point at: an operator at its sign, a selection at its dot, a call at its parenthesis.
This module must never resolve a name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Final, NoReturn

from pyverno.lang.cel.syntax import ast, literals
from pyverno.lang.cel.syntax.lexer import EOF, Token, tokenize
from pyverno.lang.cel.syntax.macros import Macro, MacroError
from pyverno.lang.cel.syntax.source import CompileError, Issue, Source

__all__ = ["Parser", "parse"]

MAX_DEPTH: Final = 250
RESERVED: Final = frozenset(
    {
        "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
        "package", "namespace", "null", "return", "true", "var", "void", "while",
    }
)  # fmt: skip
_LEVELS: Final = {
    "||": 1, "&&": 2,
    "<": 3, "<=": 3, ">=": 3, ">": 3, "==": 3, "!=": 3, "in": 3,
    "+": 4, "-": 4,
    "*": 5, "/": 5, "%": 5,
}  # fmt: skip
_FUNCTIONS: Final = {
    "<": "_<_", "<=": "_<=_", ">=": "_>=_", ">": "_>_", "==": "_==_", "!=": "_!=_", "in": "@in",
    "+": "_+_", "-": "_-_", "*": "_*_", "/": "_/_", "%": "_%_",
}  # fmt: skip
_OPERAND: Final = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
_AFTER: Final = (
    "{<EOF>, '==', '!=', 'in', '<', '<=', '>=', '>', '&&', '||', '[', '.', '-', '?', '+', '*', '/', '%', '{', '('}"
)
_SIGNS: Final = frozenset({"!", "-"})
_VALUES: Final = {"true": True, "false": False, "null": None}


def parse(source: Source, macros: Mapping[tuple[str, int, bool], Macro], *, optionals: bool = True) -> ast.Node:
    """Return the tree of an expression; `macros` are keyed by name, number of arguments and receiver style.

    Raises CompileError with cel-go's text for what does not parse.

    >>> parse(Source("1 + x"), {}).function
    '_+_'
    """
    try:
        return Parser(source, macros, optionals=optionals).parse()
    except RecursionError:
        message = f"expression recursion limit exceeded: {MAX_DEPTH}"
        raise CompileError((Issue(0, message),), source) from None


class Parser:
    """Parses one source once."""

    def __init__(
        self, source: Source, macros: Mapping[tuple[str, int, bool], Macro], *, optionals: bool = True
    ) -> None:
        self._source = source
        self._tokens = tokenize(source)
        self._at = 0
        self._macros = macros
        self._optionals = optionals
        self._depth = 0
        # gives an id that no node of this tree has
        self.new_id: Callable[[], int] = count(1).__next__

    def parse(self) -> ast.Node:
        """Return the tree of the whole text."""
        node = self._expression()
        token = self._peek()
        if token.kind != EOF:
            self._unexpected(token, "extraneous" if self._depth == 0 else "mismatched", _AFTER)
        return node

    # tokens

    def _peek(self) -> Token:
        return self._tokens[self._at]

    def _next(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _accept(self, kind: str) -> Token | None:
        token = self._tokens[self._at]
        if token[0] != kind:
            return None
        self._at += 1
        return token

    def _expect(self, kind: str) -> Token:
        token = self._peek()
        if token.kind != kind:
            self._unexpected(token, "missing" if kind in ")]}" else "mismatched", f"'{kind}'")
        return self._next()

    def _unexpected(self, token: Token, how: str, wanted: str) -> NoReturn:
        if how == "missing":
            self._fail(token.offset, f"Syntax error: missing {wanted} at '{token.text}'")
        self._fail(token.offset, f"Syntax error: {how} input '{token.text}' expecting {wanted}")

    def _fail(self, offset: int, message: str) -> NoReturn:
        raise CompileError((Issue(offset, message),), self._source)

    # expressions

    def _expression(self) -> ast.Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._fail(self._peek().offset, f"expression recursion limit exceeded: {MAX_DEPTH}")
        condition = self._binary(1)
        question = self._accept("?")
        if question is not None:
            truthy = self._binary(1)
            self._expect(":")
            falsy = self._expression()
            condition = ast.Ternary(self.new_id(), question.offset, condition, truthy, falsy)
        self._depth -= 1
        return condition

    def _binary(self, lowest: int) -> ast.Node:
        left = self._unary() if self._tokens[self._at][0] in _SIGNS else self._member()
        while (level := _LEVELS.get(self._tokens[self._at][0], 0)) >= lowest:
            sign = self._next()
            right = self._binary(level + 1)
            if level > _LEVELS["&&"]:
                left = ast.Call(self.new_id(), sign.offset, _FUNCTIONS[sign.kind], None, (left, right))
                continue
            terms = [left, right]
            while self._accept(sign.kind):
                terms.append(self._binary(level + 1))
            left = ast.Logical(self.new_id(), sign.offset, f"_{sign.kind}_", tuple(terms))
        return left

    def _unary(self) -> ast.Node:
        sign = self._peek()
        if sign.kind == "!":
            return self._repeated(sign, "!_")
        if sign.kind == "-" and self._tokens[self._at + 1].kind not in ("NUM_INT", "NUM_FLOAT"):
            return self._repeated(sign, "-_")
        return self._member()

    def _repeated(self, first: Token, function: str) -> ast.Node:
        """Read a run of one sign; an even number of them cancels out."""
        count = 0
        while self._peek().kind == first.kind and not (
            first.kind == "-" and self._tokens[self._at + 1].kind in ("NUM_INT", "NUM_FLOAT")
        ):
            self._next()
            count += 1
        operand = self._member()
        if count % 2 == 0:
            return operand
        return ast.Call(self.new_id(), first.offset, function, None, (operand,))

    # members

    def _member(self) -> ast.Node:
        node = self._primary()
        while True:
            kind = self._tokens[self._at][0]
            if kind == ".":
                node = self._selection(node)
            elif kind == "[":
                node = self._index(node)
            elif kind == "{" and (name := _qualified(node)) is not None:
                node = self._struct(name)
            else:
                return node

    def _selection(self, operand: ast.Node) -> ast.Node:
        tokens, at = self._tokens, self._at
        dot, name = tokens[at], tokens[at + 1]
        # what selections mostly are; a name is never the last token
        if name[0] == "IDENTIFIER":
            paren = tokens[at + 2]
            if paren[0] == "(":
                self._at = at + 3
                return self._call(name[1], operand, paren)
            self._at = at + 2
            return ast.Select(self.new_id(), dot[2], operand, name[1])
        return self._unusual_selection(operand)

    def _unusual_selection(self, operand: ast.Node) -> ast.Node:
        dot = self._next()
        optional = self._accept("?") is not None
        name = self._peek()
        if name.kind not in ("IDENTIFIER", "ESC_IDENTIFIER"):
            self._unexpected(name, "no viable alternative at" if name.kind == EOF else "mismatched", "IDENTIFIER")
        self._next()
        if optional and not self._optionals:
            self._fail(dot.offset, "unsupported syntax '.?'")
        field = name.text.strip("`") if name.kind == "ESC_IDENTIFIER" else name.text
        return ast.Select(self.new_id(), dot.offset, operand, field, optional)

    def _index(self, operand: ast.Node) -> ast.Node:
        bracket = self._next()
        optional = self._accept("?") is not None
        if optional and not self._optionals:
            self._fail(bracket.offset, "unsupported syntax '[?'")
        index = self._expression()
        self._expect("]")
        return ast.Index(self.new_id(), bracket.offset, operand, index, optional)

    def _call(self, function: str, target: ast.Node | None, paren: Token) -> ast.Node:
        args: list[ast.Node] = []
        if self._accept(")") is None:
            args.append(self._expression())
            while self._accept(","):
                args.append(self._expression())
            self._expect(")")
        macro = self._macros.get((function, len(args), target is not None))
        if macro is not None:
            try:
                expanded = macro(self.new_id, paren.offset, target, tuple(args))
            except MacroError as error:
                self._fail(error.offset, str(error))
            if expanded is not None:
                return expanded
        return ast.Call(self.new_id(), paren.offset, function, target, tuple(args))

    # primaries

    def _primary(self) -> ast.Node:
        token = self._next()
        kind = token.kind
        if kind == "IDENTIFIER":
            return self._name(token, "")
        if kind in _VALUES:
            return ast.Literal(self.new_id(), token.offset, _VALUES[kind])
        if kind in ("STRING", "BYTES", "NUM_INT", "NUM_UINT", "NUM_FLOAT") or kind == "-":
            return self._literal(token)
        if kind == "(":
            inner = self._expression()
            self._expect(")")
            return inner
        if kind == "[":
            return self._list(token)
        if kind == "{":
            return self._map(token)
        if kind == "." and self._peek().kind == "IDENTIFIER":
            return self._name(self._next(), ".")
        return self._unexpected(token, "mismatched", _OPERAND)

    def _name(self, token: Token, dot: str) -> ast.Node:
        paren = self._accept("(")
        if token.text in RESERVED:
            self._fail(token.offset, f"reserved identifier: {token.text}")
        if paren is not None:
            return self._call(dot + token.text, None, paren)
        return ast.Ident(self.new_id(), token.offset, dot + token.text)

    def _literal(self, token: Token) -> ast.Node:
        text, offset = token.text, token.offset
        if token.kind == "-":
            if self._peek().kind not in ("NUM_INT", "NUM_FLOAT"):
                self._unexpected(self._peek(), "mismatched", _OPERAND)
            token = self._next()
            text = "-" + token.text
        convert = {
            "STRING": literals.string_value,
            "BYTES": literals.bytes_value,
            "NUM_INT": literals.int_value,
            "NUM_UINT": literals.uint_value,
            "NUM_FLOAT": literals.double_value,
        }[token.kind]
        try:
            value = convert(text)
        except literals.LiteralError as error:
            self._fail(offset, str(error))
        return ast.Literal(self.new_id(), offset, value)

    def _optional_mark(self) -> bool:
        mark = self._accept("?")
        if mark is not None and not self._optionals:
            self._fail(mark.offset, "unsupported syntax '?'")
        return mark is not None

    def _list(self, bracket: Token) -> ast.Node:
        elements: list[ast.Node] = []
        optionals: set[int] = set()
        while self._peek().kind not in ("]", ","):
            if self._optional_mark():
                optionals.add(len(elements))
            elements.append(self._expression())
            if self._accept(",") is None:
                break
        if not elements:
            self._accept(",")
        self._expect("]")
        return ast.ListLiteral(self.new_id(), bracket.offset, tuple(elements), frozenset(optionals))

    def _map(self, brace: Token) -> ast.Node:
        entries: list[ast.Entry] = []
        while self._peek().kind not in ("}", ","):
            optional = self._optional_mark()
            key = self._expression()
            colon = self._expect(":")
            value = self._expression()
            entries.append(ast.Entry(self.new_id(), colon.offset, key, value, optional))
            if self._accept(",") is None:
                break
        if not entries:
            self._accept(",")
        self._expect("}")
        return ast.MapLiteral(self.new_id(), brace.offset, tuple(entries))

    def _struct(self, type_name: str) -> ast.Node:
        brace = self._next()
        members: list[ast.Field] = []
        while self._peek().kind not in ("}", ","):
            optional = self._optional_mark()
            name = self._peek()
            if name.kind not in ("IDENTIFIER", "ESC_IDENTIFIER"):
                self._unexpected(name, "mismatched", "{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}")
            self._next()
            colon = self._expect(":")
            value = self._expression()
            members.append(ast.Field(self.new_id(), colon.offset, name.text.strip("`"), value, optional))
            if self._accept(",") is None:
                break
        if not members:
            self._accept(",")
        self._expect("}")
        return ast.StructLiteral(self.new_id(), brace.offset, type_name, tuple(members))


def _qualified(node: ast.Node) -> str | None:
    """Return `a.b.c` for a chain of plain selections that starts at a name."""
    parts: list[str] = []
    while isinstance(node, ast.Select) and not node.optional:
        parts.append(node.field)
        node = node.operand
    if not isinstance(node, ast.Ident):
        return None
    return ".".join([node.name, *reversed(parts)])
