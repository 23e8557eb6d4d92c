"""Volumes of Pods: exactly one source each, and what the common sources require."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubesandbox.objects.fielderrors import duplicate, forbidden, invalid, required
from kubesandbox.validation.check import Check, Errors, each, form, needed, struct
from kubesandbox.validation.names import config_key_problems, dns_label_problems
from pyverno.kube.json import JSON, JSONObject

__all__ = ["volumes_errors"]

_MODE_TEXT: Final = "must be a number between 0 and 0777 (octal), both inclusive"


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


def _project(value: JSON, path: str, errors: Errors) -> None:
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
    "serviceAccountToken": struct({"path": needed(_relative)}),
}


VOLUME_SOURCES: Final[Mapping[str, Check]] = {
    "emptyDir": struct({}),
    "hostPath": struct({"path": needed(_no_backsteps)}),
    "gcePersistentDisk": struct({"pdName": needed()}),
    "awsElasticBlockStore": struct({"volumeID": needed()}),
    "secret": struct({"secretName": needed(), "defaultMode": _mode, "items": _ITEMS}),
    "nfs": struct({"server": needed(), "path": needed()}),
    "persistentVolumeClaim": struct({"claimName": needed()}),
    "configMap": struct({"name": needed(), "defaultMode": _mode, "items": _ITEMS}),
    "projected": _project,
    "csi": struct({"driver": needed()}),
    "ephemeral": struct({"volumeClaimTemplate": needed()}),
    "image": struct({"reference": needed()}),
    **dict.fromkeys(
        (
            *("gitRepo", "iscsi", "glusterfs", "flocker", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc"),
            *("flexVolume", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk"),
            *("storageos", "scaleIO"),
        ),
        struct({}),
    ),
}
"""The sources of a Pod's volumes, and their checks."""


def _source(value: JSONObject, path: str, errors: Errors) -> None:
    """Check that there is exactly one source, and that one."""
    found = [key for key in VOLUME_SOURCES if value.get(key) is not None]
    for key in found[1:]:
        errors.append(forbidden(f"{path}.{key}", "may not specify more than 1 volume type"))
    for key in found[:1]:
        VOLUME_SOURCES[key](value[key], f"{path}.{key}", errors)
    if not found:
        errors.append(required(path, "must specify a volume type"))


def volumes_errors(volumes: JSON, path: str, errors: Errors) -> set[str]:
    """Check the volumes of a Pod; return the names of those that may be mounted."""
    names: set[str] = set()
    for index, volume in enumerate(volumes or ()):
        place, name = f"{path}[{index}]", volume.get("name") or ""
        found: Errors = []
        _source(volume, place, found)
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
