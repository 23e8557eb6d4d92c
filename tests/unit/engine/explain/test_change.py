"""The smallest change that turns a result: what is found for each kind of rule, and that the engine agrees."""

import pytest

import pyverno
from pyverno.engine.explain.change import Change
from pyverno.kube.patch.jsonpatch import apply_patch
from tests.unit.engine.explain.test_explanation import POD, rules

IMAGE = "/spec/containers/0/image"
PATTERN = "validate: {message: m, pattern: %s}"
DENY = "validate: {message: m, deny: {conditions: %s}}"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (PATTERN % "{spec: {hostPID: false}}", [("replace", "/spec/hostPID", False)]),
        (PATTERN % "{spec: {'=(hostPID)': false}}", [("replace", "/spec/hostPID", False)]),
        (PATTERN % "{spec: {X(hostPID): 'null'}}", [("remove", "/spec/hostPID", None)]),
        (PATTERN % "{metadata: {labels: {team: '?*'}}}", [("add", "/metadata/labels/team", "x")]),
        (PATTERN % "{metadata: {annotations: {team: a | b}}}", [("add", "/metadata/annotations", {"team": "a"})]),
        (
            PATTERN % "{spec: {containers: [{image: '!*:latest'}]}}",
            [("replace", "/spec/containers/0/image", "nginx:v1")],
        ),
        (PATTERN % "{spec: {replicas: '>3'}}", [("add", "/spec/replicas", 4)]),
        (PATTERN % "{spec: {^(volumes): [{name: v}]}}", None),
        (
            DENY % "{any: [{key: '{{ request.object.spec.hostPID || `false` }}', operator: Equals, value: true}]}",
            [("remove", "/spec/hostPID", None)],
        ),
        (
            DENY
            % "{any: [{key: '{{ request.object.metadata.labels.app }}', operator: AnyNotIn, value: [shop, cart]}]}",
            [("replace", "/metadata/labels/app", "shop")],
        ),
        ("validate: {podSecurity: {level: baseline}}", [("remove", "/spec/hostPID", None)]),
        (
            "validate: {cel: {expressions: [{expression: \"object.metadata.name == 'db'\"}]}}",
            [("replace", "/metadata/name", "db")],
        ),
    ],
)
def test_the_smallest_change_is_an_edit_of_one_field(body: str, expected: list | None):
    """One edit of the blamed field is enough, and the engine has seen that the rule passes then."""
    change = change_of(body)
    found = None if change is None else [(each["op"], each["path"], each.get("value")) for each in change.patch]
    assert expected == found


def change_of(body: str) -> Change | None:
    """The change that turns the failing result of one rule; its patch is applied and reviewed here again."""
    made = rules(body)
    review = pyverno.review(POD, made)
    failed = [result for result in review.results if result.status is pyverno.Status.FAIL]
    if not failed:
        return None
    change = review.explain().change(failed[0])
    if change is not None:
        changed = apply_patch(POD, [*change.patch])
        assert [pyverno.Status.PASS] == [each.status for each in pyverno.review(changed, made).results]
    return change


def test_failures_that_hide_each_other_are_mended_one_after_the_other():
    """A pattern stops at its first failure: the change mends all of them."""
    change = change_of(PATTERN % "{spec: {hostPID: false, containers: [{image: '!*:latest', name: '??*'}]}}")
    assert change is not None
    assert {"/spec/hostPID", "/spec/containers/0/image", "/spec/containers/0/name"} == {
        each["path"] for each in change.patch
    }


def test_two_fields_that_fail_together_are_changed_together():
    """Neither edit alone changes the rule's result."""
    one, other = (
        f"{{key: '{{{{ request.object.{path} }}}}', operator: Equals, value: {value}}}"
        for path, value in (("spec.hostPID", "true"), ("metadata.name", "web"))
    )
    change = change_of(DENY % f"{{any: [{one}, {other}]}}")
    assert change is not None
    assert {"/spec/hostPID", "/metadata/name"} == {each["path"] for each in change.patch}


def test_none_is_returned_when_no_change_of_the_object_helps():
    """A rule that denies everything has nothing to change."""
    assert change_of(DENY % "{any: [{key: a, operator: Equals, value: a}]}") is None


def test_fields_are_left_alone_where_another_change_is_wanted():
    """The second way of an anyPattern is found when the first is not to be taken."""
    patterns = "[{spec: {hostPID: false}}, {metadata: {labels: {team: x}}}]"
    made = rules(f"validate: {{message: m, anyPattern: {patterns}}}")
    review = pyverno.review(POD, made)
    (failed,) = review.results
    explanation = review.explain()
    first = explanation.change(failed)
    assert first is not None
    second = explanation.change(failed, without={edit.path for edit in first.edits})
    assert second is not None
    assert {each["path"] for each in first.patch}.isdisjoint(each["path"] for each in second.patch)
    assert explanation.change(failed, without={("spec",), ("metadata",)}) is None
