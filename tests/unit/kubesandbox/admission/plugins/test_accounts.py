"""ServiceAccount: accounts of pods and their tokens."""

from __future__ import annotations

import asyncio

import pytest

from kubesandbox.admission.plugins.accounts import ServiceAccounts
from pyverno.engine.request import Operation
from pyverno.kube.status import StatusError
from tests.support.admissionstage import cluster, in_store, pod, request

MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def account(name, **fields):
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "x"}, **fields}


def admitted(body, *bodies, **options):
    _, view = cluster(*bodies)
    plugin = ServiceAccounts(view, lambda: "abcde", waits_for_default=False)
    return asyncio.run(plugin.admit(request(body, **options))).object


def test_pods_run_as_the_default_account_and_find_its_token():
    """Account, volume and mount are those that Kubernetes adds, in every container."""
    found = admitted(pod({"name": "a"}, initContainers=[{"name": "i"}]))["spec"]
    assert ("default", "default") == (found["serviceAccountName"], found["serviceAccount"])
    mount = {"name": "kube-api-access-abcde", "readOnly": True, "mountPath": MOUNT}
    assert [[mount], [mount]] == [each["volumeMounts"] for each in (*found["initContainers"], *found["containers"])]
    (volume,) = found["volumes"]
    assert "kube-api-access-abcde" == volume["name"]
    assert ["serviceAccountToken", "configMap", "downwardAPI"] == [
        next(iter(source)) for source in volume["projected"]["sources"]
    ]
    assert (420, 3607) == (
        volume["projected"]["defaultMode"],
        volume["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"],
    )


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"automountServiceAccountToken": False}, {}),
        ({}, {"automountServiceAccountToken": False}),
        ({"automountServiceAccountToken": False}, {"automountServiceAccountToken": True}),
    ],
)
def test_tokens_can_be_declined(spec, fields):
    """The setting of the pod takes precedence over that of the account."""
    found = admitted(pod(serviceAccountName="sa", **spec), account("sa", **fields))["spec"]
    assert "volumes" not in found
    assert "volumeMounts" not in found["containers"][0]


def test_containers_that_mount_something_there_keep_it():
    """A mount at the token's path is kept, and without a container that needs it no volume is added."""
    mounts = [{"name": "own", "mountPath": MOUNT}]
    found = admitted(pod({"name": "a", "volumeMounts": mounts}, volumes=[{"name": "own"}]))["spec"]
    assert (mounts, [{"name": "own"}]) == (found["containers"][0]["volumeMounts"], found["volumes"])


def test_a_token_volume_that_is_there_is_used():
    """A pod that was admitted before gets no second volume."""
    once = admitted(pod())
    assert once == admitted(once)


def test_pull_secrets_of_the_account_are_taken_over():
    """A pod without pull secrets has those of its account."""
    with_secrets = account("sa", imagePullSecrets=[{"name": "registry"}])
    assert [{"name": "registry"}] == admitted(pod(serviceAccountName="sa"), with_secrets)["spec"]["imagePullSecrets"]
    own = pod(serviceAccountName="sa", imagePullSecrets=[{"name": "own"}])
    assert [{"name": "own"}] == admitted(own, with_secrets)["spec"]["imagePullSecrets"]


def test_an_account_that_does_not_exist_refuses_the_pod():
    """The error names namespace and account."""
    with pytest.raises(StatusError) as refused:
        admitted(pod(serviceAccountName="nope"))
    why = 'error looking up service account x/nope: serviceaccount "nope" not found'
    assert (403, f'pods "p" is forbidden: {why}') == (refused.value.status, refused.value.message)


def test_the_default_account_of_a_new_namespace_is_waited_for():
    """The controller that makes it may be a little late."""

    async def main():
        store, view = cluster()
        store.remove(next(stored.key for stored in store.all("serviceaccounts")))
        plugin = ServiceAccounts(view, lambda: "abcde")
        asyncio.get_running_loop().call_later(0.1, lambda: in_store(store, account("default")))
        return await plugin.admit(request(pod()))

    assert "default" == asyncio.run(main()).object["spec"]["serviceAccountName"]


def test_updates_and_other_objects_are_left_alone():
    """The account of a pod is decided when it is made."""
    assert pod() == admitted(pod(), old=pod(), operation=Operation.UPDATE)


def test_mirror_pods_have_no_account():
    """A pod that a kubelet shows is not changed, and may not name an account."""
    mirror = pod()
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    assert mirror == admitted(mirror)
    mirror["spec"]["serviceAccountName"] = "default"
    with pytest.raises(StatusError, match="a mirror pod may not reference service accounts"):
        admitted(mirror)


def test_an_account_that_a_webhook_took_away_is_missed():
    """The second look is at the pod as webhooks left it."""
    _, view = cluster()
    plugin = ServiceAccounts(view, lambda: "abcde", waits_for_default=False)
    with pytest.raises(StatusError, match="no service account specified for pod x/p"):
        asyncio.run(plugin.check(request(pod())))
