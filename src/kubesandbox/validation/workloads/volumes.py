"""Volumes of Pods and PersistentVolumes: exactly one source each, and what the common sources need.

This module must never know who mounts a volume.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubesandbox.objects.fielderrors import duplicate, forbidden, invalid, required
from kubesandbox.validation.check import Check, Errors, each, form, needed, one_of, struct
from kubesandbox.validation.names import config_key_problems, dns_label_problems
from pyverno.kube.json import JSON, JSONObject

__all__ = ["PERSISTENT_SOURCES", "VOLUME_SOURCES", "source_errors", "volumes_errors"]

_MODE_TEXT: Final = "must be a number between 0 and 0777 (octal), both inclusive"
_HOST_PATH_TYPES: Final = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)


def _mode(value: JSON, path: str, errors: Errors) -> None:
    if type(value) is int and not 0 <= value <= 0o777:
        errors.append(invalid(path, value, _MODE_TEXT))


def _no_backsteps(value: JSON, path: str, errors: Errors) -> None:
    if ".." in str(value).split("/"):
        errors.append(invalid(path, value, "must not contain '..'"))


def _relative(value: JSON, path: str, errors: Errors) -> None:
    if str(value).startswith("/"):
        errors.append(invalid(path, value, "must be a relative path"))
    _no_backsteps(value, path, errors)


_ITEMS: Final[Check] = each(
    struct({"key": needed(form(config_key_problems)), "path": needed(_relative), "mode": _mode})
)


def _downward(value: JSON, path: str, errors: Errors) -> None:
    for index, item in enumerate(value):
        place = f"{path}[{index}]"
        if not item.get("path"):
            errors.append(required(f"{place}.path"))
        else:
            _relative(item["path"], f"{place}.path", errors)
        if item.get("fieldRef") is None and item.get("resourceFieldRef") is None:
            what = "one of fieldRef and resourceFieldRef is required"
            errors.append(required(f"{place}.fieldRef", what))


def _projected(value: JSON, path: str, errors: Errors) -> None:
    sources = value.get("sources") or ()
    _mode(value.get("defaultMode"), f"{path}.defaultMode", errors)
    for index, source in enumerate(sources):
        place = f"{path}.sources[{index}]"
        found = [key for key, item in source.items() if item is not None]
        for key in found[1:]:
            errors.append(forbidden(f"{place}.{key}", "may not specify more than 1 volume type"))
        for key in found[:1]:
            _PROJECTIONS.get(key, struct({}))(source[key], f"{place}.{key}", errors)


_PROJECTIONS: Final[Mapping[str, Check]] = {
    "configMap": struct({"name": needed(), "items": _ITEMS}),
    "secret": struct({"name": needed(), "items": _ITEMS}),
    "downwardAPI": struct({"items": _downward}),
    "serviceAccountToken": struct({"path": needed(_relative)}),
}


def _host_path(value: JSON, path: str, errors: Errors) -> None:
    if not value.get("path"):
        errors.append(required(f"{path}.path"))
        return
    struct({"path": _no_backsteps, "type": one_of(*_HOST_PATH_TYPES)})(value, path, errors)


_NFS: Final[Check] = struct({"server": needed(), "path": needed()})


def _csi(value: JSON, path: str, errors: Errors) -> None:
    if not value.get("driver"):
        errors.append(required(f"{path}.driver"))


VOLUME_SOURCES: Final[Mapping[str, Check]] = {
    "emptyDir": struct({}),
    "hostPath": _host_path,
    "gitRepo": struct({"repository": needed()}),
    "gcePersistentDisk": struct({"pdName": needed()}),
    "awsElasticBlockStore": struct({"volumeID": needed()}),
    "secret": struct({"secretName": needed(), "defaultMode": _mode, "items": _ITEMS}),
    "nfs": _NFS,
    "iscsi": struct({"targetPortal": needed(), "iqn": needed()}),
    "glusterfs": struct({"endpoints": needed(), "path": needed()}),
    "flocker": struct({}),
    "persistentVolumeClaim": struct({"claimName": needed()}),
    "rbd": struct({"monitors": needed(), "image": needed()}),
    "cinder": struct({"volumeID": needed()}),
    "cephfs": struct({"monitors": needed()}),
    "quobyte": struct({"registry": needed(), "volume": needed()}),
    "downwardAPI": struct({"defaultMode": _mode, "items": _downward}),
    "fc": struct({}),
    "flexVolume": struct({"driver": needed()}),
    "configMap": struct({"name": needed(), "defaultMode": _mode, "items": _ITEMS}),
    "azureFile": struct({"secretName": needed(), "shareName": needed()}),
    "vsphereVolume": struct({"volumePath": needed()}),
    "photonPersistentDisk": struct({"pdID": needed()}),
    "portworxVolume": struct({"volumeID": needed()}),
    "azureDisk": struct({"diskName": needed(), "diskURI": needed()}),
    "storageos": struct({"volumeName": needed()}),
    "projected": _projected,
    "scaleIO": struct({"gateway": needed(), "system": needed(), "volumeName": needed()}),
    "csi": _csi,
    "ephemeral": struct({"volumeClaimTemplate": needed()}),
    "image": struct({"reference": needed()}),
}
"""The sources of a Pod's volumes, in the order in which the API server looks for them."""

PERSISTENT_SOURCES: Final[Mapping[str, Check]] = {
    "hostPath": _host_path,
    "nfs": _NFS,
    "local": struct({"path": needed(_no_backsteps)}),
    "csi": struct({"driver": needed(), "volumeHandle": needed()}),
    **{
        key: struct({})
        for key in (
            "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "rbd", "quobyte", "cephfs", "iscsi",
            "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume",
            "azureDisk", "scaleIO", "storageos",
        )
    },
}  # fmt: skip


def source_errors(value: JSONObject, sources: Mapping[str, Check], path: str, errors: Errors) -> None:
    """Check that there is exactly one source, and that one."""
    found = [key for key in sources if value.get(key) is not None]
    for key in found[1:]:
        errors.append(forbidden(f"{path}.{key}", "may not specify more than 1 volume type"))
    for key in found[:1]:
        sources[key](value[key], f"{path}.{key}", errors)
    if not found:
        errors.append(required(path, "must specify a volume type"))


def volumes_errors(volumes: JSON, path: str, errors: Errors) -> set[str]:
    """Check the volumes of a Pod; return the names of those that may be mounted."""
    names: set[str] = set()
    for index, volume in enumerate(volumes or ()):
        place, name = f"{path}[{index}]", volume.get("name") or ""
        found: Errors = []
        source_errors(volume, VOLUME_SOURCES, place, found)
        if not name:
            found.append(required(f"{place}.name"))
        else:
            form(dns_label_problems)(name, f"{place}.name", found)
        if name in names:
            found.append(duplicate(f"{place}.name", name))
        if not found:
            names.add(name)
        errors.extend(found)
    return names
