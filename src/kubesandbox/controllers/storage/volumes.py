"""Volumes: every claim gets one at once, an existing one that fits or one that is made up for it.

Nothing is stored anywhere. This module must never bind a volume to two claims.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kubesandbox.controllers.context import ControllerContext
from kubesandbox.controllers.loop import Keys, itself
from kubesandbox.controllers.objects import (
    annotations_of,
    at,
    is_deleting,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from kubesandbox.controllers.pods import phase_of
from kubesandbox.storage.store import Change, Key
from pyverno.kube.json import JSONObject
from pyverno.kube.quantity import try_quantity
from pyverno.kube.selector import compile_selector
from pyverno.kube.status import StatusError

__all__ = ["THE_CLASS", "Claims", "Volumes", "suitable"]

CLAIMS = "persistentvolumeclaims"
VOLUMES = "persistentvolumes"
CLASSES = "storageclasses.storage.k8s.io"
STORAGE_CLASS = "standard"
THE_CLASS = Key(CLASSES, "", STORAGE_CLASS)
PROVISIONER = "sandbox/made-up"
_DEFAULT = "storageclass.kubernetes.io/is-default-class"
_BOUND = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}


class Claims:
    """Binds claims."""

    def __init__(self, context: ControllerContext) -> None:
        """Take the tools."""
        self._context = context

    @property
    def watches(self) -> Mapping[str, Keys]:
        """Watches claims, and the volumes and classes that may bind them."""
        return {CLAIMS: itself, VOLUMES: self._waiting, CLASSES: self._waiting}

    def _waiting(self, change: Change) -> Iterable[Key]:
        claims = self._context.client.list(CLAIMS)
        return [key_of(CLAIMS, claim) for claim in claims if phase_of(claim) != "Bound"]

    async def reconcile(self, key: Key) -> float | None:
        """Bind one claim, or make the class that all claims have by default."""
        client = self._context.client
        if key.resource == CLASSES:
            if client.get(CLASSES, key.name) is None:
                await client.create(CLASSES, storage_class())
            return None
        claim = client.get(CLAIMS, key.name, key.namespace)
        if claim is None or is_deleting(claim) or phase_of(claim) in ("Bound", "Lost"):
            return None
        volume = self._existing(claim) or await self._provision(claim)
        if volume is None:
            if phase_of(claim) != "Pending":
                await self._context.put_status(CLAIMS, claim, {**(claim.get("status") or {}), "phase": "Pending"})
            return None
        await self._bind(claim, volume)
        return None

    def _existing(self, claim: JSONObject) -> JSONObject | None:
        """Return the smallest volume that is free or kept for the claim."""
        found = [volume for volume in self._context.client.list(VOLUMES) if suitable(claim, volume)]
        return min(found, key=lambda volume: (_size(volume, "capacity"), name_of(volume)), default=None)

    async def _provision(self, claim: JSONObject) -> JSONObject | None:
        name = at(claim, "spec", "storageClassName")
        if name == "" or at(claim, "spec", "volumeName"):
            return None
        classes = self._context.client.list(CLASSES)
        if name is None:
            name = next((name_of(item) for item in classes if annotations_of(item).get(_DEFAULT) == "true"), "")
        found = next((item for item in classes if name_of(item) == name), None)
        if found is None or found.get("provisioner") == "kubernetes.io/no-provisioner":
            self._context.events.warning(claim, "ProvisioningFailed", f'storageclass.storage.k8s.io "{name}" not found')
            return None
        wanted = provision_volume(claim, found)
        try:
            volume = await self._context.client.create(VOLUMES, wanted)
        except StatusError as error:
            volume = self._context.client.get(VOLUMES, name_of(wanted)) or {}
            if error.reason != "AlreadyExists" or not volume:
                raise
        text = f"Successfully provisioned volume {name_of(volume)}"
        self._context.events.normal(claim, "ProvisioningSucceeded", text)
        return volume

    async def _bind(self, claim: JSONObject, volume: JSONObject) -> None:
        client = self._context.client
        reference = {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": namespace_of(claim),
            "name": name_of(claim),
            "uid": uid_of(claim),
        }
        if at(volume, "spec", "claimRef", "uid") != uid_of(claim):
            volume = await client.update(VOLUMES, {**volume, "spec": {**volume["spec"], "claimRef": reference}})
        await self._context.put_status(VOLUMES, volume, {**(volume.get("status") or {}), "phase": "Bound"})
        annotations = {**annotations_of(claim), **_BOUND}
        if at(volume, "metadata", "annotations", "pv.kubernetes.io/provisioned-by"):
            annotations["volume.kubernetes.io/storage-provisioner"] = PROVISIONER
        spec = {**claim["spec"], "volumeName": name_of(volume)}
        spec.setdefault("storageClassName", at(volume, "spec", "storageClassName", default=""))
        metadata = {**claim["metadata"], "annotations": annotations}
        claim = await client.update(CLAIMS, {**claim, "metadata": metadata, "spec": spec})
        status = {
            "phase": "Bound",
            "accessModes": at(volume, "spec", "accessModes", default=[]),
            "capacity": at(volume, "spec", "capacity", default={}),
        }
        await self._context.put_status(CLAIMS, claim, status)


class Volumes:
    """Sets the phase of volumes, and deletes those whose claim is gone if their policy wants that."""

    def __init__(self, context: ControllerContext) -> None:
        """Take the tools."""
        self._context = context

    @property
    def watches(self) -> Mapping[str, Keys]:
        """Volumes, and claims that go."""
        return {VOLUMES: itself, CLAIMS: self._of_claim}

    def _of_claim(self, change: Change) -> Iterable[Key]:
        volume = at(change.state.body, "spec", "volumeName")
        return (Key(VOLUMES, "", volume),) if volume and change.kind == "DELETED" else ()

    async def reconcile(self, key: Key) -> float | None:
        """Look after one volume."""
        client = self._context.client
        volume = client.get(VOLUMES, key.name)
        if volume is None:
            return None
        reference = at(volume, "spec", "claimRef")
        phase = "Available"
        if reference is not None and reference.get("uid"):
            claim = client.get(CLAIMS, reference["name"], reference["namespace"])
            phase = "Bound" if claim is not None and uid_of(claim) == reference["uid"] else "Released"
        if phase != phase_of(volume):
            volume = await self._context.put_status(VOLUMES, volume, {**(volume.get("status") or {}), "phase": phase})
        is_kept = at(volume, "spec", "persistentVolumeReclaimPolicy") != "Delete"
        if phase == "Released" and not is_kept and not is_deleting(volume):
            await client.delete(VOLUMES, key.name, uid=uid_of(volume))
        return None


def storage_class() -> JSONObject:
    """Return the class that claims have when they name none."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": STORAGE_CLASS, "annotations": {_DEFAULT: "true"}},
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
    }


def provision_volume(claim: JSONObject, storage: JSONObject) -> JSONObject:
    """Return a volume provisioned to fit a claim."""
    name = f"pvc-{uid_of(claim)}"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": name,
            "annotations": {"pv.kubernetes.io/provisioned-by": str(storage.get("provisioner", PROVISIONER))},
        },
        "spec": {
            "capacity": {"storage": at(claim, "spec", "resources", "requests", "storage", default="1Gi")},
            "accessModes": at(claim, "spec", "accessModes", default=["ReadWriteOnce"]),
            "claimRef": {
                "kind": "PersistentVolumeClaim",
                "apiVersion": "v1",
                "namespace": namespace_of(claim),
                "name": name_of(claim),
                "uid": uid_of(claim),
            },
            "persistentVolumeReclaimPolicy": storage.get("reclaimPolicy", "Delete"),
            "storageClassName": name_of(storage),
            "volumeMode": at(claim, "spec", "volumeMode", default="Filesystem"),
            "hostPath": {"path": f"/var/sandbox/volumes/{name}", "type": "DirectoryOrCreate"},
        },
    }


def suitable(claim: JSONObject, volume: JSONObject) -> bool:
    """Return whether a volume may serve a claim: it is free or kept for it, large enough, of its class and modes."""
    if is_deleting(volume):
        return False
    reference = at(volume, "spec", "claimRef")
    asked = at(claim, "spec", "volumeName")
    if reference is not None:
        is_kept = (reference.get("namespace"), reference.get("name")) == (namespace_of(claim), name_of(claim))
        if not is_kept or reference.get("uid", uid_of(claim)) != uid_of(claim):
            return False
    elif phase_of(volume) not in ("", "Available", "Pending"):
        return False
    if asked:
        return bool(asked == name_of(volume))
    if at(claim, "spec", "storageClassName") != at(volume, "spec", "storageClassName", default=""):
        return False
    modes: Sequence[str] = at(claim, "spec", "accessModes", default=[])
    has_modes = set(modes) <= set(at(volume, "spec", "accessModes", default=[]))
    same_mode = at(claim, "spec", "volumeMode", default="Filesystem") == at(
        volume, "spec", "volumeMode", default="Filesystem"
    )
    selector = at(claim, "spec", "selector")
    is_selected = selector is None or compile_selector(selector)(labels_of(volume))
    return (
        has_modes and same_mode and is_selected and _size(volume, "capacity") >= _size(claim, "resources", "requests")
    )


def _size(body: JSONObject, *path: str) -> float:
    quantity = try_quantity(str(at(body, "spec", *path, "storage", default="0")))
    return 0.0 if quantity is None else quantity.approximate()
