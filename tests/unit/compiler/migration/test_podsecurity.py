"""Checks of the Pod Security Standards in CEL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pyverno.compiler.equivalence.compare import Pair, compare
from pyverno.compiler.equivalence.vocabulary import vocabulary_of
from pyverno.compiler.migration.outcome import UnconvertibleError
from pyverno.compiler.migration.podsecurity import all_containers, pod_security_tests
from pyverno.compiler.migration.schema import SchemaBook
from pyverno.compiler.migration.text import Cel, CelType, Reference
from pyverno.kube.json import JSON, JSONObject, deep_copy
from pyverno.podsecurity.controls import CHECKS
from tests.support.migration import GROUP, WITHOUT_AUTOGEN, admission, engine_of

POD = Reference("object", SchemaBook().of("", "v1", "Pod"))
WHERE = "validate.podSecurity"
CONTEXT: JSONObject = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
    "capabilities": {"drop": ["ALL"]},
}
PODS: tuple[JSONObject, ...] = tuple(
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "annotations": {}},
        "spec": {
            "securityContext": {},
            "volumes": [{"name": "v", "emptyDir": {}}],
            **{
                name: [{"name": name[:1], "image": "nginx:1.25", "securityContext": deep_copy(CONTEXT)}]
                for name in lists
            },
        },
    }
    for lists in (("containers",), ("initContainers", "containers"))
)
APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/c"
POD_EDITS: tuple[tuple[str, JSON], ...] = (
    ("metadata.annotations", {APP_ARMOR: "unconfined"}),
    ("metadata.annotations", {APP_ARMOR: "localhost/x"}),
    ("spec.hostNetwork", True),
    ("spec.hostPID", True),
    ("spec.hostIPC", True),
    ("spec.os", {"name": "windows"}),
    ("spec.volumes", [{"name": "v", "hostPath": {"path": "/x"}}]),
    ("spec.volumes", [{"name": "v", "nfs": {"server": "a", "path": "/x"}}]),
    ("spec.volumes", [{"name": "v", "configMap": {"name": "a"}}]),
    ("spec.securityContext.runAsNonRoot", True),
    ("spec.securityContext.runAsNonRoot", False),
    ("spec.securityContext.runAsUser", 0),
    ("spec.securityContext.runAsUser", 5),
    ("spec.securityContext.seccompProfile", {"type": "Unconfined"}),
    ("spec.securityContext.seccompProfile", {"type": "RuntimeDefault"}),
    ("spec.securityContext.appArmorProfile", {"type": "Unconfined"}),
    ("spec.securityContext.seLinuxOptions", {"type": "container_engine_t"}),
    ("spec.securityContext.seLinuxOptions", {"type": "spc_t"}),
    ("spec.securityContext.seLinuxOptions", {"role": "r"}),
    ("spec.securityContext.sysctls", [{"name": "net.ipv4.tcp_rmem", "value": "1"}]),
    ("spec.securityContext.sysctls", [{"name": "kernel.msgmax", "value": "1"}]),
    ("spec.securityContext.windowsOptions", {"hostProcess": True}),
)
CONTAINER_EDITS: tuple[tuple[str, JSON], ...] = (
    ("securityContext", None),
    ("securityContext.allowPrivilegeEscalation", None),
    ("securityContext.allowPrivilegeEscalation", True),
    ("securityContext.privileged", True),
    ("securityContext.procMount", "Unmasked"),
    ("securityContext.runAsNonRoot", None),
    ("securityContext.runAsNonRoot", False),
    ("securityContext.runAsUser", 0),
    ("securityContext.seccompProfile", None),
    ("securityContext.seccompProfile", {"type": "Unconfined"}),
    ("securityContext.appArmorProfile", {"type": "Unconfined"}),
    ("securityContext.seLinuxOptions", {"user": "u"}),
    ("securityContext.capabilities", {"drop": ["NET_RAW"]}),
    ("securityContext.capabilities", {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}),
    ("securityContext.capabilities", {"drop": ["ALL"], "add": ["CHOWN"]}),
    ("securityContext.capabilities", {"drop": ["ALL"], "add": ["SYS_ADMIN"]}),
    ("securityContext.windowsOptions", {"hostProcess": True}),
    ("ports", [{"containerPort": 80, "hostPort": 80}]),
    ("ports", [{"containerPort": 80}]),
    ("livenessProbe", {"httpGet": {"host": "x", "port": 80}}),
    ("lifecycle", {"postStart": {"tcpSocket": {"host": "x", "port": 80}}}),
    ("image", "busybox"),
)


def edited(body: JSONObject, path: str, value: JSON) -> JSONObject:
    """Return a copy with one field set, or removed for null."""
    copy = deep_copy(body)
    holder, names = copy, path.split(".")
    for name in names[:-1]:
        holder = holder[name]
    if value is None:
        holder.pop(names[-1], None)
    else:
        holder[names[-1]] = value
    return copy


def pods() -> Iterator[JSONObject]:
    """Yield pods that pass everything, and each with one or two fields changed."""
    for pod in PODS:
        yield pod
        changed = [edited(pod, path, value) for path, value in POD_EDITS]
        yield from changed
        for name in pod["spec"].keys() & {"containers", "initContainers"}:
            for path, value in CONTAINER_EDITS:
                container = edited(pod["spec"][name][0], path, value)
                yield edited(pod, f"spec.{name}", [container])
                yield edited(changed[9], f"spec.{name}", [container])
                yield edited(changed[14], f"spec.{name}", [container])


SEEDS = tuple(pods())


def policies(rule: JSONObject) -> tuple[JSONObject, JSONObject]:
    """Return a rule and its tests as policies for Pods."""
    tests = pod_security_tests(rule, POD, WHERE)
    resources = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    new = {
        "apiVersion": GROUP,
        "kind": "ValidatingPolicy",
        "metadata": {"name": "rule"},
        "spec": {
            "validationActions": ["Deny"],
            "autogen": {"podControllers": {"controllers": []}},
            "matchConstraints": {"resourceRules": [resources]},
            "validations": [{"expression": each.passes.text, "message": each.title} for each in tests],
        },
    }
    match = {"any": [{"resources": {"kinds": ["v1/Pod"], "operations": ["CREATE"]}}]}
    check = {"failureAction": "Enforce", "allowExistingViolations": False, "podSecurity": rule}
    old = {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "rule", "annotations": WITHOUT_AUTOGEN},
        "spec": {"background": False, "rules": [{"name": "r", "match": match, "validate": check}]},
    }
    return old, new


@pytest.mark.parametrize(
    ("rule", "count"),
    [
        ({"level": "baseline", "version": "latest"}, 12),
        ({"level": "restricted", "version": "latest"}, len(CHECKS)),
        ({"level": "restricted", "version": "v1.24"}, len(CHECKS)),
        ({"level": "restricted", "version": "v1.30"}, len(CHECKS)),
        (
            {
                "level": "restricted",
                "version": "latest",
                "exclude": [
                    {"controlName": "Capabilities", "images": ["nginx*"]},
                    {"controlName": "Seccomp", "images": ["busybox", "redis"]},
                    {"controlName": "SELinux"},
                    {"controlName": "AppArmor"},
                    {"controlName": "Volume Types"},
                ],
            },
            len(CHECKS) - 1,
        ),
    ],
    ids=["baseline", "restricted", "v1.24", "v1.30", "excludes"],
)
def test_every_check_of_the_standards_decides_in_cel_as_before(rule: JSONObject, count: int) -> None:
    """Pods that pass, and pods that each violate one check, get the same verdict."""
    old, new = policies(rule)
    assert count == len(new["spec"]["validations"])
    pair = Pair(engine_of(old), engine_of(new), admission())
    found = compare(pair, vocabulary_of([old, new]), seeds=SEEDS, count=0)
    assert None is found.counterexample
    assert () == tuple(found.blind)


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ({"level": "baseline", "version": "newest"}, "pod-security"),
        ({"level": "baseline", "version": "v1.18"}, "pod-security-version"),
        ({"level": "baseline", "exclude": [{"controlName": "Seccomp"}]}, "pod-security-exclude"),
        (
            {"level": "baseline", "exclude": [{"controlName": "Capabilities", "images": ["*"], "values": ["X"]}]},
            "pod-security-exclude",
        ),
    ],
)
def test_what_has_no_readable_form_is_refused(rule: JSONObject, code: str) -> None:
    """The error carries the path of the field that cannot be converted."""
    with pytest.raises(UnconvertibleError) as raised:
        pod_security_tests(rule, POD, WHERE)
    assert code == raised.value.refused.code
    assert raised.value.refused.path.startswith(WHERE)


def test_a_variable_can_stand_for_all_containers() -> None:
    """Policies name the three lists once."""
    tests = pod_security_tests({"level": "baseline"}, POD, WHERE, containers=Cel("variables.containers", CelType.LIST))
    assert not any(all_containers(POD).text in each.passes.text for each in tests)
    assert "variables.containers.all(c, !c.?securityContext.?privileged.orValue(false))" in {
        each.passes.text for each in tests
    }
