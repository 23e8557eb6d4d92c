"""Static checks of excludes, before any resource is evaluated."""

import pytest

from pyverno.podsecurity import CONTROLS, Reach, exclude_problems

_IMAGES_MISSING = "exclude.images must be specified for the container level control"
_IMAGES_EXTRA = "exclude.images must not be specified for the pod level control"


@pytest.mark.parametrize("control", [each for each in CONTROLS if each.name], ids=lambda control: control.name)
def test_images_are_demanded_or_forbidden_by_the_reach_of_the_control(control):
    """Container controls require images, pod controls forbid them, and controls of both accept either."""
    without = [problem.text for problem in exclude_problems([{"controlName": control.name}])]
    having = [problem.text for problem in exclude_problems([{"controlName": control.name, "images": ["*"]}])]
    assert without == ([_IMAGES_MISSING] if control.reach is Reach.CONTAINER else [])
    assert having == ([_IMAGES_EXTRA] if control.reach is Reach.POD else [])


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ({"restrictedField": "f"}, "podSecurity.exclude[0].values: Forbidden: values is required"),
        ({"restrictedField": "f", "values": []}, "podSecurity.exclude[0].values: Forbidden: values is required"),
        ({"values": ["v"]}, "podSecurity.exclude[0].restrictedField: Forbidden: restrictedField is required"),
    ],
)
def test_field_and_values_come_as_a_pair(extra, expected):
    """One without the other is forbidden."""
    problems = exclude_problems([{"controlName": "Sysctls", **extra}], level="baseline")
    assert [problem.message for problem in problems] == [expected]


@pytest.mark.parametrize("name", ["Volume Types", "Running as Non-root", "Running as Non-root user"])
def test_a_restricted_control_is_no_control_of_the_baseline(name):
    """An exception has no level, so it may name a restricted control."""
    expected = (
        f'podSecurity.exclude[0].controlName: Invalid value: "{name}": Invalid control name defined at the given level'
    )
    assert [each.message for each in exclude_problems([{"controlName": name}], level="baseline")] == [expected]
    assert exclude_problems([{"controlName": name}], level="restricted") == ()
    assert exclude_problems([{"controlName": name}], path="spec.podSecurity") == ()


@pytest.mark.parametrize("name", ["Seccomp", "Capabilities"])
def test_controls_of_both_levels_are_known_at_baseline(name):
    """Their baseline check can be excluded there."""
    assert exclude_problems([{"controlName": name, "images": ["*"]}], level="baseline") == ()


def test_problems_of_one_exclude_come_in_order_and_name_its_place():
    """Every problem is listed, not the first alone."""
    excludes = [{"controlName": "Sysctls"}, {"controlName": "Privilege Escalation", "values": ["v"]}]
    assert [each.path for each in exclude_problems(excludes, level="baseline", path="p")] == [
        "p[1].controlName",
        "p[1].restrictedField",
        "p[1].controlName",
    ]


@pytest.mark.parametrize("excludes", [None, {}, "x", [1, None]])
def test_wrong_types_are_left_to_the_schema(excludes):
    """This function never raises."""
    assert exclude_problems(excludes) == ()
