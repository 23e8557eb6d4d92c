"""Volume Types: the kinds of volume that a restricted pod may use."""

from __future__ import annotations

from pyverno.podsecurity.control import Check, Control, Level, Reach, Variant
from pyverno.podsecurity.finding import FieldError, Finding, plural, quoted, sorted_unique
from pyverno.podsecurity.pod import Pod, Volume
from pyverno.podsecurity.versions import since

__all__ = ["ALLOWED", "VOLUME_TYPES"]

ALLOWED = frozenset(
    {
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    }
)
_RESTRICTED = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
)


def _judge(pod: Pod) -> Finding | None:
    bad = [(index, each) for index, each in enumerate(pod.volumes) if each.sources.isdisjoint(ALLOWED)]
    if not bad:
        return None
    errors = tuple(FieldError(f"spec.volumes[{index}].{_type(each)}") for index, each in bad)
    types = sorted_unique(_type(each) for _, each in bad)
    uses = "uses" if len(bad) == 1 else "use"
    volumes = f"{plural('volume', len(bad))} {quoted(each.name for _, each in bad)}"
    detail = f"{volumes} {uses} {plural('restricted volume type', len(types))} {quoted(types)}"
    return Finding("restricted volume types", detail, errors)


def _type(volume: Volume) -> str:
    return next((name for name in _RESTRICTED if name in volume.sources), "unknown")


VOLUME_TYPES = Control(
    name="Volume Types",
    title="Volume types",
    what="Volumes other than the core types that are managed through claims or hold data of the API",
    why="Other types reach storage systems or the node directly, with credentials and rights of their own.",
    reach=Reach.POD,
    fields=tuple(f"spec.volumes[*].{name}" for name in _RESTRICTED),
    allowed=", ".join(sorted(ALLOWED)),
    checks=(Check("restrictedVolumes", Level.RESTRICTED, (Variant(since(0), _judge),)),),
)
"""Allows only the nine core volume types."""
