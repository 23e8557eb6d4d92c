"""The same bug has the same consequences through every front door: results and verdict are those of the library."""

from __future__ import annotations

import pytest

from pyverno.engine.engine import Engine
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.offline.session import Session
from tests.cases.case import Case, all_cases
from tests.parity.test_webhook import CASES
from tests.parity.webhook import Doors, Said, live_namespace, served, told
from tests.security.faultsites import Sites, sampled
from tests.security.test_faults import SMALLER, OddError, forget_caches

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
