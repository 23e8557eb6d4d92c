"""I9: every request has limits of steps, bytes, elements and calls; running out is an error, quickly."""

from __future__ import annotations

import os
import time

import pytest

from pyverno.engine.result import MAX_MESSAGE, Status
from pyverno.kube.wildcard import match as wildcard_match
from pyverno.lang.runtime import Budget
from tests.security.asking import CONFIG_MAP, POD, Spy, ask, only, policy


def doubling(levels: int) -> str:
    """Return a policy whose context entries double a text, level by level."""
    lines = ["context:", "- name: v0", "  variable:", "    value: '0123456789'"]
    for level in range(1, levels + 1):
        lines += [f"- name: v{level}", "  variable:", f"    jmesPath: join('', [v{level - 1}, v{level - 1}])"]
    lines += [
        "validate:",
        "  failureAction: Enforce",
        "  deny:",
        "    conditions:",
        "      all:",
        f'      - key: "{{{{ length(v{levels}) }}}}"',
        "        operator: Equals",
        "        value: 0",
    ]
    return policy("\n".join(lines))


def test_forty_doublings_end_at_the_limit_of_the_context() -> None:
    """CVE-2026-23881: 2^40 copies are never made, at most what the limits allow; ten doublings are fine."""
    budget = Budget()
    before = budget.produced_bytes
    started = time.process_time()
    status, message = only(ask(doubling(40), budget=budget))
    seconds = time.process_time() - started
    assert Status.ERROR == status
    assert "exceeds" in message
    assert before - budget.produced_bytes <= 8 << 20
    assert not os.environ.get("PYVERNO_NIGHTLY") or seconds < 0.1
    assert Status.PASS == only(ask(doubling(10)))[0]


@pytest.mark.parametrize(
    ("expression", "harmless"),
    [
        ("random('[a-z]{99999999}')", "random('[a-z]{9}')"),
        ("join('', array_of_text)", 'join(\'\', [`"a"`, `"b"`])'),
        ("replace_all(text, 'a', text)", "replace_all('aa', 'a', 'b')"),
        ("pad(text)", "to_upper('a')"),
    ],
)
def test_texts_have_a_limit_where_they_are_made(expression: str, harmless: str) -> None:
    """R5: a function that makes text is charged when it makes it."""
    started = time.process_time()
    key = expression.replace("array_of_text", "request.object.data.*").replace("text", "request.object.data.a")
    rule = (
        "validate:\n  failureAction: Enforce\n  deny:\n    conditions:\n      all:\n"
        '      - key: "{{ KEY }}"\n        operator: Equals\n        value: nothing'
    )
    resource = {
        **CONFIG_MAP,
        "data": dict.fromkeys((f"k{n}" for n in range(200)), "a" * 20000) | {"a": "a" * 20_000},
    }
    escaped = key.replace('"', '\\"')
    assert Status.ERROR == only(ask(policy(rule.replace("KEY", escaped)), resource, host=Clock()))[0]
    twin = harmless.replace('"', '\\"')
    assert Status.PASS == only(ask(policy(rule.replace("KEY", twin)), host=Clock()))[0]
    assert time.process_time() - started < 2.0


class Clock(Spy):
    """A Host with a source of (not very) random bits."""

    def random_bits(self, bits: int) -> int:
        return 0

    def now(self) -> int:
        return 0


FOREACH = (
    "validate:\n  failureAction: Enforce\n  foreach:\n  - list: request.object.spec.items\n"
    "    preconditions:\n      all:\n"
    "      - key: '{{ to_upper(element.a) }}'\n        operator: Equals\n        value: 'Y'\n"
    "    deny:\n      conditions:\n"
    "        all:\n        - key: '{{ element.a }}'\n          operator: Equals\n          value: x"
)


@pytest.mark.parametrize(("count", "expected"), [(50, Status.PASS), (51, Status.FAIL)])
def test_foreach_elements_are_counted(count: int, expected: Status) -> None:
    """Section 6: at N it passes, at N + 1 the rule ends without having passed."""
    resource = {**CONFIG_MAP, "spec": {"items": [{"a": "y"}] * count}}
    status, message = only(ask(policy(FOREACH), resource, budget=Budget(elements=50)))
    if expected is Status.PASS:
        assert Status.PASS == status
    else:
        assert status in (Status.FAIL, Status.ERROR)
        assert "elements" in message


@pytest.mark.parametrize(("entries", "expected"), [(5, Status.PASS), (12, Status.ERROR)])
def test_context_entries_are_counted_together(entries: int, expected: Status) -> None:
    """Section 6: 2 MiB for all entries of a rule, however small each of them is."""
    names = [f"e{number}" for number in range(entries)]
    context = "".join(
        f"- name: {name}\n  apiCall:\n    urlPath: /api/v1/namespaces/{name}/configmaps\n" for name in names
    )
    keys = ", ".join(f"length({name}.text)" for name in names)
    rule = (
        f"context:\n{context}validate:\n  failureAction: Enforce\n  deny:\n    conditions:\n      all:\n"
        f"      - key: '{{{{ sum([{keys}]) }}}}'\n        operator: Equals\n        value: 0"
    )
    status, message = only(ask(policy(rule), host=Spy({"text": "x" * 200_000})))
    assert (expected, expected is Status.ERROR) == (status, "context size limit exceeded" in message)


def test_network_calls_are_counted() -> None:
    """Section 6: each entry is one call; the budget of calls ends them."""
    entries = "".join(f"- name: e{n}\n  apiCall:\n    urlPath: /api/v1/namespaces/n{n}/configmaps\n" for n in range(5))
    keys = " ".join(f"{{{{ e{n} }}}}" for n in range(5))
    rule = (
        f"context:\n{entries}validate:\n  failureAction: Enforce\n  deny:\n    conditions:\n      all:\n"
        f"      - key: '{keys}'\n        operator: Equals\n        value: x"
    )
    spy = Spy({"items": []})
    assert Status.ERROR == only(ask(policy(rule), host=spy, budget=Budget(calls=4)))[0]
    assert 4 == len(spy.asked)
    assert Status.PASS == only(ask(policy(rule), host=Spy({"items": []}), budget=Budget(calls=5)))[0]


def test_a_deadline_ends_a_review() -> None:
    """I9: a deadline in the past stops expressions with an error, never with a verdict."""
    rule = (
        "validate:\n  failureAction: Enforce\n  deny:\n    conditions:\n      all:\n"
        "      - key: '{{ request.object.spec.items[?a == `1`] | length(@) }}'\n"
        "        operator: Equals\n        value: 9"
    )
    resource = {**CONFIG_MAP, "spec": {"items": [{"a": 1}] * 5000}}
    late = Budget(deadline=time.monotonic() - 1)
    assert Status.ERROR == only(ask(policy(rule), resource, budget=late))[0]
    assert Status.PASS == only(ask(policy(rule), resource))[0]


@pytest.mark.parametrize("rule", ["podSecurity:\n    level: restricted", "pattern:\n    spec:\n      hostPID: false"])
def test_a_rule_after_the_deadline_is_an_error(rule: str) -> None:
    """I9: the deadline of a review is checked before each rule, those of the fast tier included."""
    text = policy(f"validate:\n  failureAction: Enforce\n  {rule}", on="Pod")
    pod = {**POD, "spec": {**POD["spec"], "hostPID": False}}
    assert Status.ERROR == only(ask(text, pod, budget=Budget(deadline=time.monotonic() - 1)))[0]


def test_containers_are_charged_before_they_are_read() -> None:
    """I9: a Pod Security check of more containers than a review can afford ends with an error of the budget."""
    pod = {**POD, "spec": {"containers": [{}] * 10_000}}
    text = policy("validate:\n  failureAction: Enforce\n  podSecurity:\n    level: baseline", on="Pod")
    budget = Budget(steps=100_000)
    status, message = only(ask(text, pod, budget=budget))
    assert (Status.ERROR, True) == (status, "the expression steps of this review are used up" in message)


def test_a_message_of_the_pod_security_standards_lists_so_many_fields() -> None:
    """Further fields are counted, not listed; a value as long as an object is cut."""
    containers = [{"name": f"c{at}", "image": "a", "securityContext": {"privileged": True}} for at in range(300)]
    text = policy("validate:\n  failureAction: Enforce\n  podSecurity:\n    level: baseline", on="Pod")
    status, message = only(ask(text, {**POD, "spec": {"containers": containers}}))
    assert (Status.FAIL, 100, True) == (status, message.count("is forbidden"), ", and 200 more" in message)
    profile = {"annotations": {"container.apparmor.security.beta.kubernetes.io/app": "x" * 100_000}}
    status, message = only(ask(text, {**POD, "metadata": profile}))
    assert (Status.FAIL, MAX_MESSAGE) == (status, len(message))


def test_steps_are_counted() -> None:
    """Section 6: expression steps run out as an error."""
    rule = (
        "validate:\n  failureAction: Enforce\n  deny:\n    conditions:\n      all:\n"
        "      - key: '{{ request.object.spec.items[].a | length(@) }}'\n        operator: Equals\n        value: 1"
    )
    resource = {**CONFIG_MAP, "spec": {"items": [{"a": 1}] * 500}}
    assert Status.ERROR == only(ask(policy(rule), resource, budget=Budget(steps=100)))[0]
    assert Status.PASS == only(ask(policy(rule), resource))[0]


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*$", "(.*a){25}$", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_regular_expressions_of_policies_are_linear(pattern: str) -> None:
    """Section 4: catastrophic patterns cost nothing on RE2; an ordinary one matches."""
    key = f"{{{{ regex_match('{pattern}', request.object.data.a) }}}}"
    rule = (
        "validate:\n  failureAction: Enforce\n  deny:\n    conditions:\n      all:\n"
        f'      - key: "{key}"\n        operator: Equals\n        value: true'
    )
    resource = {**CONFIG_MAP, "data": {"a": "a" * 5000 + "!"}}
    started = time.process_time()
    assert only(ask(policy(rule), resource))[0] in (Status.PASS, Status.FAIL)
    assert time.process_time() - started < 1.0


def test_wildcards_are_linear() -> None:
    """Section 4: many stars do not backtrack."""
    started = time.process_time()
    assert not wildcard_match("*a" * 200 + "b", "a" * 20_000)
    assert wildcard_match("*a*b", "xaxb")
    assert time.process_time() - started < 1.0
