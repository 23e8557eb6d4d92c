"""Pod Security admission by labels of namespaces."""

from __future__ import annotations

import pytest

from kubesandbox.admission.plugins.podsecurity import PodSecurity
from kubesandbox.attributes import Notes
from pyverno.engine.request import Operation
from pyverno.kube.status import StatusError
from tests.support.admissionstage import cluster, in_store, namespace, pod, request

LABEL = "pod-security.kubernetes.io/"
RESTRICTED = (
    'allowPrivilegeEscalation != false (container "a" must set securityContext.allowPrivilegeEscalation=false), '
    'unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"]), '
    'runAsNonRoot != true (pod or container "a" must set securityContext.runAsNonRoot=true), '
    'seccompProfile (pod or container "a" must set securityContext.seccompProfile.type to "RuntimeDefault" or '
    '"Localhost")'
)
HOST = {"hostPID": True, "hostNetwork": True}


def labelled(**levels):
    return namespace("x", **{f"{LABEL}{mode.replace('_', '-')}": level for mode, level in levels.items()})


def judged(body, space, **options):
    """Return the refusal (or nothing), the warnings and the annotations without their prefix."""
    _, view = cluster(space)
    notes = Notes()
    refusal = ""
    try:
        PodSecurity(view).check(request(body, **options), notes)
    except StatusError as error:
        assert 403 == error.status
        refusal = error.message
    annotations = {key.removeprefix(LABEL): value for key, value in notes.annotations.items()}
    return refusal, notes.warnings, annotations


def test_enforced_levels_refuse_pods_in_kubernetes_words():
    """The text lists each control with its reason and detail."""
    refusal, warnings, annotations = judged(pod(), labelled(enforce="restricted"))
    assert f'pods "p" is forbidden: violates PodSecurity "restricted:latest": {RESTRICTED}' == refusal
    assert ([], {"enforce-policy": "restricted:latest"}) == (warnings, annotations)


def test_baseline_requires_less():
    """Checks are in the order of their names, and pods that keep the level pass."""
    assert ("", [], {"enforce-policy": "baseline:latest"}) == judged(pod(), labelled(enforce="baseline"))
    refusal, _, _ = judged(pod(**HOST), labelled(enforce="baseline"))
    assert 'violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true, hostPID=true)' in refusal


def test_each_version_requires_what_its_release_required():
    """The standards of v1.18 required neither seccomp profiles nor dropped capabilities."""
    refusal, _, _ = judged(pod(), labelled(enforce="restricted", enforce_version="v1.18"))
    expected = (
        'pods "p" is forbidden: violates PodSecurity "restricted:v1.18": allowPrivilegeEscalation != false (container '
        '"a" must set securityContext.allowPrivilegeEscalation=false), runAsNonRoot != true (pod or container "a" must '
        "set securityContext.runAsNonRoot=true)"
    )
    assert expected == refusal


def test_warn_and_audit_let_pods_pass():
    """Violations become warnings for the client and audit annotations."""
    text = f'would violate PodSecurity "restricted:latest": {RESTRICTED}'
    found = judged(pod(), labelled(warn="restricted", audit="restricted"))
    assert ("", [text], {"enforce-policy": "privileged:latest", "audit-violations": text}) == found


def test_templates_of_controllers_are_warned_about_only():
    """A Deployment is never refused; without a level of its own, warn follows enforce."""
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "x"},
        "spec": {"template": {"spec": pod()["spec"]}},
    }
    refusal, warnings, _ = judged(deployment, labelled(enforce="restricted"))
    assert ("", [f'would violate PodSecurity "restricted:latest": {RESTRICTED}']) == (refusal, warnings)
    assert ("", [], {}) == judged(deployment, labelled(enforce="restricted", warn="privileged"))


def test_cron_jobs_hold_their_pods_deeper():
    """The template of the job in the template of the CronJob is looked at."""
    job = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "c", "namespace": "x"},
        "spec": {"jobTemplate": {"spec": {"template": {"spec": pod(**HOST)["spec"]}}}},
    }
    _, warnings, _ = judged(job, labelled(warn="baseline"))
    assert ['would violate PodSecurity "baseline:latest": host namespaces (hostNetwork=true, hostPID=true)'] == warnings


@pytest.mark.parametrize(
    ("new", "subresource", "is_refused"),
    [
        (pod(**HOST), "", False),
        (pod({"name": "a", "image": "other"}, **HOST), "", True),
        (pod({"name": "a", "image": "other"}, **HOST), "status", False),
        (pod(ephemeralContainers=[{"name": "debug", "image": "b"}], **HOST), "ephemeralcontainers", True),
    ],
)
def test_updates_are_judged_when_images_change(new, subresource, is_refused):
    """An old pod that violates a new level can still be labelled, but gets no new image."""
    options = {"old": pod(**HOST), "operation": Operation.UPDATE, "subresource": subresource}
    refusal, _, _ = judged(new, labelled(enforce="baseline"), **options)
    assert is_refused is bool(refusal)


def test_labels_that_mean_nothing_are_invalid():
    """Creating such a namespace fails; the error names the values and those allowed."""
    _, view = cluster()
    body = labelled(enforce="strict", warn_version="new")
    with pytest.raises(StatusError) as refused:
        PodSecurity(view).check(request(body), Notes())
    expected = (
        'Namespace "x" is invalid: [metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "strict": must '
        "be one of privileged, baseline, restricted, metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid "
        'value: "new": must be "latest" or "v1.x"]'
    )
    assert (422, expected) == (refused.value.status, refused.value.message)
    PodSecurity(view).check(request(body, old=body, operation=Operation.UPDATE), Notes())


def test_levels_that_can_not_be_read_are_enforced_strictly():
    """A namespace with such labels from before lets nothing pass that is not restricted."""
    refusal, _, annotations = judged(pod(), labelled(enforce="strict"))
    assert 'violates PodSecurity "restricted:latest"' in refusal
    assert annotations["error"].startswith("Failed to parse policy: metadata.labels[")


def test_labelling_a_namespace_warns_about_its_pods():
    """Pods with the same problems are counted together under the first of them."""
    store, view = cluster()
    host = {**pod(name="host", **HOST)}
    in_store(store, host, pod(name="plain"), pod(name="another"))
    notes = Notes()
    change = request(labelled(enforce="restricted"), old=namespace("x"), operation=Operation.UPDATE)
    PodSecurity(view).check(change, notes)
    common = "allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile"
    assert [
        'existing pods in namespace "x" violate the new PodSecurity enforce level "restricted:latest"',
        f"another (and 1 other pod): {common}",
        f"host: host namespaces, {common}",
    ] == notes.warnings


def test_relaxing_a_namespace_warns_about_nothing():
    """A lower level of the same version needs no look at the pods."""
    store, view = cluster()
    in_store(store, pod(**HOST))
    notes = Notes()
    change = request(labelled(enforce="baseline"), old=labelled(enforce="restricted"), operation=Operation.UPDATE)
    PodSecurity(view).check(change, notes)
    assert [] == notes.warnings
