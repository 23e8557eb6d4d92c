"""DefaultTolerationSeconds: pods stay five minutes on a node that is not ready or cannot be reached."""

from __future__ import annotations

from kubesandbox.admission.plugins.pods import is_pod_write, pod_spec, with_spec
from kubesandbox.attributes import Attributes
from pyverno.engine.request import Operation
from pyverno.kube.json import JSON

__all__ = ["admit_tolerations"]

_SECONDS = 300
_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def admit_tolerations(attributes: Attributes) -> Attributes:
    """Return the request with the two default tolerations, unless the pod has its own."""
    if not is_pod_write(attributes, Operation.CREATE, Operation.UPDATE):
        return attributes
    spec = pod_spec(attributes)
    present: list[JSON] = list(spec.get("tolerations") or ())
    added = [
        {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _SECONDS}
        for taint in _TAINTS
        if not any(isinstance(each, dict) and _tolerates(each, taint) for each in present)
    ]
    return with_spec(attributes, {**spec, "tolerations": [*present, *added]}) if added else attributes


def _tolerates(toleration: dict[str, JSON], taint: str) -> bool:
    return (toleration.get("key") or taint) == taint and (toleration.get("effect") or "NoExecute") == "NoExecute"
