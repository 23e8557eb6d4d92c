"""The work of CEL calls: declared by each overload, charged beforehand, and limited."""

from __future__ import annotations

import gc
from contextlib import suppress
from typing import Any

import pytest

from pyverno.compiler.cel.environment import environment_of_kind
from pyverno.errors import BudgetExceededError, PyvernoError
from pyverno.lang.cel import types
from pyverno.lang.cel.declarations import Overload, function
from pyverno.lang.cel.regex import LONGEST_KEPT, MAX_KEPT, Pattern, _written, compile_pattern
from pyverno.lang.cel.scalars import Timestamp
from pyverno.lang.cel.work import LONGEST_CALL
from pyverno.lang.runtime import Budget, Runtime
from tests.property.cel_functions import VALUES, overloads

MEBIBYTE = 1 << 20
POLICY = environment_of_kind("MutatingPolicy").with_variables({"x": types.DYN, "y": types.DYN})


def steps_of(text: str, x: Any, y: Any = None) -> int:
    """Return the steps that an expression charges to the review's budget; more than there are when it is refused."""
    budget = Budget()
    before = budget.steps
    try:
        POLICY.compile(text).evaluate({"x": x, "y": y}, Runtime(budget=budget))
    except BudgetExceededError:
        return before + 1
    return before - budget.steps


def test_an_overload_without_work_can_not_be_declared() -> None:
    """It is a parameter without default of the declaration and of the overload."""
    with pytest.raises(TypeError):
        function("free", "(string) -> string")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Overload(overloads()[0][1].signature, lambda _: None)  # type: ignore[call-arg]


def test_the_work_of_every_overload_is_a_number_for_all_operands() -> None:
    """The work is estimated before the types of elements are known, and the estimate never fails."""
    for name, overload in overloads():
        count = len(overload.signature.params)
        if name in ("getEscapedPath", "getQuery"):  # ask what only a URL has
            continue
        for value in VALUES:
            assert overload.work((value,) * count) >= 0, name


BY_SIZE = [
    "x.lowerAscii()", "x.upperAscii()", "x.replace('a', 'b')", "x.split(',')", "strings.quote(x)", "x.format([])",
    "x.find('a+b')", "x.findAll('a+b')", "x.matches('a+b')", "regex.replace(x, 'a+b', '')",
    "regex.extractAll(x, 'a+b')",
    "regex.extract(x, 'a+b')", "json.unmarshal(x)", "yaml.parse(x)", "base64.decode(x)", "sha256(x)", "md5(x)",
    "gzip.compress(x)", "x509.decode(x)", "semver(x)", "isURL(x)", "duration(x)", "x.contains('b')",
]  # fmt: skip


@pytest.mark.parametrize("text", BY_SIZE)
def test_work_on_a_text_grows_with_its_size(text: str) -> None:
    """Four times the text are at least three times the steps, whether the function succeeds or not."""

    def charged(size: int) -> int:
        budget = Budget()
        # the charge is asked about, not the outcome
        with suppress(PyvernoError):
            POLICY.compile(text).evaluate({"x": "a" * size}, Runtime(budget=budget))
        return Budget().steps - budget.steps

    small, large = charged(8_192), charged(32_768)
    assert small > 0
    assert 3 * small <= large <= 5 * small


@pytest.mark.parametrize(
    ("text", "x"),
    [
        ("yaml.parse(x)", "- a\n" * (MEBIBYTE // 4)),
        ("x.matches('(a|b)*a(a|b){20}')", "ab" * (MEBIBYTE // 2)),
        ("x.matches('(a|b)*a(a|b){900}')", "ab" * 5_000),
        ("regex.replace(x, 'x*', '')", "a" * MEBIBYTE),
        ("x.findAll('a.*c|a')", "a" * 100_000),
        ("sets.equivalent(x, x)", [[index] for index in range(900)]),
        ("x.distinct()", list(range(2_000))),
        ("x.sort()", list(range(100_000))),
        ("semver(x)", "1." * (MEBIBYTE // 2)),
        ("duration(x)", "é" * (MEBIBYTE // 2)),
        ("random(x)", "a" * MEBIBYTE),
        ("resource.Post('v1', 'pods', 'a', {'a': x})", [Timestamp(index) for index in range(100_000)]),
        ("x.map(i, dyn(i)).all(i, x == x)", [[index] for index in range(2_000)]),
        ("x.filter(i, false) + x.filter(i, x.filter(j, x.filter(k, false) == []) == [])", list(range(400))),
        ("x.all(i, size(x + x) > 0)", list(range(4_000))),
    ],
)
def test_what_would_run_past_every_deadline_is_refused(text: str, x: Any) -> None:
    """Because the call alone is too long, or because the steps of the review run out."""
    assert steps_of(text, x) > Budget().steps


def test_the_longest_call_is_a_part_of_what_a_review_may_take() -> None:
    """A call is refused before it begins, however many steps are left."""
    assert LONGEST_CALL < Budget().steps
    budget = Budget()
    with pytest.raises(BudgetExceededError) as caught:
        POLICY.compile("semver(x)").evaluate({"x": "1" * (LONGEST_CALL + 1)}, Runtime(budget=budget))
    assert caught.value.message == "semver: the operands are too large"
    assert budget.steps == Budget().steps


def test_what_loops_and_sums_produce_is_counted() -> None:
    """Texts and lists that are made again and again take from the bytes of the review."""
    budget = Budget(produced_bytes=100_000)
    with pytest.raises(BudgetExceededError):
        POLICY.compile("x.map(i, y + y).size()").evaluate({"x": [1] * 100, "y": "a" * 1_000}, Runtime(budget=budget))


def test_patterns_out_of_data_are_not_kept() -> None:
    """A thousand requests with patterns of their own leave a few short ones; what a policy writes stays with it."""
    program = POLICY.compile("x.matches('^kept[0-9]{3}$')")
    assert program.evaluate({"x": "kept123"}) is True
    for index in range(1_000):
        POLICY.compile("x.matches(y)").evaluate({"x": "a", "y": f"[a-z]{{2}}{index}"})
        compile_pattern("b" * LONGEST_KEPT + f"[{index}]")
    gc.collect()
    kept = [each.text for each in gc.get_objects() if type(each) is Pattern and "[a-z]{2}" in each.text]
    assert MAX_KEPT == len(kept)
    assert "^kept[0-9]{3}$" in _written
    assert not any("[a-z]{2}" in text for text in _written)
