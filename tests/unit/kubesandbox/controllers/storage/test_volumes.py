"""Claims and volumes: immediate binding, release and deletion."""

from __future__ import annotations

import pytest

from kubesandbox.controllers.storage.volumes import suitable
from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.controllers.cluster import Cluster, in_cluster

CLAIMS, VOLUMES = "persistentvolumeclaims", "persistentvolumes"


def claim(name: str = "data", **spec: object) -> JSONObject:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec},
    }


def volume(name: str = "disk", size: str = "5Gi", **spec: object) -> JSONObject:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
            "hostPath": {"path": "/srv/disk"},
            "persistentVolumeReclaimPolicy": "Retain",
            **spec,
        },
    }


@in_cluster
async def test_a_claim_gets_a_volume_of_its_own(cluster: Cluster) -> None:
    """It has the requested size; both are `Bound`, and the volume is deleted with the claim."""
    assert ["standard"] == cluster.names("storageclasses.storage.k8s.io", "")
    await cluster.create(CLAIMS, claim())
    found = cluster.get(CLAIMS, "data")
    name = f"pvc-{found['metadata']['uid']}"
    assert (name, "standard") == (found["spec"]["volumeName"], found["spec"]["storageClassName"])
    expected = {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
    assert expected == found["status"]
    made = cluster.get(VOLUMES, name, "")
    assert ("Bound", "data") == (made["status"]["phase"], made["spec"]["claimRef"]["name"])
    await cluster.client.delete(CLAIMS, "data", "default")
    await cluster.settle()
    assert [] == cluster.names(VOLUMES, "")


@in_cluster
async def test_a_claim_without_class_waits_for_a_volume_that_fits(cluster: Cluster) -> None:
    """The smallest one; it is released, not deleted, when the claim goes."""
    await cluster.create(CLAIMS, claim(storageClassName=""))
    assert "Pending" == cluster.get(CLAIMS, "data")["status"]["phase"]
    await cluster.create(VOLUMES, volume("small", "500Mi"))
    assert ("Pending", "Available") == (
        cluster.get(CLAIMS, "data")["status"]["phase"],
        cluster.get(VOLUMES, "small", "")["status"]["phase"],
    )
    await cluster.create(VOLUMES, volume("disk"))
    assert "disk" == cluster.get(CLAIMS, "data")["spec"]["volumeName"]
    assert {"storage": "5Gi"} == cluster.get(CLAIMS, "data")["status"]["capacity"]
    await cluster.client.delete(CLAIMS, "data", "default")
    await cluster.settle()
    assert "Released" == cluster.get(VOLUMES, "disk", "")["status"]["phase"]


@in_cluster
async def test_an_unknown_class_is_reported(cluster: Cluster) -> None:
    """An event names the unknown class, and the claim waits until it exists."""
    await cluster.create(CLAIMS, claim(storageClassName="fast"))
    assert 'storageclass.storage.k8s.io "fast" not found' in cluster.events("ProvisioningFailed")
    fast = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}}
    await cluster.create("storageclasses.storage.k8s.io", {**fast, "provisioner": "example.com/disk"})
    assert "Bound" == cluster.get(CLAIMS, "data")["status"]["phase"]


@pytest.mark.parametrize(
    ("claimed", "offered", "expected"),
    [
        ({}, {}, True),
        ({"accessModes": ["ReadWriteMany"]}, {}, False),
        ({"resources": {"requests": {"storage": "6Gi"}}}, {}, False),
        ({"storageClassName": "fast"}, {}, False),
        ({"storageClassName": "fast"}, {"storageClassName": "fast"}, True),
        ({"volumeMode": "Block"}, {}, False),
        ({"volumeName": "disk", "storageClassName": "x"}, {}, True),
        ({"volumeName": "other"}, {}, False),
        ({}, {"claimRef": {"namespace": "default", "name": "data"}}, True),
        ({}, {"claimRef": {"namespace": "default", "name": "other"}}, False),
        ({}, {"claimRef": {"namespace": "default", "name": "data", "uid": "old"}}, False),
        ({"selector": {"matchLabels": {"a": "b"}}}, {}, False),
    ],
)
def test_a_volume_fits_a_claim_or_not(claimed: JSONObject, offered: JSONObject, expected: bool) -> None:
    """Size, modes, class, selector, and `claimRef`."""
    body = claim(**{"storageClassName": "", **claimed})
    assert expected == suitable(body, volume(**offered))
