"""Every control, at every level and version, in every list of containers."""

import pytest

from pyverno.podsecurity import CHECKS, CONTROLS, Level, Reach, evaluate

_LISTS = ("containers", "initContainers", "ephemeralContainers")
_VERSIONS = ("v1.0", "v1.8", "v1.18", "v1.19", "v1.22", "v1.24", "v1.25", "v1.30", "v1.34", "v1.99", "latest", "")
_LEVELS = ("baseline", "restricted", "privileged")

_GOOD = {
    "name": "good",
    "securityContext": {
        "allowPrivilegeEscalation": False,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
        "capabilities": {"drop": ["ALL"]},
    },
}

# check id → (container field under securityContext or the container itself, offending value)
_BASELINE_CONTAINER = {
    "windowsHostProcess": {"windowsOptions": {"hostProcess": True}},
    "privileged": {"privileged": True},
    "capabilities_baseline": {"capabilities": {"add": ["SYS_ADMIN"], "drop": ["ALL"]}},
    "appArmorProfile": {"appArmorProfile": {"type": "Unconfined"}},
    "seLinuxOptions": {"seLinuxOptions": {"type": "spc_t"}},
    "procMount": {"procMount": "Unmasked"},
}
_RESTRICTED_CONTAINER = {
    "capabilities_restricted": {"capabilities": {"add": ["CHOWN"], "drop": ["ALL"]}},
    "seccompProfile_restricted": {"seccompProfile": {"type": "Unconfined"}},
    "allowPrivilegeEscalation": {"allowPrivilegeEscalation": True},
    "runAsNonRoot": {"runAsNonRoot": False},
    "runAsUser": {"runAsUser": 0},
}


def _violated(pod, level, version):
    outcome = evaluate(pod, "Pod", level=level, version=version)
    assert outcome.allowed == (not outcome.violations)
    return [violation.check_id for violation in outcome.violations]


def _pod(listed, security=None, **container):
    bad = {**_GOOD, "name": "bad", **container}
    if security is not None:
        bad["securityContext"] = {**_GOOD["securityContext"], **security}
    return {"spec": {"containers": [_GOOD], listed: [_GOOD, bad]}}


@pytest.mark.parametrize("level", _LEVELS)
@pytest.mark.parametrize("version", _VERSIONS)
def test_a_hardened_pod_passes_everywhere(level, version):
    """The good container used below violates nothing."""
    assert _violated({"spec": {name: [_GOOD] for name in _LISTS}}, level, version) == []


@pytest.mark.parametrize("listed", _LISTS)
@pytest.mark.parametrize("version", _VERSIONS)
@pytest.mark.parametrize("level", _LEVELS)
@pytest.mark.parametrize("check_id", _BASELINE_CONTAINER)
def test_a_baseline_check_holds_in_every_list_level_and_version(check_id, level, version, listed):
    """No version drops a baseline check, and restricted includes all of them."""
    pod = _pod(listed, _BASELINE_CONTAINER[check_id])
    outcome = evaluate(pod, "Pod", level=level, version=version)
    found = {violation.check_id: violation for violation in outcome.violations}
    assert check_id in found
    assert found[check_id].errors[0].field.startswith(f"spec.{listed}[1].securityContext.")


@pytest.mark.parametrize("listed", _LISTS)
@pytest.mark.parametrize("version", _VERSIONS)
@pytest.mark.parametrize("check_id", _RESTRICTED_CONTAINER)
def test_a_restricted_check_holds_in_every_list_and_version(check_id, version, listed):
    """A check that is younger than the version runs in its oldest variant."""
    pod = _pod(listed, _RESTRICTED_CONTAINER[check_id])
    assert check_id in _violated(pod, "restricted", version)
    assert check_id not in _violated(pod, "baseline", version)


@pytest.mark.parametrize("listed", _LISTS)
@pytest.mark.parametrize("version", [*_VERSIONS[3:]])
@pytest.mark.parametrize("level", _LEVELS)
def test_unconfined_seccomp_is_refused_from_1_19_on(level, version, listed):
    """`latest` is included: Kyverno once forgot it."""
    pod = _pod(listed, {"seccompProfile": {"type": "Unconfined"}})
    assert "seccompProfile_baseline" in _violated(pod, level, version)


@pytest.mark.parametrize("version", ["v1.0", "v1.18"])
def test_seccomp_annotations_are_judged_before_1_19(version):
    """The field did not exist then."""
    field = _pod("containers", {"seccompProfile": {"type": "Unconfined"}})
    assert _violated(field, "baseline", version) == []
    for key in ("seccomp.security.alpha.kubernetes.io/pod", "container.seccomp.security.alpha.kubernetes.io/good"):
        for value, expected in (
            ("unconfined", ["seccompProfile_baseline"]),
            ("", ["seccompProfile_baseline"]),
            ("localhost/a", []),
            ("runtime/default", []),
            ("docker/default", []),
        ):
            pod = {"metadata": {"annotations": {key: value}}, "spec": {"containers": [_GOOD]}}
            assert _violated(pod, "baseline", version) == expected
            assert _violated(pod, "baseline", "v1.19") == []


@pytest.mark.parametrize("version", _VERSIONS)
@pytest.mark.parametrize("level", _LEVELS)
@pytest.mark.parametrize(
    ("check_id", "spec"),
    [
        ("hostNamespaces", {"hostNetwork": True}),
        ("hostNamespaces", {"hostPID": True}),
        ("hostNamespaces", {"hostIPC": True}),
        ("hostPathVolumes", {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}),
        ("windowsHostProcess", {"securityContext": {"windowsOptions": {"hostProcess": True}}}),
        ("seLinuxOptions", {"securityContext": {"seLinuxOptions": {"user": "system_u"}}}),
        ("seLinuxOptions", {"securityContext": {"seLinuxOptions": {"role": "sysadm_r"}}}),
        ("appArmorProfile", {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}),
        ("sysctls", {"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}}),
    ],
)
def test_a_pod_level_baseline_check_holds_in_every_level_and_version(check_id, spec, level, version):
    """Fields of the pod are checked like fields of containers."""
    assert check_id in _violated({"spec": {"containers": [_GOOD], **spec}}, level, version)


@pytest.mark.parametrize("version", _VERSIONS)
@pytest.mark.parametrize(
    ("check_id", "spec"),
    [
        ("restrictedVolumes", {"volumes": [{"name": "v", "nfs": {}}]}),
        ("runAsNonRoot", {"securityContext": {"runAsNonRoot": False}}),
        ("runAsUser", {"securityContext": {"runAsUser": 0}}),
    ],
)
def test_a_pod_level_restricted_check_holds_in_every_version(check_id, spec, version):
    """The baseline level has no such check."""
    pod = {"spec": {"containers": [_GOOD], **spec}}
    assert _violated(pod, "restricted", version) == [check_id]
    assert _violated(pod, "baseline", version) == []


@pytest.mark.parametrize("listed", _LISTS)
@pytest.mark.parametrize("ports", [[{"hostPort": 80}], [{"hostPort": 0}, {"hostPort": 8080}]])
def test_host_ports_are_refused(ports, listed):
    """Port 0 is no port; the error points at the port at fault."""
    outcome = evaluate(_pod(listed, ports=ports), "Pod", level="baseline")
    assert [violation.check_id for violation in outcome.violations] == ["hostPorts"]
    assert outcome.violations[0].errors[0].field == f"spec.{listed}[1].ports[{len(ports) - 1}].hostPort"


@pytest.mark.parametrize("listed", _LISTS)
@pytest.mark.parametrize("version", ["v1.0", "v1.33", "v1.34", "latest"])
@pytest.mark.parametrize("action", ["httpGet", "tcpSocket"])
@pytest.mark.parametrize("handler", ["livenessProbe", "readinessProbe", "startupProbe", "postStart", "preStop"])
def test_hosts_in_probes_and_handlers_are_refused(handler, action, version, listed):
    """The check has one variant, of 1.34, and older versions run it too."""
    for host, expected in (("10.0.0.1", ["hostProbesAndHostLifecycle"]), ("", []), (None, [])):
        target = {action: {"host": host, "port": 80}}
        field = {"lifecycle": {handler: target}} if handler in ("postStart", "preStop") else {handler: target}
        assert _violated(_pod(listed, **field), "baseline", version) == expected


@pytest.mark.parametrize(
    ("sysctl", "first"),
    [
        ("kernel.shm_rmid_forced", 0),
        ("net.ipv4.ip_local_port_range", 0),
        ("net.ipv4.ip_unprivileged_port_start", 0),
        ("net.ipv4.tcp_syncookies", 0),
        ("net.ipv4.ping_group_range", 0),
        ("net.ipv4.ip_local_reserved_ports", 27),
        ("net.ipv4.tcp_keepalive_time", 29),
        ("net.ipv4.tcp_fin_timeout", 29),
        ("net.ipv4.tcp_keepalive_intvl", 29),
        ("net.ipv4.tcp_keepalive_probes", 29),
        ("net.ipv4.tcp_rmem", 32),
        ("net.ipv4.tcp_wmem", 32),
    ],
)
def test_a_safe_sysctl_is_allowed_from_its_version_on(sysctl, first):
    """The version before still refuses it."""
    pod = {"spec": {"securityContext": {"sysctls": [{"name": sysctl}]}}}
    assert _violated(pod, "baseline", f"v1.{first}") == []
    assert _violated(pod, "baseline", "latest") == []
    if first:
        assert _violated(pod, "baseline", f"v1.{first - 1}") == ["sysctls"]


@pytest.mark.parametrize(("version", "expected"), [("v1.30", ["seLinuxOptions"]), ("v1.31", []), ("latest", [])])
def test_the_engine_type_of_selinux_is_allowed_from_1_31_on(version, expected):
    """Containers that run a container engine need that SELinux type."""
    assert (
        _violated(_pod("containers", {"seLinuxOptions": {"type": "container_engine_t"}}), "baseline", version)
        == expected
    )


@pytest.mark.parametrize(("version", "expected"), [("v1.24", 3), ("v1.25", 0), ("latest", 0)])
def test_windows_pods_are_relaxed_from_1_25_on(version, expected):
    """Fields that Windows does not have cannot be demanded."""
    bare = {"name": "bare", "securityContext": {"runAsNonRoot": True}}
    pod = {"spec": {"os": {"name": "windows"}, "containers": [bare]}}
    assert len(_violated(pod, "restricted", version)) == expected


@pytest.mark.parametrize("name", ["linux", "", "Windows", None])
def test_only_windows_is_relaxed(name):
    """The name of the operating system is compared case-sensitively."""
    pod = {"spec": {"os": {"name": name}, "containers": [{"name": "bare"}]}}
    assert "allowPrivilegeEscalation" in _violated(pod, "restricted", "latest")


def test_a_user_namespace_relaxes_nothing():
    """Kubernetes 1.34 relaxes checks for user namespaces behind a feature gate only."""
    bare = {"name": "bare", "securityContext": {"procMount": "Unmasked", "runAsUser": 0}}
    found = _violated({"spec": {"hostUsers": False, "containers": [bare]}}, "restricted", "latest")
    assert {"procMount", "runAsUser", "runAsNonRoot"} <= set(found)


@pytest.mark.parametrize("source", ["configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "secret"])
def test_core_volumes_are_allowed(source):
    """A source that is null is not set, so its volume has no known type."""
    assert _violated({"spec": {"volumes": [{"name": "v", source: {}}]}}, "restricted", "latest") == []
    outcome = evaluate({"spec": {"volumes": [{"name": "v", source: None}]}}, "Pod", level="restricted")
    assert outcome.violations[0].errors[0].field == "spec.volumes[0].unknown"


def test_a_host_path_volume_is_reported_by_both_checks():
    """The restricted check adds its violation to that of the baseline check."""
    pod = {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}}
    assert _violated(pod, "restricted", "latest") == ["hostPathVolumes", "restrictedVolumes"]


def test_containers_inherit_from_the_pod():
    """A container need not repeat what the pod sets, but must not override it."""
    security = {"runAsNonRoot": True, "seccompProfile": {"type": "Localhost"}}
    quiet = {"name": "q", "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}
    pod = {"spec": {"securityContext": security, "containers": [quiet]}}
    assert _violated(pod, "restricted", "latest") == []
    undoing = {**quiet, "securityContext": {**quiet["securityContext"], "runAsNonRoot": False}}
    assert _violated({"spec": {**pod["spec"], "containers": [undoing]}}, "restricted", "latest") == ["runAsNonRoot"]


def test_an_unset_field_must_be_set_or_is_named_nil():
    """Without a security context the message demands the field; with one it names the value nil."""
    pod = {"spec": {"containers": [{"name": "a"}, {"name": "b", "securityContext": {}}]}}
    outcome = evaluate(pod, "Pod", level="restricted")
    escalation = next(each for each in outcome.violations if each.check_id == "allowPrivilegeEscalation")
    assert [error.text for error in escalation.errors] == [
        "spec.containers[0].securityContext.allowPrivilegeEscalation: Required value",
        "spec.containers[1].securityContext.allowPrivilegeEscalation is forbidden, forbidden values found: nil",
    ]


def test_capabilities_are_reported_sorted_and_once():
    """A drop list without ALL is itself an offending value."""
    security = {"capabilities": {"add": ["SYS_TIME", "NET_RAW", "SYS_TIME"], "drop": ["MKNOD", "CHOWN"]}}
    outcome = evaluate(
        {"spec": {"containers": [{"name": "a", "securityContext": security}]}}, "Pod", level="restricted"
    )
    restricted = next(each for each in outcome.violations if each.check_id == "capabilities_restricted")
    assert [error.value for error in restricted.errors] == [("CHOWN", "MKNOD"), ("NET_RAW", "SYS_TIME")]
    assert restricted.detail == (
        'container "a" must set securityContext.capabilities.drop=["ALL"]; '
        'container "a" must not include "NET_RAW", "SYS_TIME" in securityContext.capabilities.add'
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", []),
        ("runtime/default", []),
        ("localhost/p", []),
        ("unconfined", ["appArmorProfile"]),
        ("localhost", ["appArmorProfile"]),
    ],
)
def test_app_armor_annotations_are_judged_in_every_version(value, expected):
    """The annotation of any container counts, whether the container exists or not."""
    key = "container.apparmor.security.beta.kubernetes.io/gone"
    pod = {"metadata": {"annotations": {key: value}}, "spec": {"containers": [_GOOD]}}
    for version in _VERSIONS:
        assert _violated(pod, "baseline", version) == expected


def test_details_name_the_pod_the_containers_and_the_values():
    """The text equals that of Kubernetes."""
    pod = {
        "metadata": {"annotations": {"container.apparmor.security.beta.kubernetes.io/a": "unconfined"}},
        "spec": {
            "securityContext": {"appArmorProfile": {"type": "Unconfined"}},
            "containers": [{"name": "a", "securityContext": {"appArmorProfile": {"type": "Other"}}}],
        },
    }
    violation = evaluate(pod, "Pod", level="baseline").violations[0]
    assert violation.reason == "forbidden AppArmor profiles"
    assert violation.detail == (
        'pod and container "a" and annotation must not set AppArmor profile type to "Other", "Unconfined", '
        '"container.apparmor.security.beta.kubernetes.io/a="unconfined""'
    )


def test_checks_and_controls_are_complete_and_unique():
    """Each check belongs to one control; every control documents itself."""
    ids = [check.id for check in CHECKS]
    assert len(ids) == len(set(ids)) == 18
    assert sorted(ids) == sorted(check.id for control in CONTROLS for check in control.checks)
    assert sum(check.level is Level.BASELINE for check in CHECKS) == 12
    for control in CONTROLS:
        assert all((control.title, control.what, control.why, control.fields, control.allowed))
        assert isinstance(control.reach, Reach)
        for check in control.checks:
            starts = [variant.since for variant in check.variants]
            assert starts == sorted(set(starts))
