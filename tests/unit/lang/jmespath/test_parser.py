"""Syntax trees and the texts of syntax errors."""

import pytest

from pyverno.errors import ExpressionSyntaxError
from pyverno.lang.jmespath.ast import Node, dump
from pyverno.lang.jmespath.parser import parse


def shape(node: Node) -> str:
    """Write a tree on one line."""
    name = node.type.value.removeprefix("AST") + ("" if node.value is None else f":{node.value}")
    return name + ("(" + " ".join(map(shape, node.children)) + ")" if node.children else "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.b", "Subexpression(Field:a Field:b)"),
        ("a.b[0]", "Subexpression(Field:a IndexExpression(Field:b Index:0))"),
        ("a[*].b", "Projection(Field:a Field:b)"),
        ("a[].b", "Projection(Flatten(Field:a) Field:b)"),
        ("a[?b == `1`].c", "FilterProjection(Field:a Field:c Comparator:tEQ(Field:b Literal:1))"),
        ("*.a", "ValueProjection(Identity Field:a)"),
        ("!a.b", "Subexpression(NotExpression(Field:a) Field:b)"),
        ("a || b && c", "OrExpression(Field:a AndExpression(Field:b Field:c))"),
        ("a | [0]", "Pipe(Field:a IndexExpression(Identity Index:0))"),
        ("f(a, &b)", "FunctionExpression:f(Field:a ExpRef(Field:b))"),
        ("f(a b)", "FunctionExpression:f(Field:a Field:b)"),
        ('{a: b, "c": d}', "MultiSelectHash(KeyValPair:a(Field:b) KeyValPair:c(Field:d))"),
        ("[a, b]", "MultiSelectList(Field:a Field:b)"),
    ],
)
def test_a_text_has_this_tree(text, expected):
    """Binding powers and leniencies are the fork's."""
    assert expected == shape(parse(text))


@pytest.mark.parametrize(
    ("text", "message", "offset"),
    [
        ("", "SyntaxError: Incomplete expression", 0),
        ("a.", "SyntaxError: Expected identifier, lbracket, or lbrace", 2),
        ("a b", "SyntaxError: Unexpected token at the end of the expression: tUnquotedIdentifier", 2),
        ("a-1", "SyntaxError: Unexpected token at the end of the expression: tNumber", 1),
        ("1", "SyntaxError: Invalid token: tNumber", 0),
        ("a[b]", "SyntaxError: Expected tStar, received: tUnquotedIdentifier", 2),
        ("a[0", "SyntaxError: Expected tRbracket, received: tEOF", 3),
        ("(a", "SyntaxError: Expected tRparen, received: tEOF", 2),
        ("{a}", "SyntaxError: Expected tColon, received: tRbrace", 2),
        ('"f"(a)', "SyntaxError: Can't have quoted identifier as function Name.", 0),
        ("`abc`", "invalid character 'a' looking for beginning of value", 1),
        ("a[-]", 'strconv.Atoi: parsing "-": invalid syntax', 2),
        ("a[99999999999999999999]", 'strconv.Atoi: parsing "99999999999999999999": value out of range', 2),
        ("(" * 5000 + "a" + ")" * 5000, "SyntaxError: expression is nested too deeply", 64),
        ("a" + "[*][0]" * 5000, "SyntaxError: expression is nested too deeply", None),
        ("!" * 5000 + "a", "SyntaxError: expression is nested too deeply", 64),
    ],
)
def test_syntax_errors_have_the_texts_of_the_fork(text, message, offset):
    """Nesting beyond the limit is a syntax error too."""
    with pytest.raises(ExpressionSyntaxError) as caught:
        parse(text)
    assert message == caught.value.message
    assert offset in (None, caught.value.offset)


@pytest.mark.parametrize("text", [".".join(["a"] * 5000), " || ".join(["a"] * 5000), "a" + "[0]" * 5000])
def test_long_flat_chains_are_no_nesting(text):
    """Chains that grow to the left are unlimited."""
    assert 2 >= parse(text).depth


def test_the_dump_is_laid_out_as_upstream():
    """Two spaces per level, Go syntax for values, and no closing brace of `children`."""
    expected = (
        "ASTComparator {\n"
        "  value: tEQ\n"
        "  children: {\n"
        "    ASTField {\n"
        '      value: "a"\n'
        "    }\n"
        "    ASTLiteral {\n"
        '      value: map[string]interface {}{"k":[]interface {}{1.5, true, interface {}(nil)}}\n'
        "    }\n"
        "}\n"
    )
    assert expected == dump(parse('a == `{"k": [1.5, true, null]}`'))


def test_the_dump_of_a_slice_shows_its_numbers():
    """Upstream shows addresses of memory."""
    assert "value: []*int{1, nil, -1}\n" in dump(parse("[1::-1]"))
