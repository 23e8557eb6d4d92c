"""HostPath Volumes: directories of the node mounted into pods."""

from __future__ import annotations

from pyverno.podsecurity.control import Check, Control, Level, Reach, Variant
from pyverno.podsecurity.finding import FieldError, Finding, plural, quoted
from pyverno.podsecurity.pod import Pod
from pyverno.podsecurity.versions import since

__all__ = ["HOST_PATH_VOLUMES"]


def _judge(pod: Pod) -> Finding | None:
    bad = [(index, volume) for index, volume in enumerate(pod.volumes) if volume.host_path is not None]
    if not bad:
        return None
    errors = tuple(FieldError(f"spec.volumes[{index}].hostPath", volume.host_path or "") for index, volume in bad)
    detail = f"{plural('volume', len(bad))} {quoted(volume.name for _, volume in bad)}"
    return Finding("hostPath volumes", detail, errors)


HOST_PATH_VOLUMES = Control(
    name="HostPath Volumes",
    title="HostPath volumes",
    what="Volumes that mount a path of the node",
    why="Files of the node hold credentials of the kubelet and of other pods; a writable path is a way out of the pod.",
    reach=Reach.POD,
    fields=("spec.volumes[*].hostPath",),
    allowed="unset",
    checks=(Check("hostPathVolumes", Level.BASELINE, (Variant(since(0), _judge),)),),
)
"""Forbids `hostPath` volumes."""
