"""Evaluation of the Pod Security Standards: levels, kinds, messages and exceptions."""

import copy

import pytest

from pyverno.errors import BudgetExceededError, DocumentError, ValueSyntaxError
from pyverno.lang.runtime import Budget
from pyverno.podsecurity import compile_excludes, compile_pod_security, evaluate, message
from pyverno.podsecurity.pod import POD_KINDS

_BAD = {
    "metadata": {"annotations": {"container.apparmor.security.beta.kubernetes.io/a": "unconfined"}},
    "spec": {"hostPID": True, "containers": [{"name": "a", "image": "a"}]},
}


def _resource(kind):
    if kind == "Pod":
        return _BAD
    if kind == "CronJob":
        return {"spec": {"jobTemplate": {"spec": {"template": _BAD}}}}
    return {"spec": {"template": _BAD}}


@pytest.mark.parametrize("kind", sorted(POD_KINDS))
def test_paths_are_those_of_the_kind(kind):
    """Paths of metadata begin with the template, even for a bare Pod."""
    prefix = {"Pod": "spec", "CronJob": "spec.jobTemplate.spec.template.spec"}.get(kind, "spec.template.spec")
    outcome = evaluate(_resource(kind), kind, level="baseline")
    assert [error.field for violation in outcome.violations for error in violation.errors] == [
        "spec.template.metadata.annotations[container.apparmor.security.beta.kubernetes.io/a]",
        f"{prefix}.hostPID",
    ]


def test_the_message_lists_groups_without_a_separator():
    """Each check contributes its reason and its fields."""
    outcome = evaluate(_BAD, "Pod", level="baseline", version="v1.29")
    assert message("psa", outcome, level="baseline", version="v1.29") == (
        "Validation rule 'psa' failed. It violates PodSecurity \"baseline:v1.29\": "
        "(Forbidden reason: forbidden AppArmor profile, field error list: "
        "[spec.template.metadata.annotations[container.apparmor.security.beta.kubernetes.io/a] is forbidden, "
        "forbidden values found: unconfined])"
        "(Forbidden reason: host namespaces, field error list: "
        "[spec.hostPID is forbidden, forbidden values found: true])"
    )


def test_the_version_is_shown_as_the_rule_wrote_it():
    """A rule without a version shows none."""
    check = compile_pod_security({"level": "baseline"})
    outcome = check.check(_BAD, "Pod")
    assert 'PodSecurity "baseline:": ' in message("r", outcome, level=check.level, version=check.version)


def test_an_allowed_pod_has_the_passing_message():
    """The message lists no check."""
    outcome = evaluate({}, "Pod", level="restricted")
    assert message("r", outcome, level="restricted", version="latest") == "Validation rule 'r' passed."


def test_the_privileged_level_requires_as_much_as_restricted():
    """Only baseline narrows the list of checks."""
    pod = {"spec": {"containers": [{"name": "a"}]}}
    by_level = {
        level: evaluate(pod, "Pod", level=level).violations for level in ("privileged", "restricted", "baseline")
    }
    assert by_level["privileged"] == by_level["restricted"] != by_level["baseline"] == ()


def test_violations_come_in_the_order_of_kubernetes():
    """The order is fixed, so the message is the same in every run."""
    pod = {"spec": {"hostPID": True, "containers": [{"name": "a", "securityContext": {"privileged": True}}]}}
    assert [violation.check_id for violation in evaluate(pod, "Pod", level="restricted").violations] == [
        "allowPrivilegeEscalation",
        "capabilities_restricted",
        "hostNamespaces",
        "privileged",
        "runAsNonRoot",
        "seccompProfile_restricted",
    ]


def test_an_exception_is_consulted_only_for_what_the_rule_refuses():
    """A pod that the rule allows counts as allowed, even when an exception would match it."""
    check = compile_pod_security({"level": "baseline", "exclude": [{"controlName": "AppArmor"}]})
    extra = compile_excludes([{"controlName": "Host Namespaces"}])
    assert check.check({}, "Pod", extra).is_exempted is False
    exempted = check.check(_BAD, "Pod", extra)
    assert (exempted.allowed, exempted.is_exempted) == (True, True)


def test_an_exception_that_is_too_narrow_leaves_the_rest():
    """Only violations that the exception does not tolerate are reported."""
    check = compile_pod_security({"level": "baseline"})
    outcome = check.check(_BAD, "Pod", compile_excludes([{"controlName": "AppArmor"}]))
    assert [violation.check_id for violation in outcome.violations] == ["hostNamespaces"]


def test_names_of_containers_are_kept_for_reports():
    """The result of each check holds the names of the containers that violate it."""
    pod = {"spec": {"containers": [{"name": "a"}, {"name": "b", "securityContext": {"privileged": True}}]}}
    found = {each.check_id: each.containers for each in evaluate(pod, "Pod", level="restricted").violations}
    assert (found["privileged"], found["runAsNonRoot"]) == (("b",), ("a", "b"))


def test_a_version_that_does_not_parse_is_an_error_of_the_rule():
    """Compiling the rule raises the error."""
    with pytest.raises(ValueSyntaxError):
        compile_pod_security({"level": "baseline", "version": "1.24"})


@pytest.mark.parametrize("kind", ["Service", "ConfigMap"])
def test_a_kind_without_a_pod_is_an_error_not_a_pass(kind):
    """The engine reports the error as that of the rule."""
    with pytest.raises(DocumentError):
        compile_pod_security({"level": "baseline"}).check({}, kind)


def test_the_resource_is_never_changed():
    """Excludes are applied to copies of the parts of the pod that they concern."""
    before = copy.deepcopy(_BAD)
    excludes = [{"controlName": "Capabilities", "images": ["*"]}, {"controlName": "AppArmor"}]
    evaluate(_BAD, "Pod", level="restricted", excludes=excludes)
    assert before == _BAD


def test_thousands_of_containers_are_judged_in_one_pass():
    """Work grows with the pod, not with its square."""
    pod = {"spec": {"containers": [{"name": str(place), "image": "i"} for place in range(3000)]}}
    outcome = evaluate(pod, "Pod", level="restricted")
    assert {len(violation.errors) for violation in outcome.violations} == {3000}


def test_every_container_and_control_is_charged() -> None:
    """A pod with very many containers exhausts the step budget before all controls have checked all of them."""
    pod = {"spec": {"containers": [{"name": f"c{number}"} for number in range(500)]}}
    check = compile_pod_security({"level": "restricted"})
    with pytest.raises(BudgetExceededError):
        check.check(pod, "Pod", meter=Budget(steps=5_000))
