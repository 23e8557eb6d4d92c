"""Checks of PersistentVolumeClaims."""

from __future__ import annotations

from typing import Final

from kubesandbox.objects.fielderrors import forbidden, invalid, required, unsupported
from kubesandbox.validation.check import Errors, form, label_selector, one_of, struct
from kubesandbox.validation.names import dns_subdomain_problems
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.quantity import try_quantity

__all__ = ["claim", "claim_spec"]

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
