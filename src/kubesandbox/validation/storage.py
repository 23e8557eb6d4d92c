"""Volumes of the cluster: claims, volumes, classes."""

from __future__ import annotations

from typing import Final

from kubesandbox.objects.fielderrors import forbidden, invalid, required, unsupported
from kubesandbox.validation.check import Check, Errors, form, immutable, label_selector, needed, one_of, struct
from kubesandbox.validation.names import dns_subdomain_problems
from kubesandbox.validation.workloads.volumes import PERSISTENT_SOURCES, source_errors
from pyverno.kube.json import JSON, JSONObject, equal
from pyverno.kube.quantity import try_quantity

__all__ = ["claim", "claim_spec", "claim_update", "persistent_volume", "storage_class", "storage_class_update"]

_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES: Final = one_of("Block", "Filesystem")
_CLASS: Final = form(dns_subdomain_problems)


def _access_modes(modes: list[str], path: str, errors: Errors) -> None:
    errors.extend(unsupported(path, mode, _MODES) for mode in modes if mode not in _MODES)
    if "ReadWriteOncePod" in modes and any(mode in _MODES[:3] for mode in modes):
        errors.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))


def _positive(value: JSON, path: str, errors: Errors) -> None:
    amount = try_quantity(str(value))
    if amount is not None and amount.sign() <= 0:
        errors.append(invalid(path, str(value), "must be greater than zero"))


def claim_spec(spec: JSONObject, path: str, errors: Errors) -> None:
    """Check the specification of a PersistentVolumeClaim."""
    modes = spec.get("accessModes") or []
    if not modes:
        errors.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    label_selector(spec.get("selector"), f"{path}.selector", errors)
    _access_modes(modes, f"{path}.accessModes", errors)
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if size is None:
        errors.append(required(f"{path}.resources[storage]"))
    else:
        _positive(size, f"{path}.resources[storage]", errors)
    struct({"storageClassName": _CLASS, "volumeMode": _VOLUME_MODES})(spec, path, errors)


def claim(body: JSON, path: str, errors: Errors) -> None:
    """Check a PersistentVolumeClaim."""
    claim_spec(body.get("spec") or {}, "spec", errors)


def claim_update(body: JSONObject, old: JSONObject, subresource: str, errors: Errors) -> bool:
    """Check that a claim changed in its size only, and that only when it is bound."""
    claim(body, "", errors)
    new, before = dict(body.get("spec") or {}), dict(old.get("spec") or {})
    if not before.get("volumeName"):
        before["volumeName"] = new.get("volumeName")
    if before.get("storageClassName") is None:
        before["storageClassName"] = new.get("storageClassName")
    is_bound = (body.get("status") or {}).get("phase") == "Bound"
    if is_bound:
        for key in ("resources", "volumeAttributesClassName"):
            new[key] = before.get(key)
    kept = [{key: item for key, item in spec.items() if item is not None} for spec in (new, before)]
    if not equal(*kept):
        changed = sorted(key for key in {*kept[0], *kept[1]} if not equal(kept[0].get(key), kept[1].get(key)))
        what = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        errors.append(forbidden("spec", f"{what}\nchanged: {', '.join(changed)}"))
    return True


def persistent_volume(body: JSON, path: str, errors: Errors) -> None:
    """Check a PersistentVolume."""
    spec = body.get("spec") or {}
    modes, capacity = spec.get("accessModes") or [], spec.get("capacity") or {}
    if not modes:
        errors.append(required("spec.accessModes"))
    _access_modes(modes, "spec.accessModes", errors)
    if not capacity:
        errors.append(required("spec.capacity"))
    if "storage" not in capacity or len(capacity) > 1:
        errors.append(unsupported("spec.capacity", spec.get("capacity"), ("storage",)))
    for name, size in capacity.items():
        _positive(size, f"spec.capacity[{name}]", errors)
    policy = one_of("Delete", "Recycle", "Retain")
    struct({"persistentVolumeReclaimPolicy": policy})(spec, "spec", errors)
    source_errors(spec, PERSISTENT_SOURCES, "spec", errors)
    if spec.get("local") is not None and not (spec.get("nodeAffinity") or {}).get("required"):
        errors.append(required("spec.nodeAffinity", "Local volume requires node affinity"))
    struct({"storageClassName": _CLASS, "volumeMode": _VOLUME_MODES})(spec, "spec", errors)


storage_class: Final[Check] = struct(
    {
        "provisioner": needed(),
        "reclaimPolicy": one_of("Delete", "Retain"),
        "volumeBindingMode": one_of("Immediate", "WaitForFirstConsumer"),
    }
)


def storage_class_update(body: JSONObject, old: JSONObject, subresource: str, errors: Errors) -> bool:
    """Check that parameters, provisioner and policies of a StorageClass did not change."""
    for key, what in (
        ("parameters", "updates to parameters are forbidden."),
        ("provisioner", "updates to provisioner are forbidden."),
        ("reclaimPolicy", "updates to reclaimPolicy are forbidden."),
    ):
        if not equal(body.get(key), old.get(key)):
            errors.append(forbidden(key, what))
    immutable(body.get("volumeBindingMode"), old.get("volumeBindingMode"), "volumeBindingMode", errors)
    return False
