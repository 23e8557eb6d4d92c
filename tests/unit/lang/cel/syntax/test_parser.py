"""The grammar: what parses to what, and what is refused where."""

import pytest

from pyverno.lang.cel import STANDARD
from pyverno.lang.cel.syntax import ast
from pyverno.lang.cel.syntax.macros import BINDINGS_MACROS, OPTIONAL_MACROS, STANDARD_MACROS
from pyverno.lang.cel.syntax.parser import parse
from pyverno.lang.cel.syntax.source import CompileError, Source

MACROS = {**STANDARD_MACROS, **BINDINGS_MACROS, **OPTIONAL_MACROS}


def rendered(node: ast.Node) -> str:
    """Return a tree as text with every operand in parentheses."""
    match node:
        case ast.Literal(value=value):
            return repr(value)
        case ast.Ident(name=name):
            return name
        case ast.Select(operand=operand, field=field, optional=optional):
            return f"{rendered(operand)}.{'?' if optional else ''}{field}"
        case ast.Index(operand=operand, index=index, optional=optional):
            return f"{rendered(operand)}[{'?' if optional else ''}{rendered(index)}]"
        case ast.Call(function=function, target=target, args=args):
            inner = ", ".join(map(rendered, args))
            return f"{rendered(target)}.{function}({inner})" if target else f"{function}({inner})"
        case ast.Logical(operator=operator, terms=terms):
            return f"{operator}({', '.join(map(rendered, terms))})"
        case ast.Ternary(condition=condition, truthy=truthy, falsy=falsy):
            return f"({rendered(condition)} ? {rendered(truthy)} : {rendered(falsy)})"
        case ast.ListLiteral(elements=elements):
            return f"[{', '.join(map(rendered, elements))}]"
        case ast.MapLiteral(entries=entries):
            return "{" + ", ".join(f"{rendered(entry.key)}: {rendered(entry.value)}" for entry in entries) + "}"
        case ast.StructLiteral(type_name=name, fields=fields):
            return f"{name}{{" + ", ".join(f"{field.name}: {rendered(field.value)}" for field in fields) + "}"
        case ast.Has(operand=operand, field=field):
            return f"has({rendered(operand)}.{field})"
        case ast.Comprehension(kind=kind, range=items, variables=names):
            return f"{kind}({rendered(items)}, {', '.join(names)})"
        case ast.Bind(name=name, value=value, body=body):
            return f"bind({name}, {rendered(value)}, {rendered(body)})"
    return type(node).__name__


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", "_+_(1, _*_(2, 3))"),
        ("1 - 2 - 3", "_-_(_-_(1, 2), 3)"),
        ("a < b == c", "_==_(_<_(a, b), c)"),
        ("a || b && c || d", "_||_(a, _&&_(b, c), d)"),
        ("a ? b : c ? d : e", "(a ? b : (c ? d : e))"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("- x", "-_(x)"),
        ("--x", "x"),
        ("!!!x", "!_(x)"),
        ("a -1", "_-_(a, 1)"),
        ("a.b[0].?c[?'d']", "a.b[0].?c[?'d']"),
        ("a.`b-c/d`", "a.b-c/d"),
        ("x in [1, 2,]", "@in(x, [1, 2])"),
        ("{'a': 1, 'b': [],}", "{'a': 1, 'b': []}"),
        ("Object.spec{replicas: 3, ?x: y}", "Object.spec{replicas: 3, x: y}"),
        ("f(a).g(b, c)", "f(a).g(b, c)"),
        (".a.b", ".a.b"),
        ("has(a.b.c)", "has(a.b.c)"),
        ("l.exists_one(v, v > 1)", "existsOne(l, v)"),
        ("cel.bind(x, 1, x)", "bind(x, 1, x)"),
        ("other.bind(x, 1, x)", "other.bind(x, 1, x)"),
        ("a // comment\n + b", "_+_(a, b)"),
        ("r'\\d' + b'x'", "_+_('\\\\d', b'x')"),
    ],
)
def test_expressions_parse_by_precedence(text: str, expected: str) -> None:
    """Operators bind as in CEL's grammar; macros become nodes of their own."""
    assert rendered(parse(Source(text), MACROS)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 +", "1:4: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true',"),
        ("a b", "1:3: Syntax error: extraneous input 'b' expecting"),
        ("(a", "1:3: Syntax error: missing ')' at '<EOF>'"),
        ("a.true", "1:3: Syntax error: mismatched input 'true' expecting IDENTIFIER"),
        ("for + 1", "1:1: reserved identifier: for"),
        ("namespace(1)", "1:1: reserved identifier: namespace"),
        ("9223372036854775808", "1:1: invalid int literal"),
        ("18446744073709551616u", "1:1: invalid uint literal"),
        ("1e400", "1:1: invalid double literal"),
        ("'abc", "1:1: Syntax error: token recognition error at: ''abc'"),
        ("a # b", "1:3: Syntax error: token recognition error at: '#'"),
        ("'\\ud800'", "1:1: invalid unicode code point"),
        ("b'\\u0041'", "1:1: unable to unescape string"),
        ("has(a)", "1:5: invalid argument to has() macro"),
        ("l.all(a.b, true)", "1:8: argument must be a simple name"),
        ("l.map(1, true)", "1:7: argument is not an identifier"),
        ("l.all(__result__, true)", "1:7: iteration variable overwrites accumulator variable"),
        ("o.optMap(a.b, 1)", "1:11: optMap() variable name must be a simple identifier"),
    ],
)
def test_what_does_not_parse_is_refused_at_its_place(text: str, expected: str) -> None:
    """Messages point at the token at fault, in cel-go's words."""
    with pytest.raises(CompileError) as caught:
        parse(Source(text), MACROS)
    assert str(caught.value).startswith(f"ERROR: <input>:{expected}")


def test_optional_syntax_can_be_switched_off() -> None:
    """Environments before Kubernetes 1.28 have no optional selection."""
    with pytest.raises(CompileError, match=r"unsupported syntax '\.\?'"):
        parse(Source("a.?b"), MACROS, optionals=False)
    with pytest.raises(CompileError, match=r"unsupported syntax '\[\?'"):
        parse(Source("a[?b]"), MACROS, optionals=False)


@pytest.mark.parametrize("text", ["(" * 5_000, "[" * 5_000 + "]" * 5_000, "!" * 90_000 + "a", "a" * 100_001])
def test_deep_and_huge_texts_end_in_a_clean_error(text: str) -> None:
    """Nesting and size are limited; no recursion error escapes."""
    if text.startswith("!"):
        assert rendered(parse(Source(text), MACROS)) == "a"
        return
    with pytest.raises(CompileError):
        parse(Source(text), MACROS)


def test_every_node_has_its_own_id_and_a_place() -> None:
    """Ids are unique, offsets lie in the text."""
    text = "object.spec.containers.all(c, c.image in ['a', 'b'] && has(c.x))"
    nodes = list(ast.walk(parse(Source(text), MACROS)))
    assert len({node.id for node in nodes}) == len(nodes)
    assert all(0 <= node.offset < len(text) for node in nodes)


@pytest.mark.parametrize(("text", "expected"), [("+".join(["1"] * 800), 800), (" && ".join(["true"] * 5_000), True)])
def test_long_chains_need_no_deep_recursion(text: str, expected: object) -> None:
    """Sums and conjunctions of many terms compile in linear time and run."""
    assert STANDARD.compile(text).evaluate({}) == expected


@pytest.mark.parametrize("quote", ["'", '"'])
def test_text_that_is_no_token_is_read_once(quote: str) -> None:
    """However many quotes follow it: a search from each of them to the end would take minutes."""
    text = quote + f"\\{quote}" * 20_000
    with pytest.raises(CompileError) as caught:
        parse(Source(text), MACROS)
    assert str(caught.value).startswith(f"ERROR: <input>:1:1: Syntax error: token recognition error at: '{quote}")
