"""Rows of volumes, claims, classes and drivers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from kubesandbox.tables.cells import UNSET, age, flag, name_of, part, quantity, text
from kubesandbox.tables.printer import Printer, Printers, columns
from pyverno.kube.json import JSON, JSONObject

__all__ = ["PRINTERS"]

_CLASS = "volume.beta.kubernetes.io/storage-class"
_DEFAULT = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_MODES = (
    ("ReadWriteOnce", "RWO"),
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOncePod", "RWOP"),
)


def _volume(body: JSONObject, now: datetime) -> Iterator[JSON]:
    claim = part(body, "spec", "claimRef")
    yield name_of(body)
    yield quantity(part(body, "spec", "capacity", "storage"))
    yield _modes(part(body, "spec", "accessModes"))
    yield text(body, "spec", "persistentVolumeReclaimPolicy")
    yield _phase(body)
    yield "" if claim is None else f"{text(claim, 'namespace')}/{text(claim, 'name')}"
    yield _class(body)
    yield _or_unset(body, "volumeAttributesClassName")
    yield text(body, "status", "reason")
    yield age(body, now)
    yield _or_unset(body, "volumeMode")


def _claim(body: JSONObject, now: datetime) -> Iterator[JSON]:
    volume = text(body, "spec", "volumeName")
    yield name_of(body)
    yield _phase(body)
    yield volume
    yield quantity(part(body, "status", "capacity", "storage")) if volume else ""
    yield _modes(part(body, "status", "accessModes")) if volume else ""
    yield _class(body)
    yield _or_unset(body, "volumeAttributesClassName")
    yield age(body, now)
    yield _or_unset(body, "volumeMode")


def _phase(body: JSONObject) -> str:
    is_deleted = part(body, "metadata", "deletionTimestamp") is not None
    return "Terminating" if is_deleted else text(body, "status", "phase")


def _modes(modes: JSON) -> str:
    return ",".join(short for mode, short in _MODES if mode in (modes or ()))


def _class(body: JSONObject) -> str:
    return text(body, "metadata", "annotations", _CLASS) or text(body, "spec", "storageClassName")


def _or_unset(body: JSONObject, field: str) -> str:
    found = part(body, "spec", field)
    return UNSET if found is None else str(found)


def _storage_class(body: JSONObject, now: datetime) -> Iterator[JSON]:
    is_default = any(text(body, "metadata", "annotations", key) == "true" for key in _DEFAULT)
    yield f"{name_of(body)} (default)" if is_default else name_of(body)
    yield text(body, "provisioner")
    yield text(body, "reclaimPolicy") or "Delete"
    yield text(body, "volumeBindingMode") or "Immediate"
    yield flag(body, "allowVolumeExpansion")
    yield age(body, now)


PRINTERS: Printers = {
    ("", "persistentvolumeclaims"): Printer(
        columns("NAME Status Volume Capacity Access_Modes StorageClass VolumeAttributesClass AGE VolumeMode*"), _claim
    ),
    ("", "persistentvolumes"): Printer(
        columns(
            "NAME Capacity Access_Modes Reclaim_Policy Status Claim StorageClass VolumeAttributesClass Reason AGE "
            "VolumeMode*"
        ),
        _volume,
    ),
    ("storage.k8s.io", "storageclasses"): Printer(
        columns("NAME Provisioner ReclaimPolicy VolumeBindingMode AllowVolumeExpansion AGE"), _storage_class
    ),
}
