"""CVE-2023-33191 and the container-kind matrix: each control holds at every level, version and kind of container."""

from __future__ import annotations

import pytest

from pyverno.kube.json import JSON, JSONObject
from tests.security.asking import POD, ask, policy

CONTAINER_VIOLATIONS: dict[str, JSONObject] = {
    "seccomp": {"seccompProfile": {"type": "Unconfined"}},
    "privileged": {"privileged": True},
    "capabilities": {"capabilities": {"add": ["SYS_ADMIN"]}},
    "proc": {"procMount": "Unmasked"},
    "selinux": {"seLinuxOptions": {"user": "root"}},
    "windows": {"windowsOptions": {"hostProcess": True}},
}
VERSIONS = ["v1.19", "v1.24", "v1.29", "v1.32", "latest"]
# the pod security admission library has no ephemeral containers before they existed; we judge them at every version
CONTAINERS = ["containers", "initContainers", "ephemeralContainers"]


def judge(spec: JSON, level: str, version: str) -> bool:
    """Return whether a pod spec is allowed."""
    text = policy(
        f"validate:\n  failureAction: Enforce\n  podSecurity:\n    level: {level}\n    version: {version}", on="Pod"
    )
    return ask(text, {**POD, "spec": spec}).decision.allowed


@pytest.mark.parametrize("kind", CONTAINERS)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("control", sorted(CONTAINER_VIOLATIONS))
def test_a_violation_in_any_kind_of_container_is_denied(control: str, version: str, kind: str) -> None:
    """Baseline and restricted deny it; the same pod without it is allowed by baseline.

    Register: CVE-2023-33191, CVE-2023-2727, CVE-2024-3177.
    """
    clean: JSONObject = {"name": "app", "image": "nginx:1"}
    context = dict(CONTAINER_VIOLATIONS[control])
    spec: JSONObject = {"containers": [clean]}
    spec[kind] = [{**clean, "name": "bad", "securityContext": context}]
    assert [False, False] == [judge(spec, level, version) for level in ("baseline", "restricted")]
    spec[kind] = [{**clean, "name": "good"}]
    assert judge(spec, "baseline", version)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("field", ["hostNetwork", "hostPID", "hostIPC"])
def test_host_namespaces_are_denied(field: str, version: str) -> None:
    """Pod-level control at every version."""
    spec = {"containers": [{"name": "a", "image": "b"}], field: True}
    assert (False, True) == (judge(spec, "baseline", version), judge({**spec, field: False}, "baseline", version))


RESTRICTED: dict[str, JSONObject] = {
    "escalation": {"allowPrivilegeEscalation": True},
    "no escalation said": {"allowPrivilegeEscalation": None},
    "root": {"runAsNonRoot": False},
    "user 0": {"runAsUser": 0},
    "capabilities kept": {"capabilities": None},
    "capabilities added": {"capabilities": {"drop": ["ALL"], "add": ["CHOWN"]}},
    "no seccomp": {"seccompProfile": None},
    "seccomp unconfined": {"seccompProfile": {"type": "Unconfined"}},
}
"""Fragments of a security context that the restricted level refuses."""
SAFE: JSONObject = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
MINORS = [*range(19, 30), None]


@pytest.mark.parametrize("kind", CONTAINERS)
@pytest.mark.parametrize("control", RESTRICTED)
def test_restricted_holds_at_every_version(control: str, kind: str) -> None:
    """CVE-2023-33191: every version that a policy may name; a safe container passes."""
    spec: JSONObject = {"containers": [{"name": "a", "image": "a:1", "securityContext": SAFE}]}
    bad: JSONObject = {"name": "b", "image": "a:1", "securityContext": {**SAFE, **RESTRICTED[control]}}
    for minor in MINORS:
        version = "latest" if minor is None else f"v1.{minor}"
        assert judge(spec, "restricted", version), version
        assert not judge({**spec, kind: [bad]}, "restricted", version), version
