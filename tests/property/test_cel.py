"""Laws of the CEL engine: nothing crashes, inputs stay as they are, and both tiers agree."""

from __future__ import annotations

from copy import deepcopy
from random import Random
from typing import Any

import pytest

from pyverno.compiler.cel.environment import environment_of_kind
from pyverno.errors import BudgetExceededError, EvaluationError
from pyverno.lang.cel import STANDARD, CompileError, CostMeter, Program
from pyverno.lang.cel.fast.passcheck import compile_pass_check
from pyverno.lang.cel.types import BOOL, DOUBLE, DYN, INT, STRING, list_of, map_of
from pyverno.lang.cel.values import equals
from tests.property.cel_expressions import Expressions, bindings
from tests.property.profile import examples

EXAMPLES = examples(1500)
TYPES = {"i": INT, "d": DOUBLE, "s": STRING, "b": BOOL, "l": list_of(DYN), "m": map_of(STRING, DYN), "x": DYN}
ENVIRONMENT = STANDARD.with_variables(TYPES)
OBJECTS = environment_of_kind("ValidatingPolicy").with_variables({"object": DYN, "variables": DYN})
TOKENS = (
    "a", "x", ".", ".?", "[", "[?", "]", "(", ")", "{", "}", ",", ":", "?", "&&", "||", "!", "-", "+", "*", "/",
    "%", "==", "!=", "<", "<=", ">", ">=", "in", "true", "null", "1", "1u", "0x1F", "1e3", ".5", "'a'", '"b"',
    "r'\\'", "b'c'", "'''t'''", "has(", "all(", "map(", "cel.bind(", "optMap(", "orValue(", ".", "//", "`a.b`",
    "é", "@", '\\', "'u", '"v', '\n',
)  # fmt: skip

PARTS = (
    "has({c}.securityContext)",
    "!has({c}.securityContext) || {c}.securityContext.runAsNonRoot == true",
    "{c}.image.startsWith('ghcr.io/')",
    "{c}.image.contains(':') && !{c}.image.endsWith(':latest')",
    "{c}.?securityContext.?privileged.orValue(false) == false",
    "{c}.?securityContext.privileged.orValue(false) != true",
    "{c}.?ports.orValue([]).all(p, p.containerPort > 1024)",
    "size({c}.name) <= 5",
    "{c}.name in ['a', 'b', 'c']",
    "'a' in {c}.labels",
    "{c}.image.matches('^[a-z.]+/')",
    "{c}.name != object.metadata.name",
    "{c}.ports[0].containerPort == 80",
    "({c}.privileged ? {c}.image == 'x' : true)",
    "{c}.env.filter(e, e.name == 'A').size() == 0",
    "{c}.env.map(e, e.name).exists(n, n == 'A')",
    "{c}.name == 'a' && {c}.privileged == false",
    "{c}.privileged",
    "cel.bind(n, {c}.name, n == 'a' || n.startsWith('b'))",
    "{c}.count > 0 || {c}.count == 0",
    "{c}[{c}.name] == null",
)


def document(random: Random) -> dict[str, Any]:
    """Return a pod-like object whose parts are often missing or of another type."""

    def odd() -> Any:
        return random.choice([None, True, False, 0, 1, 2000, 1.0, "", "a", "ghcr.io/x:1", [], {}, ["a"], {"a": 1}])

    def maybe(value: Any) -> Any:
        return odd() if random.random() < 0.08 else value

    def container() -> dict[str, Any]:
        full = {
            "name": maybe(random.choice("abc")),
            "image": maybe(random.choice(("ghcr.io/x:1", "x", "ghcr.io/y:latest", "nginx:1"))),
            "securityContext": maybe({"runAsNonRoot": maybe(True), "privileged": maybe(False)}),
            "privileged": maybe(random.random() < 0.3),
            "ports": maybe([{"containerPort": maybe(random.choice((80, 8080)))}]),
            "env": maybe([{"name": maybe(random.choice("AB"))}]),
            "labels": maybe({"a": "b"}),
            "count": maybe(random.randrange(3)),
        }
        return {key: value for key, value in full.items() if random.random() < 0.9}

    return {
        "metadata": {"name": maybe("a")},
        "spec": {"containers": maybe([container() for _ in range(random.randrange(4))]), **container()},
    }


def policy(random: Random) -> str:
    """Return an expression as policies have them."""

    def part(subject: str, depth: int) -> str:
        kind = random.randrange(6) if depth else 5
        if kind == 0:
            return f"({part(subject, depth - 1)} && {part(subject, depth - 1)})"
        if kind == 1:
            return f"({part(subject, depth - 1)} || {part(subject, depth - 1)})"
        if kind == 2:
            return f"!({part(subject, depth - 1)})"
        if kind == 3 and subject == "object.spec":
            return f"object.spec.containers.{random.choice(('all', 'exists'))}(c, {part('c', depth - 1)})"
        return random.choice(PARTS).replace("{c}", subject)

    return part("object.spec", 4)


def outcome(program: Program, values: dict[str, Any]) -> tuple[str, Any]:
    """Return the value or the error text of a program."""
    try:
        return "value", program.evaluate(values)
    except EvaluationError as error:
        return "error", error.message


def test_random_tokens_never_crash_the_compiler() -> None:
    """For any text the compiler returns a program or raises a CompileError that names a position in it."""
    for seed in range(EXAMPLES * 4):
        random = Random(seed)  # noqa: S311 - reproducible, not secret
        text = random.choice(("", " ")).join(random.choices(TOKENS, k=random.randrange(1, 12)))
        try:
            ENVIRONMENT.compile(text)
        except CompileError as error:
            assert all(0 <= issue.offset <= len(text) for issue in error.issues)


def test_mutated_expressions_never_crash_the_compiler() -> None:
    """One wrong character in a right expression gives a program or a CompileError."""
    for seed in range(EXAMPLES * 2):
        random = Random(seed)  # noqa: S311 - reproducible, not secret
        text = policy(random)
        position = random.randrange(len(text))
        text = text[:position] + random.choice("()[]{}.,?!&|'\"\\ a1") + text[position + random.randrange(2) :]
        try:
            OBJECTS.compile(text)
        except CompileError as error:
            assert error.issues


def test_evaluation_never_changes_its_input() -> None:
    """Variables are the same after an evaluation."""
    for seed in range(EXAMPLES):
        random = Random(seed)  # noqa: S311 - reproducible, not secret
        text, values = Expressions(random).make(), bindings(random)
        before = deepcopy(values)
        try:
            program = ENVIRONMENT.compile(text)
        except CompileError:
            continue
        outcome(program, values)
        assert values == before


def test_evaluating_twice_gives_the_same_value_and_cost() -> None:
    """Evaluation is deterministic, cost included."""
    for seed in range(examples(750)):
        random = Random(seed)  # noqa: S311 - reproducible, not secret
        text, values = Expressions(random).make(), bindings(random)
        try:
            program = ENVIRONMENT.compile(text)
        except CompileError:
            continue
        first, second = outcome(program, values), outcome(program, values)
        assert first[0] == second[0]
        assert first[0] == "error" or equals(first[1], second[1]) or first[1] != first[1]
        assert program.cost(values) == program.cost(values)


def test_a_traced_run_ends_with_the_value_of_the_expression() -> None:
    """The last entry of a trace is the whole expression."""
    for seed in range(examples(300)):
        random = Random(seed)  # noqa: S311 - reproducible, not secret
        program = OBJECTS.compile(policy(random))
        values = {"object": document(random)}
        kind, value = outcome(program, values)
        last = program.trace(values)[-1]
        assert (last.error if kind == "error" else last.value) == value


def test_what_the_pass_check_passes_is_true() -> None:
    """The generated tier returns True only where the closures do, and does so for most true expressions."""
    passed = true = tried = 0
    for seed in range(EXAMPLES * 2 // 3):
        random = Random(seed)  # noqa: S311 - reproducible, not secret
        text = policy(random)
        program = OBJECTS.compile(text)
        passes = program.pass_check()
        assert passes is not None, text
        for _ in range(3):
            values = {"object": document(random)}
            answer = outcome(program, values) == ("value", True)
            fast = passes(values)
            assert not fast or answer, (text, values)
            passed += fast
            true += answer
            tried += 1
    assert passed > 0.9 * true
    assert tried >= EXAMPLES


def test_a_fused_pass_check_is_the_conjunction_of_its_parts() -> None:
    """One function for several expressions passes only where all of them are true."""
    tried = 0
    for seed in range(EXAMPLES // 4):
        random = Random(seed)  # noqa: S311 - reproducible, not secret
        programs = [OBJECTS.compile(policy(random)) for _ in range(3)]
        passes = compile_pass_check(*(program.checked for program in programs))
        assert passes is not None
        for _ in range(4):
            values = {"object": document(random)}
            if passes(values):
                assert [outcome(program, values) for program in programs] == [("value", True)] * 3
            tried += 1
    assert tried >= EXAMPLES


def test_random_expressions_obey_the_pass_check_law() -> None:
    """The law holds for expressions of any kind, not only for those that policies have."""
    for seed in range(EXAMPLES):
        random = Random(seed)  # noqa: S311 - reproducible, not secret
        text, values = Expressions(random).make(), bindings(random)
        try:
            program = ENVIRONMENT.compile(text)
        except CompileError:
            continue
        passes = program.pass_check()
        if passes is not None and passes(values):
            assert outcome(program, values) == ("value", True), text


def test_the_bound_of_a_pass_check_is_never_below_the_cost() -> None:
    """Where the pass-check passes under a limit, the closures cost no more than that limit."""
    for seed in range(EXAMPLES // 2):  # two expressions each
        random = Random(seed)  # noqa: S311 - reproducible, not secret
        program, values = OBJECTS.compile(policy(random)), {"object": document(random)}
        assert not _passes_below_cost(program, values), program.text
        text, values = Expressions(random).make(), bindings(random)
        try:
            program = ENVIRONMENT.compile(text)
        except CompileError:
            continue
        assert not _passes_below_cost(program, values), text


def _passes_below_cost(program: Program, values: dict[str, Any]) -> bool:
    cost = program.cost(values)
    passes = compile_pass_check(program.checked, limit=cost - 1)
    return passes is not None and cost > 0 and passes(values)


def test_the_pass_check_keeps_the_cost_limit() -> None:
    """Where the closures run out of cost the pass-check does not pass."""
    program = OBJECTS.compile("object.all(i, object.all(j, object.all(k, k != 'x')))")
    passes = program.pass_check()
    assert passes is not None
    values = {"object": ["a"] * 120}
    with pytest.raises(BudgetExceededError):
        program.evaluate(values, meter=CostMeter())
    assert not passes(values)
    assert passes({"object": ["a"] * 10})
