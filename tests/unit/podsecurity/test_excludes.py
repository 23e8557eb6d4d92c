"""Excludes: which violations they remove."""

import pytest

from pyverno.podsecurity import evaluate

_ADD = "spec.containers[*].securityContext.capabilities.add"


def _container(image, *capabilities, name=None):
    return {"name": name or image, "image": image, "securityContext": {"capabilities": {"add": list(capabilities)}}}


def _left(pod, *excludes, level="baseline", version="latest"):
    outcome = evaluate(pod, "Pod", level=level, version=version, excludes=excludes)
    return {violation.check_id: [error.field for error in violation.errors] for violation in outcome.violations}


_NGINX = {"controlName": "Capabilities", "images": ["nginx*"], "restrictedField": _ADD, "values": ["SYS_ADMIN"]}


@pytest.mark.parametrize(
    ("container", "is_allowed"),
    [
        (_container("nginx:1", "SYS_ADMIN"), True),
        (_container("nginx:1", "SYS_ADMIN", "SYS_TIME"), False),
        (_container("busybox", "SYS_ADMIN"), False),
    ],
)
def test_all_offending_values_and_the_image_must_be_listed(container, is_allowed):
    """One value too many, or another image, keeps the violation."""
    assert (not _left({"spec": {"containers": [container]}}, _NGINX)) == is_allowed


def test_values_are_wildcards():
    """A pattern covers each offending value on its own."""
    pod = {"spec": {"containers": [_container("nginx", "SYS_ADMIN", "NET_RAW")]}}
    assert _left(pod, {**_NGINX, "values": ["SYS_*", "NET_?AW"]}) == {}


def test_the_field_is_compared_literally():
    """An exclude for containers leaves init containers alone."""
    pod = {"spec": {"initContainers": [_container("nginx", "SYS_ADMIN")]}}
    assert _left(pod, _NGINX) == {"capabilities_baseline": ["spec.initContainers[0].securityContext.capabilities.add"]}


def test_only_the_matching_containers_are_exempt():
    """Containers match by image; the error of the other container stays."""
    pod = {"spec": {"containers": [_container("busybox", "SYS_ADMIN"), _container("nginx", "SYS_ADMIN")]}}
    assert _left(pod, _NGINX) == {"capabilities_baseline": ["spec.containers[0].securityContext.capabilities.add"]}


def test_an_exclude_without_a_field_covers_every_field_and_both_checks():
    """The control Capabilities covers both the baseline and the restricted check."""
    pod = {"spec": {"containers": [_container("nginx", "SYS_ADMIN")]}}
    left = _left(pod, {"controlName": "Capabilities", "images": ["nginx"]}, level="restricted")
    assert not {"capabilities_baseline", "capabilities_restricted"} & left.keys()
    assert "runAsNonRoot" in left


def test_images_never_exempt_fields_of_the_pod():
    """An exclude with images applies to container fields only."""
    pod = {"spec": {"securityContext": {"windowsOptions": {"hostProcess": True}}, "containers": [_container("nginx")]}}
    exclude = {"controlName": "HostProcess", "images": ["*"]}
    assert _left(pod, exclude) == {"windowsHostProcess": ["spec.securityContext.windowsOptions.hostProcess"]}
    assert _left(pod, {"controlName": "HostProcess"}) == {}


def test_without_images_fields_of_containers_stay():
    """An offending container field is not found on the blank container."""
    container = {"name": "a", "image": "a", "securityContext": {"windowsOptions": {"hostProcess": True}}}
    assert "windowsHostProcess" in _left({"spec": {"containers": [container]}}, {"controlName": "HostProcess"})


def test_without_images_at_most_one_container_is_exempt_from_a_missing_field():
    """Kyverno evaluates a blank container, which lacks the field once."""
    pod = {"spec": {"containers": [{"name": "a", "image": "a"}, {"name": "b", "image": "b"}]}}
    left = _left(pod, {"controlName": "Running as Non-root"}, level="restricted")
    assert left["runAsNonRoot"] == ["spec.containers[1].securityContext.runAsNonRoot"]


@pytest.mark.parametrize(
    ("control", "spec", "field", "value"),
    [
        ("Host Namespaces", {"hostNetwork": True}, "spec.hostNetwork", "true"),
        ("HostPath Volumes", {"volumes": [{"hostPath": {"path": "/var/log"}}]}, "spec.volumes[*].hostPath", "/var/*"),
        (
            "Sysctls",
            {"securityContext": {"sysctls": [{"name": "kernel.sem"}]}},
            "spec.securityContext.sysctls[*].name",
            "kernel.*",
        ),
        ("Volume Types", {"volumes": [{"nfs": {}}]}, "spec.volumes[*].nfs", "anything"),
        ("Running as Non-root user", {"securityContext": {"runAsUser": 0}}, "spec.securityContext.runAsUser", "0"),
    ],
)
def test_pod_fields_are_exempt_by_field_and_value(control, spec, field, value):
    """An error without a value is tolerated by any list of values."""
    level = "restricted"
    exclude = {"controlName": control, "restrictedField": field, "values": [value]}
    before, after = _left({"spec": spec}, level=level), _left({"spec": spec}, exclude, level=level)
    assert len(after) == len(before) - 1
    if control != "Volume Types":
        assert _left({"spec": spec}, {**exclude, "values": ["other"]}, level=level) == before


def test_the_value_of_an_unset_field_is_nil():
    """The value `nil` in an exclude tolerates a missing allowPrivilegeEscalation."""
    container = {"name": "a", "image": "a", "securityContext": {}}
    field = "spec.containers[*].securityContext.allowPrivilegeEscalation"
    exclude = {"controlName": "Privilege Escalation", "images": ["a"], "restrictedField": field}
    pod = {"spec": {"containers": [container]}}
    assert "allowPrivilegeEscalation" not in _left(pod, {**exclude, "values": ["nil"]}, level="restricted")
    assert "allowPrivilegeEscalation" in _left(pod, {**exclude, "values": ["true"]}, level="restricted")


def test_each_tolerated_error_takes_one_error_away():
    """As in Kyverno, the last error moves into the place of the removed one."""
    volumes = [{"name": str(place), "hostPath": {"path": path}} for place, path in enumerate(("/a", "/b", "/c", "/d"))]
    exclude = {"controlName": "HostPath Volumes", "restrictedField": "spec.volumes[*].hostPath", "values": ["/a"]}
    left = _left({"spec": {"volumes": volumes}}, exclude)
    # The error that goes is the first of the field, not the one with the tolerated value.
    assert left == {"hostPathVolumes": [f"spec.volumes[{place}].hostPath" for place in (3, 1, 2)]}


def test_the_exclude_belongs_to_the_container_of_that_name():
    """Of two containers, only the one whose image the exclude names is exempt."""
    pod = {"spec": {"containers": [_container("a", "SYS_ADMIN", name="x"), _container("b", "SYS_ADMIN", name="y")]}}
    exclude = {"controlName": "Capabilities", "images": ["b"]}
    assert _left(pod, exclude) == {"capabilities_baseline": ["spec.containers[0].securityContext.capabilities.add"]}


def test_app_armor_annotations_are_fields_with_a_key():
    """The key of the annotation is in brackets."""
    key = "container.apparmor.security.beta.kubernetes.io/web"
    pod = {"metadata": {"annotations": {key: "unconfined"}}, "spec": {}}
    exclude = {"controlName": "AppArmor", "restrictedField": f"metadata.annotations[{key}]", "values": ["unconfined"]}
    assert _left(pod, exclude) == {}
    assert _left(pod, {**exclude, "values": ["runtime*"]}) != {}


@pytest.mark.parametrize("name", ["", "Nothing", "host namespaces", "hostNamespaces", None])
def test_an_unknown_control_excludes_nothing(name):
    """Control names are compared case-sensitively."""
    assert "hostNamespaces" in _left({"spec": {"hostPID": True}}, {"controlName": name})


def test_host_probes_can_not_be_excluded():
    """No control name covers that check."""
    probe = {"httpGet": {"host": "h", "port": 1}}
    pod = {"spec": {"containers": [{"name": "a", "image": "a", "livenessProbe": probe}]}}
    assert _left(pod, {"controlName": "", "images": ["*"]}) == {"hostProbesAndHostLifecycle": []}


def test_checks_left_over_keep_their_order():
    """Excludes do not shuffle the report."""
    pod = {
        "spec": {
            "hostPID": True,
            "securityContext": {"sysctls": [{"name": "x"}]},
            "volumes": [{"hostPath": {"path": "/"}}],
        }
    }
    assert list(_left(pod, {"controlName": "HostPath Volumes"})) == ["hostNamespaces", "sysctls"]


def test_taking_errors_away_agrees_with_the_plain_way():
    """Removing errors in one pass leaves the order that removing them one by one leaves."""
    volumes = [{"hostPath": {"path": f"/{place % 3}"}} for place in range(40)]
    exclude = {"controlName": "HostPath Volumes", "restrictedField": "spec.volumes[*].hostPath", "values": ["/0", "/2"]}
    expected = list(range(40))
    for place in range(40):
        if place % 3 != 1:
            expected[0] = expected[-1]
            expected.pop()
    assert _left({"spec": {"volumes": volumes}}, exclude)["hostPathVolumes"] == [
        f"spec.volumes[{place}].hostPath" for place in expected
    ]


def test_a_pod_of_many_containers_is_exempted_in_one_pass():
    """Work grows with the pod, not with its square."""
    containers = [_container("nginx", "SYS_ADMIN", name=f"c{place}") for place in range(5000)]
    assert _left({"spec": {"containers": containers}}, _NGINX) == {}
