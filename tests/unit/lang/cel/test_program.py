"""Programs: values, errors and their absorption, limits, traces."""

import time
from typing import Any

import pytest

from pyverno.errors import BudgetExceededError, EvaluationError
from pyverno.lang.cel import STANDARD, CostMeter, Environment
from pyverno.lang.cel.presets import kubernetes_environment
from pyverno.lang.cel.scalars import Uint
from pyverno.lang.cel.syntax.source import CompileError
from pyverno.lang.cel.types import DYN
from pyverno.lang.cel.values import equals
from pyverno.lang.runtime import Budget, Runtime

ENVIRONMENT = STANDARD.with_variables({"x": DYN, "y": DYN})


def value_of(text: str, **bindings: Any) -> Any:
    """Return the value of an expression."""
    return ENVIRONMENT.compile(text).evaluate(bindings)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("7u + 1u", Uint(8)),
        ("1.0 / 0.0 > 1.0", True),
        ("dyn(1) == 1.0", True),
        ("dyn(1) == true", False),
        ("[1, 'a'][1]", "a"),
        ("{1: 'a', true: 'b'}[true]", "b"),
        ("dyn({1: 'a'}) == {1.0: 'a'} || true", True),
        ("dyn(2) in {2u: 'x'}", True),
        ("dyn(true) in [1]", False),
        ("'é'.size()", 1),
        ("size(b'é')", 2),
        ("'a' < 'b' && b'a' < b'b'", True),
        ("[3, 1].exists(i, i == 1)", True),
        ("{'a': 1}.exists(k, k == 'a')", True),
        ("[1, 2, 3].exists_one(i, i > 2)", True),
        ("[1, 2, 3].map(i, i > 1, i * 10)", [20, 30]),
        ("{'a': 1}.map(k, k)", ["a"]),
        ("[1, 2].all(i, [1, 2].exists(j, i == j))", True),
        ("timestamp('2020-02-29T23:59:59.5Z') + duration('500ms') == timestamp('2020-03-01T00:00:00Z')", True),
        ("string(timestamp('2020-01-01T00:00:00.120+02:00'))", "2020-01-01T00:00:00.12+02:00"),
        ("timestamp('2020-01-01T00:00:00Z').getHours('America/New_York')", 19),
        ("string(duration('-90500ms'))", "-90.5s"),
        ("int('-5') + int(3.9)", -2),
        ("type(type(1)) == type", True),
        ("'abc'.matches('^a.c$') && !'abc'.matches('z')", True),
        ("optional.of(1).or(optional.of(2)).value()", 1),
        ("[?optional.none(), ?optional.of(1)]", [1]),
        ("{?'a': optional.none(), 'b': 1}", {"b": 1}),
        ("has({'a': null}.a)", True),
    ],
)
def test_expressions_have_their_values(text: str, expected: Any) -> None:
    """Arithmetic, comparison, loops, times and optionals as the language has them."""
    value = value_of(text)
    assert equals(value, expected)
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 / 0", "division by zero"),
        ("1 % 0", "modulus by zero"),
        ("9223372036854775807 + 1", "integer overflow"),
        ("-(-9223372036854775807 - 1)", "integer overflow"),
        ("0u - 1u", "unsigned integer overflow"),
        ("duration('2562047h') + duration('2562047h')", "duration overflow"),
        ("timestamp('9999-12-31T23:59:59Z') + duration('1s')", "timestamp overflow"),
        ("x.missing", "no such key: missing"),
        ("x.a.b", "no such key: b"),
        ("x.l['a']", "unsupported index type 'string' in list"),
        ("x.l[5]", "index out of bounds: 5"),
        ("x.l[-1]", "index out of bounds: -1"),
        ("x.a + 'b'", "no such overload"),
        ("!x.a", "no such overload"),
        ("x.a.startsWith('b')", "no such overload"),
        ("x.a.getHours()", "no such overload: getHours(int)"),
        ("x.a.all(i, true)", "got 'types.Int', expected iterable type"),
        ("x.none.map(i, i)", "got 'types.Null', expected iterable type"),
        ("size(x.a)", "no such overload: size"),
        ("x.a.size()", "no such overload: size"),
        ("size(dyn(duration('1s')))", "no such overload"),
        ("x.none + 1", "no such overload: _+_"),
        ("x.l - 1", "no such overload: _-_"),
        ("x.l < 1", "no such overload: _<_"),
        ("x.none >= 1", "no such overload: _>=_"),
        ("x.a < 'b'", "no such overload"),
        ("'b' < x.l", "no such overload"),
        ("x.a - dyn('b')", "no such overload"),
        ("dyn('a') * 2", "no such overload"),
        ("x.l * 2", "no such overload: _*_"),
        ("x / 2", "no such overload: _/_"),
        ("dyn(1.5) % 2", "no such overload: _%_"),
        ("-x.l", "no such overload: -_"),
        ("-dyn('a')", "no such overload"),
        ("x.a[0]", "no such key: 0"),
        ("x.none['b']", "no such key: b"),
        ("has(x.l.b)", "unsupported index type 'string' in list"),
        ("y", "no such attribute(s): y"),
        ("{'a': 1, 'a': 2}", "Failed with repeated key: a"),
        ("optional.none().value()", "optional.none() dereference"),
        ("int('x')", "type conversion error from 'string' to 'int'"),
        ("string(b'\\xff')", "invalid UTF-8 in bytes, cannot convert to string"),
        ("timestamp(0).getHours('Nowhere/City')", "unknown time zone Nowhere/City"),
        ("'a'.matches('[')", "error parsing regexp: missing closing ]: `[`"),
        ("duration('a' + 'b')", "type conversion error from 'string' to 'google.protobuf.Duration'"),
        ("timestamp('a' + 'b')", 'invalid RFC 3339 timestamp "ab"'),
        ("timestamp('2024-01-01t' + '00:00:00Z')", 'invalid RFC 3339 timestamp "2024-01-01t00:00:00Z"'),
        ("timestamp('2024-01-01T' + '00:00:00z')", 'invalid RFC 3339 timestamp "2024-01-01T00:00:00z"'),
        ("timestamp('2024-01-01T' + '00:00:00,5Z')", 'invalid RFC 3339 timestamp "2024-01-01T00:00:00,5Z"'),
        ("x[x]", "invalid qualifier type: map[string]interface {}"),
    ],
)
def test_errors_have_cel_gos_words(text: str, expected: str) -> None:
    """Failures at run time are EvaluationErrors with the texts that people know."""
    with pytest.raises(EvaluationError) as caught:
        value_of(text, x={"a": 1, "l": [1], "none": None})
    assert caught.value.message == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 / 0 == 1 || true", True),
        ("true || 1 / 0 == 1", True),
        ("1 / 0 == 1 && false", False),
        ("x.a && false", False),
        ("[0, 1].exists(i, 1 / i == 1)", True),
        ("[0, 1].all(i, 1 / i == 2)", False),
        ("false && x.missing && true", False),
    ],
)
def test_a_decisive_operand_absorbs_errors(text: str, expected: bool) -> None:
    """`&&`, `||`, `all` and `exists` ignore errors beside a deciding value."""
    assert value_of(text, x={"a": 1}) is expected


@pytest.mark.parametrize(
    "text", ["1 / 0 == 1 || false", "true && x.a", "[0, 1].all(i, 1 / i == 1)", "[1, 0].exists_one(i, 1 / i == 1)"]
)
def test_errors_are_not_absorbed_otherwise(text: str) -> None:
    """Without a deciding value the error is the result."""
    with pytest.raises(EvaluationError):
        value_of(text, x={"a": 1})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x.exists_one(i, i.a)", "unsupported index type"),
        ("x.filter(i, i.a)", "unsupported index type"),
        ("x.map(i, i.a, 1)", "unsupported index type"),
        ("x.map(i, i.a)", "no such key: a"),
        ("x.all(i, i.a)", "no such key: a"),
    ],
)
def test_a_loop_reports_the_error_that_remains(text: str, expected: str) -> None:
    """Each step of `exists_one` and of a filter gives a new result, also an error; elsewhere the first error counts."""
    with pytest.raises(EvaluationError, match=expected):
        value_of(text, x=[{}, {"a": True}, [], {"a": True}])


def test_the_first_error_is_the_result() -> None:
    """Of several errors the leftmost is reported."""
    with pytest.raises(EvaluationError, match="no such key: a"):
        value_of("x.a || x.b || x.c", x={})


def test_budget_errors_are_never_absorbed() -> None:
    """Running out of cost is no CEL error: nothing can hide it."""
    with pytest.raises(BudgetExceededError):
        value_of("x.all(i, x.all(j, x.all(k, true))) || true", x=list(range(200)))


def test_a_bound_name_is_computed_when_it_is_used() -> None:
    """`cel.bind` does not evaluate a value that nothing needs."""
    from pyverno.compiler.cel.environment import environment_of_kind

    environment = environment_of_kind("ValidatingPolicy")
    assert environment.compile("cel.bind(x, 1 / 0, true)").evaluate({}) is True
    assert environment.compile("cel.bind(x, 2, x * x)").evaluate({}) == 4


def test_deep_data_gives_an_answer_or_a_clean_error() -> None:
    """Ten thousand levels never end in a RecursionError."""
    deep: Any = []
    for _ in range(10_000):
        deep = [deep]
    with pytest.raises(EvaluationError, match="nested too deeply"):
        value_of("x == y", x=deep, y=[deep])
    assert value_of("size(x) == 1", x=deep) is True


def test_a_meter_counts_several_expressions() -> None:
    """The cost of failed evaluations counts, and what is left limits the next one."""
    meter = CostMeter(limit=100)
    program = ENVIRONMENT.compile("x.all(i, i > 0)")
    program.evaluate({"x": [1] * 10}, meter=meter)
    assert meter.spent == 52
    with pytest.raises(BudgetExceededError, match="actual cost limit exceeded"):
        program.evaluate({"x": [1] * 10}, meter=meter)
    assert meter.left < 0


def test_the_deadline_interrupts_loops() -> None:
    """A loop looks at the deadline now and then."""
    runtime = Runtime(budget=Budget(deadline=time.monotonic() - 1))
    with pytest.raises(BudgetExceededError) as caught:
        ENVIRONMENT.compile("x.all(i, true)").evaluate({"x": [1]}, runtime)
    assert caught.value.resource == "time"


def test_large_texts_are_refused_when_they_are_made() -> None:
    """Doubling a text stops at the limit on produced bytes."""
    with pytest.raises(BudgetExceededError) as caught:
        value_of("x + x", x="a" * 1_500_000)
    assert caught.value.resource == "bytes"


def test_a_trace_shows_every_sub_expression() -> None:
    """Each entry has a place, a type and a value or an error."""
    program = ENVIRONMENT.compile("x.a > 1 || x.b")
    trace = [(entry.offset, str(entry.type), entry.value, entry.error) for entry in program.trace({"x": {"a": 1}})]
    assert (1, "dyn", 1, "") in trace
    assert (4, "bool", False, "") in trace
    assert (12, "dyn", None, "no such key: b") in trace
    assert trace[-1] == (8, "bool", None, "no such key: b")


def test_a_program_lists_what_it_uses() -> None:
    """Variables, functions and paths are known without running it."""
    program = ENVIRONMENT.compile("x.a.b.startsWith('c') && has(x.d) && y == 1")
    assert program.variables == {"x", "y"}
    assert {"startsWith", "_==_"} <= program.functions
    assert {"x.a", "x.a.b", "x.d"} <= program.fields


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("has(x.a)", False),
        ("x.?a.orValue('none')", "none"),
        ("x[?'a'].orValue('none')", "none"),
        ("has(x.a.b)", "no such key: a"),
    ],
)
@pytest.mark.parametrize("holder", [None, 1, "text", True])
def test_kubernetes_finds_nothing_in_what_holds_nothing(text, value, holder):
    """Presence tests of null and of scalars: false or none there, an error in plain CEL; reading is one everywhere."""
    bindings = {"x": holder}

    def found(environment):
        try:
            return environment.with_variables({"x": DYN}).compile(text).evaluate(bindings)
        except EvaluationError as error:
            return error.message

    assert found(kubernetes_environment()) == value
    assert isinstance(found(STANDARD), str)
    assert found(STANDARD) != "none"


def test_a_trace_holds_the_parts_of_constants() -> None:
    """Conversions of constants are computed once, but a traced run records them and what is inside them."""
    program = ENVIRONMENT.compile("dyn({'a': dyn(null)}).a == dyn(double('1.5'))")
    values = [(each.kind, each.value) for each in program.trace({})]
    assert values[-1] == ("Call", False)
    assert ("Call", 1.5) in values
    assert ("MapLiteral", {"a": None}) in values


@pytest.mark.parametrize("step", [".?a", ".a", "[0]", "[?0]", "['a']", "[?'a']"])
@pytest.mark.parametrize(
    "place", ["x.?none", "x.?text", "x.?number", "x.?flag", "x.?map.?text", "x.?items[0]", "x.items[?0]"]
)
def test_an_optional_chain_is_empty_behind_a_value_without_parts(place: str, step: str) -> None:
    """`labels: null` is no error in `metadata.?labels.?app`, nor is a text: as in cel-go, nothing is there."""
    environment = kubernetes_environment().with_variables({"x": DYN})
    given = {"none": None, "text": "a", "number": 1, "flag": True, "map": {"text": "b"}, "items": ["c"]}
    for text, expected in (
        (f"{place}{step}.orValue('default')", "default"),
        (f"{place}{step}.hasValue()", False),
        (f"{place}{step}{step}.hasValue()", False),
        (f"has({place}.a)", False),
    ):
        assert expected == environment.compile(text).evaluate({"x": given}, Runtime())


@pytest.mark.parametrize("function", ["int", "string"])
def test_the_conversion_of_null_does_not_compile(function: str) -> None:
    """Null fits the types of times, which these conversions take; cel-go finds out when it plans the program."""
    with pytest.raises(CompileError) as caught:
        kubernetes_environment().compile(f"{function}(null)")
    assert [f"no such overload: {function}(null_type)"] == [issue.message for issue in caught.value.issues]


@pytest.mark.parametrize("text", ["duration(5)", "lists.range(-1)"])
def test_what_cel_go_refuses_is_refused(text: str) -> None:
    """A duration has no form of nanoseconds, and a range no negative size."""
    with pytest.raises((CompileError, EvaluationError)):
        kubernetes_environment().compile(text).evaluate({}, Runtime())


@pytest.mark.parametrize(
    ("environment", "expected"), [(kubernetes_environment(), 3_600_001), (STANDARD, 1)], ids=["Kubernetes", "CEL"]
)
def test_the_milliseconds_of_a_duration_are_all_of_them_in_kubernetes(environment: Environment, expected: int) -> None:
    """The specification of CEL counts those beyond the seconds, cel-go all."""
    text = "duration('1h').getMilliseconds() + duration('1ms').getMilliseconds()"
    assert expected == environment.compile(text).evaluate({}, Runtime())
