"""Events for violations: one for each new result, at a bounded rate."""

from __future__ import annotations

from pyverno.controllers.reports.violations import Violations
from pyverno.controllers.runtime.events import Event
from pyverno.engine.result import FailureAction, ResourceRef, RuleResult, RuleType, Status
from pyverno.engine.rule import Family, PolicyInfo, RuleInfo

POD = ResourceRef("v1", "Pod", "team", "web")
RULE = RuleInfo(PolicyInfo("ClusterPolicy", "kyverno.io/v1", "latest", Family.RULES), "tag", RuleType.VALIDATION)


def result(status: Status) -> RuleResult:
    """Return a result of the rule."""
    return RuleResult(RULE, FailureAction.AUDIT, status, "no latest")


def test_a_failure_is_an_event_on_its_policy_and_on_its_object() -> None:
    """The event on the policy refers to the object; passing and skipped results have none."""
    sent: list[Event] = []
    Violations(sent.append).note(POD, [result(status) for status in (Status.PASS, Status.SKIP, Status.FAIL)])
    event, other = sent
    assert ("PolicyViolation", "Pod team/web: [tag] fail; no latest") == (event.reason, event.note)
    assert ("ClusterPolicy", POD, "kyverno-scan") == (event.regarding.kind, event.related, event.source)
    assert ("policy latest/tag fail: no latest", POD, "kyverno-scan") == (other.note, other.regarding, other.source)


def test_a_rule_that_errs_on_every_object_has_one_event_in_ten_minutes() -> None:
    """Suppressed events are counted."""
    now, sent = [0.0], list[Event]()
    violations = Violations(sent.append, clock=lambda: now[0])
    for _ in range(500):
        violations.note(POD, [result(Status.ERROR)])
    assert (2, 499) == (len(sent), violations.held_back)
    now[0] = 601
    violations.note(POD, [result(Status.ERROR)])
    assert 4 == len(sent)


def test_a_policy_that_everything_violates_has_a_bounded_number_of_events() -> None:
    """After a burst there is one event every few seconds."""
    now, sent = [0.0], list[Event]()
    violations = Violations(sent.append, clock=lambda: now[0])
    for _ in range(1000):
        violations.note(POD, [result(Status.FAIL)])
    assert 100 == len(sent)
    now[0] = 10
    for _ in range(1000):
        violations.note(POD, [result(Status.FAIL)])
    assert 104 == len(sent)
