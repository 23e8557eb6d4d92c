"""I11 and I12: one bad object costs one result; inputs are never changed; mutations are idempotent."""

from __future__ import annotations

import copy
import time

import pytest

from pyverno.engine.engine import Engine
from pyverno.engine.result import Status
from pyverno.errors import PyvernoError
from pyverno.kube.json import JSON, decode, encode
from pyverno.kube.yaml.documents import load_documents
from tests.cases.case import Case, all_cases
from tests.cases.snapshot import PHASES
from tests.security.asking import CONFIG_MAP, ask, compiled, only, policy

EXPRESSIONS = [
    "@ | nofunc(@)",
    "nofunc()",
    "@ |",
    "| @",
    "a[",
    "a.{",
    "[?",
    "&&",
    "a.b.c.d.e",
    "`{`",
    "''",
    '""',
    "`null`",
    "@.@",
    "!",
    "length(`null`)",
    "to_number(`{}`)",
    "divide(`1`, `0`)",
    "modulo(`1`, `0`)",
    "x509_decode('x')",
    "parse_yaml('a: [')",
    "parse_json('{')",
    "base64_decode('%%%')",
    "time_parse('x', 'y')",
    "semver_compare('x', 'y')",
    "items(`1`, 'a', 'b')",
    "object_from_lists(`1`, `2`)",
    "random('[')",
    "regex_match('(', 'a')",
    "lookup(`1`, `2`)",
    "sort_by(`[1]`, &a)",
    "path_canonicalize(`1`)",
    "truncate('a', `-1`)",
    "\u0000",
    "\ud7ff\uffff",
    "a" * 5000,
    "(" * 400 + "a" + ")" * 400,
]


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=lambda text: ascii(text)[:30])
def test_no_expression_escapes_as_a_crash(expression: str) -> None:
    """CVE-2025-47281: whatever is between braces, the policy is refused or its rule errs."""
    value = encode(f"{{{{ {expression} }}}}")
    rule = (
        "validate:\n  failureAction: Enforce\n  deny:\n    conditions:\n      all:\n"
        f"      - key: {value}\n        operator: Equals\n        value: never"
    )
    try:
        compilation = compiled(policy(rule))
    except PyvernoError:
        return
    if not compilation.errors:
        status, message = only(ask(policy(rule)))
        assert status in (Status.ERROR, Status.PASS)
        assert "internal error" not in message, "a bug of ours, held back by the engine"


POSITIONS = [
    "validate:\n  message: '{{ V }}'\n  deny: {}",
    "validate:\n  pattern:\n    data:\n      a: '{{ V }}'",
    "validate:\n  foreach:\n  - list: request.object.none\n    deny: {}",
    "preconditions:\n  all:\n  - key: '{{ V }}'\n    operator: Equals\n    value: '{{ V }}'\nvalidate:\n  deny: {}",
    "mutate:\n  patchStrategicMerge:\n    data:\n      b: '{{ V }}'",
    "mutate:\n  patchStrategicMerge:\n    data:\n      '{{ V }}': x",
    "mutate:\n  patchesJson6902: |-\n    - op: add\n      path: /data/b\n      value: '{{ V }}'",
    "mutate:\n  foreach:\n  - list: request.object.list\n    patchesJson6902: |-\n      - op: add\n"
    "        path: /data/b\n"
    "        value: '{{ element }}'",
    "generate:\n  apiVersion: v1\n  kind: ConfigMap\n  name: '{{ V }}'\n  namespace: x1\n  data:\n    data: {}",
    "generate:\n  apiVersion: v1\n  kind: ConfigMap\n  name: x1\n  namespace: '{{ V }}'\n  data:\n"
    "    data:\n      a: '{{ V }}'",
]


@pytest.mark.parametrize("value", [None, [], {}, True, 0, 1.5, "", [None], {"a": None}], ids=repr)
@pytest.mark.parametrize("position", range(len(POSITIONS)))
def test_no_value_at_any_position_is_a_crash(position: int, value: JSON) -> None:
    """CVE-2026-41485: null and every other type at each place of a template gives a result."""
    rule = POSITIONS[position].replace("{{ V }}", "{{ request.object.value }}")
    review = ask(policy(rule), {**CONFIG_MAP, "value": value, "list": [value, value], "none": value})
    assert all(isinstance(result.status, Status) for result in review.results)
    assert () == review.faults, "a bug of ours, held back by the engine"


def nested(depth: int) -> JSON:
    """Return an object with a chain of lists and maps."""
    value: JSON = "end"
    for level in range(depth):
        value = {"a": value} if level % 2 else [value]
    return value


@pytest.mark.parametrize("depth", [300, 2000, 9000])
def test_deep_objects_are_judged_or_refused_but_never_fatal(depth: int) -> None:
    """Section 4: deep objects are judged right; the twin without depth too."""
    rule = (
        "validate:\n  failureAction: Enforce\n  message: no team\n  pattern:\n    metadata:\n"
        "      labels:\n        team: '?*'"
    )
    deep = {**CONFIG_MAP, "data": nested(depth)}
    started = time.process_time()
    assert not ask(policy(rule), deep).decision.allowed
    labelled = {**deep, "metadata": {"name": "a", "namespace": "team", "labels": {"team": "x"}}}
    assert ask(policy(rule), labelled).decision.allowed
    assert time.process_time() - started < 1.0


@pytest.mark.parametrize("opening", ["[", "{a: "])
def test_documents_deeper_than_the_limit_are_refused(opening: str) -> None:
    """Brackets that are not JSON have at most 500 levels; more are an error with a place."""
    closing = {"[": "]", "{a: ": "}"}[opening]
    with pytest.raises(PyvernoError, match="nested"):
        load_documents((opening * 501 + "x" + closing * 501).encode())
    assert load_documents((opening * 499 + "x" + closing * 499).encode())


def test_one_poisoned_object_leaves_the_others_judged() -> None:
    """I11: the same engine judges on after an error."""
    rule = (
        "validate:\n  failureAction: Enforce\n  deny:\n    conditions:\n      all:\n"
        "      - key: '{{ request.object.data.a }}'\n        operator: Equals\n        value: '2'"
    )
    statuses = [only(ask(policy(rule), {**CONFIG_MAP, "data": data}))[0] for data in ({"a": "2"}, {}, {"a": "1"})]
    assert [Status.FAIL, Status.ERROR, Status.PASS] == statuses


CASES = [pytest.param(case, id=case.name) for case in all_cases()]


@pytest.mark.parametrize("case", CASES)
def test_a_review_never_changes_its_input(case: Case) -> None:
    """I12: objects of the request are the same after a review as before it."""
    engine = Engine(case.compilation.policy_set(), case.host)
    for request in case.requests():
        before = copy.deepcopy((request.object, request.old))
        first = engine.review(request, PHASES)
        assert before == (request.object, request.old)
        assert first == engine.review(request, PHASES)


NOT_IDEMPOTENT = {
    # the patches of these cases put text before the value, or remove some of it, on each run
    "mutate/at-stands-for-the-value-at-the-same-place",
    "mutate/foreach-patches-every-element",
    # a test operation that no longer holds is an error
    "mutate/json-patches-add-replace-remove-and-test",
    # the policy appends
    "mutate/json-patch-paths-reach-list-ends",
    "mutatingadmissionpolicy/json-patches-run-on-what-came-before",
    "mutatingpolicy/later-mutations-see-what-earlier-ones-did",
}


@pytest.mark.parametrize("case", [case for case in CASES if case.values[0].name not in NOT_IDEMPOTENT])
def test_mutating_twice_is_mutating_once(case: Case) -> None:
    """I12: f(f(x)) = f(x) for every mutation that is not additive by design."""
    engine = Engine(case.compilation.policy_set(), case.host)
    for request in case.requests():
        once = engine.review(request, PHASES).resource
        if once is not None:
            assert once == engine.review(request.with_object(once), PHASES).resource


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", '{"a": NaN}', '{"a": 1e400}'])
def test_numbers_that_are_none_are_refused(text: str) -> None:
    """Section 4: NaN and infinities are errors; large integers become floats as in Go."""
    with pytest.raises(PyvernoError):
        decode(text)
    assert {"a": float(2**70)} == decode(f'{{"a": {2**70}}}')


def test_surrogates_never_break_the_writer() -> None:
    """Section 4: a lone surrogate is replaced on the way in, so what comes in can go out."""
    value = decode(b'{"a": "\\ud800"}')
    assert encode(value).encode()
