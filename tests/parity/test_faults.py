"""The same bug has the same consequences through every front door: results and verdict are those of the library."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from pyverno.engine.engine import Engine
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.errors import BudgetExceededError, HostError, HostUnavailableError, NotFoundError
from pyverno.kube.kinds import BUILTIN_KINDS
from pyverno.offline.session import Session
from tests.cases.case import Case, all_cases
from tests.parity.test_webhook import CASES
from tests.parity.webhook import Doors, Said, live_namespace, served, told
from tests.property.test_context_errors import ENTRIES, FORMS, POD, POSITIONS
from tests.security.asking import Spy, compiled, policy
from tests.security.faultsites import Sites, sampled
from tests.security.test_faults import SMALLER, OddError
from tests.support.objects import forget_caches

PHASES = Doors.phases
# without it no door can say anything
MUTE = frozenset({"pyverno.engine.result.RuleResult.of"})


def asked_of(case: Case) -> Request:
    """Return one request of a case."""
    found = next(iter(case.requests()), None)
    assert found is not None
    return live_namespace(SMALLER.get(case.name, found))


def by_session(policies: PolicySet, case: Case, request: Request) -> Said:
    """Ask as `pyverno apply`, `pyverno test` and the library's sessions do."""
    session = Session(policies=tuple(policies.policies), host=case.host, exceptions=tuple(policies.exceptions))
    review = session.answer(request, PHASES)
    return Said(told(review.results), review.decision.allowed, review.resource)


def differences(case: Case, site: str, sites: Sites) -> list[tuple[str, Said, Said]]:
    """Return the doors that answer otherwise than the library while a site always fails."""
    compilation = Case(case.folder).compilation
    for each in (*compilation.policies, *compilation.exceptions):
        sites.wrap_fields(each)
    policies = PolicySet(served(compilation.policies), compilation.exceptions)
    doors, asked = Doors(policies, case.host, case.kinds), asked_of(case)
    sites.arm(site, OddError, always=True)
    try:
        expected = doors.library(asked)
        found = [("webhook", expected, doors.webhook(asked)), ("session", expected, by_session(policies, case, asked))]
    finally:
        sites.disarm()
    return [each for each in found if each[1].results != each[2].results or each[1].is_allowed != each[2].is_allowed]


@pytest.fixture(scope="module")
def reached() -> tuple[Sites, dict[str, list[str]]]:
    """Return the sites that each case reaches, a few of them for each."""
    forget_caches()
    sites, found = Sites(), {}
    names = sampled((case.values[0].name for case in CASES), 24)
    with sites.installed():
        for case in all_cases():
            if case.name not in names:
                continue
            policies = PolicySet(served(Case(case.folder).compilation.policies), case.compilation.exceptions)
            for each in policies.policies:
                sites.wrap_fields(each)
            sites.calls, sites.is_counting = {}, True
            Engine(policies, case.host).review(asked_of(case), PHASES)
            sites.is_counting = False
            found[case.name] = [site for site in sampled(sites.calls, 6) if site not in MUTE]
    return sites, found


def test_every_door_answers_as_the_library_does_with_the_same_bug(reached: tuple[Sites, dict[str, list[str]]]) -> None:
    """One function of the engine always fails; doors have other threads, hosts and groups of policies."""
    sites, found = reached
    cases = {case.name: case for case in all_cases()}
    differing = {}
    with sites.installed():
        for name, own in found.items():
            for site in own:
                if wrong := differences(cases[name], site, sites):
                    differing[f"{name}: {site}"] = wrong
    assert {} == differing
    assert sum(map(len, found.values())) >= 100


# --------------------------------------------------------------------------------------------------- entries that err

ERRORS: Mapping[str, Callable[[], Exception]] = {
    "host": lambda: HostError("planted"),
    "away": lambda: HostUnavailableError("planted"),
    "gone": lambda: NotFoundError("planted"),
    "budget": lambda: BudgetExceededError("planted", resource="calls"),
    "bug": lambda: KeyError("planted"),
    "odd": OddError,
}
CALLS = frozenset(
    {"api_call", "http_call", "http_exchange", "config_map", "get_object", "list_objects", "image_data", "global_entry"}
)


class Erring(Spy):
    """A Host whose every call fails in the same way."""

    def __init__(self, error: Callable[[], Exception]) -> None:
        super().__init__()
        self._error = error

    def __getattribute__(self, name: str) -> Any:
        if name not in CALLS:
            return super().__getattribute__(name)

        def fail(*_: object, **__: object) -> object:
            raise self._error()

        return fail


LIBRARY = {
    "http": "http.Get('https://x.example.com')",
    "an object": "resource.Get('v1', 'configmaps', 'team', 'a')",
    "objects": "resource.List('v1', 'configmaps', 'team').items",
    "the global context": "globalContext.Get('entry', '')",
    "an image": "image.GetMetadata('nginx')",
}
EMPTY = (
    *("!has(variables.v.a)", "variables.v == null", "variables.v == {}", "dyn(variables.v).all(x, false)"),
    *("!dyn(variables.v).exists(x, true)", "size(dyn(variables.v)) == 0", "!('a' in dyn(variables.v))"),
    *("variables.v.?a.orValue('') == ''", "!variables.?v.hasValue()", "dyn(variables.v).map(x, x) == []"),
    *(
        "variables.v == null ? true : false",
        "[variables.v].all(x, x == null)",
        "dyn(variables.v).filter(x, true) == []",
    ),
    *(
        "!(has(variables.v.a) && true)",
        "variables.v == null || false",
        "optional.of(variables.v).orValue(null) == null",
    ),
)
"""Expressions that hold for what is empty."""
NULL = frozenset({("an object", "gone"), ("the global context", "away")})
"""Kyverno: an object or an entry that does not exist reads as null."""


def _in_cel(call: str, expression: str) -> str:
    return f"""
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {{name: guard}}
spec:
  validationActions: [Deny]
  matchConstraints:
    resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}}]
  variables: [{{name: v, expression: "{call}"}}]
  validations: [{{expression: "{expression}"}}]
"""


def _in_jmespath(entry: str, position: str, form: str) -> str:
    read = form.format("v.data.k" if "configMap" in entry else "v")
    context = f"context:\n- name: v\n  {entry}\n"
    rule = POSITIONS[position].replace("validate:\n", "validate:\n  failureAction: Enforce\n")
    return policy(context + rule.replace("EXPRESSION", read), on="Pod")


def _questions() -> Iterator[tuple[str, str, str]]:
    """Yield a name, a kind of error and a policy that passes what is empty, for each entry, form and error."""
    for kind in ERRORS:
        for name, call in LIBRARY.items():
            if (name, kind) not in NULL:
                yield from ((f"{name}: {each}: {kind}", kind, _in_cel(call, each)) for each in EMPTY)
        for name, entry in ENTRIES.items():
            if "broken" in entry or "untrue" in entry or name == "nil":
                continue  # they read another entry, or nothing
            for position in POSITIONS:
                for form in FORMS:
                    yield f"{name}: {position}: {form}: {kind}", kind, _in_jmespath(entry, position, form)


def test_an_entry_that_errs_denies_at_every_door() -> None:
    """Every kind of entry and library call, under every form, with every error of the Host: no door reads "empty"."""
    questions = {name: (kind, text) for name, kind, text in _questions()}
    names = sampled(questions, 200)
    request = live_namespace(Request.from_manifest(POD))
    wrong = {}
    for name in names:
        kind, text = questions[name]
        compilation = compiled(text)
        if compilation.errors:
            continue  # a form that the type of this call does not take
        policies, host = compilation.policy_set(), Erring(ERRORS[kind])
        doors = Doors(policies, host, BUILTIN_KINDS)
        session = Session(policies=tuple(policies.policies), host=host)
        review = session.answer(request, PHASES)
        said = {
            "library": doors.library(request),
            "webhook": doors.webhook(request),
            "session": Said(told(review.results), review.decision.allowed, review.resource),
        }
        if any(each.is_allowed for each in said.values()) or len({each.results for each in said.values()}) > 1:
            wrong[name] = said
    assert {} == wrong
    assert len(names) >= 200
