"""Priority of pods."""

from __future__ import annotations

import pytest

from kubesandbox.admission.plugins.priority import admit_priority, check_priority_class
from pyverno.engine.request import Operation
from pyverno.kube.status import StatusError
from tests.support.admissionstage import cluster, pod, request


def priority_class(name, value, **fields):
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
    return {**head, "value": value, **fields}


def admitted(body, *classes, **options):
    _, view = cluster(*classes)
    spec = admit_priority(request(body, **options), view).object["spec"]
    return {key: spec.get(key) for key in ("priority", "preemptionPolicy", "priorityClassName")}


def test_pods_without_a_class_have_priority_zero():
    """The policy is the one that Kubernetes writes."""
    expected = {"priority": 0, "preemptionPolicy": "PreemptLowerPriority", "priorityClassName": None}
    assert expected == admitted(pod())


def test_the_class_of_a_pod_gives_number_and_policy():
    """Both come from the class."""
    found = admitted(pod(priorityClassName="high"), priority_class("high", 1000, preemptionPolicy="Never"))
    assert {"priority": 1000, "preemptionPolicy": "Never", "priorityClassName": "high"} == found


def test_the_default_class_is_for_pods_without_one():
    """Of two defaults the lower one counts."""
    classes = (
        priority_class("a", 20, globalDefault=True, preemptionPolicy="PreemptLowerPriority"),
        priority_class("b", 10, globalDefault=True, preemptionPolicy="PreemptLowerPriority"),
    )
    expected = {"priority": 10, "preemptionPolicy": "PreemptLowerPriority", "priorityClassName": "b"}
    assert expected == admitted(pod(), *classes)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"priorityClassName": "none"}, "no PriorityClass with name none was found"),
        (
            {"priority": 5},
            "the integer value of priority (5) must not be provided in pod spec; priority admission controller "
            "computed 0 from the given PriorityClass name",
        ),
        (
            {"preemptionPolicy": "Never"},
            "the string value of PreemptionPolicy (Never) must not be provided in pod spec; priority admission "
            "controller computed PreemptLowerPriority from the given PriorityClass name",
        ),
    ],
)
def test_pods_can_not_choose_by_themselves(spec, why):
    """Unknown classes, other numbers and other policies are refused in Kubernetes' words."""
    with pytest.raises(StatusError) as refused:
        admitted(pod(**spec))
    assert f'pods "p" is forbidden: {why}' == refused.value.message


def test_updates_keep_what_they_leave_out():
    """A client that does not know the field does not lose it."""
    old = pod(priority=7, preemptionPolicy="Never")
    expected = {"priority": 7, "preemptionPolicy": "Never", "priorityClassName": None}
    assert expected == admitted(pod(), old=old, operation=Operation.UPDATE)


def test_only_one_class_is_the_default():
    """A second one is refused, the first may be written again."""
    first = priority_class("a", 1, globalDefault=True)
    _, view = cluster(first)
    check_priority_class(request(first, old=first, operation=Operation.UPDATE), view)
    with pytest.raises(StatusError, match="PriorityClass a is already marked as default"):
        check_priority_class(request(priority_class("b", 1, globalDefault=True)), view)
