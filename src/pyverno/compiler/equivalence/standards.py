"""Fields and values that the Pod Security Standards judge, for policies that name only a level."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyverno.compiler.equivalence.readings import Reading
from pyverno.kube.json import JSON
from pyverno.podsecurity.controls import CONTROLS
from pyverno.podsecurity.controls.capabilities import DEFAULT
from pyverno.podsecurity.controls.sysctls import SAFE

__all__ = ["STANDARD_FIELDS", "names_standards", "standard_readings", "standard_values"]

STANDARD_FIELDS: Final = frozenset(
    {
        *("containers", "initContainers", "ephemeralContainers", "volumes", "ports", "securityContext"),
        *("hostNetwork", "hostPID", "hostIPC", "hostPort", "hostPath", "procMount", "sysctls", "privileged"),
        *("capabilities", "add", "drop", "seLinuxOptions", "seccompProfile", "appArmorProfile", "type", "user", "role"),
        *("windowsOptions", "hostProcess", "allowPrivilegeEscalation", "runAsNonRoot", "runAsUser", "os", "name"),
    }
)
_OTHERS: Final = ("NET_ADMIN", "ALL", "net.core.somaxconn", "container_t", "container_init_t", "container_kvm_t")


def names_standards(value: JSON) -> bool:
    """Return whether a document has a rule with `podSecurity`.

    >>> names_standards({"rules": [{"validate": {"podSecurity": {"level": "baseline"}}}]})
    True
    """
    if isinstance(value, dict):
        return "podSecurity" in value or any(map(names_standards, value.values()))
    return isinstance(value, list) and any(map(names_standards, value))


def standard_values() -> Iterator[str]:
    """Yield the values that the standards allow, and some that they do not."""
    yield from sorted(DEFAULT)
    yield from sorted({name for _, names in SAFE for name in names})
    yield from _OTHERS


def standard_readings() -> Iterator[Reading]:
    """Yield the fields of containers and pods that the standards judge, with values on both sides.

    >>> [each.constants for each in standard_readings() if each.steps[-1] == "procMount"]
    [('Default', 'Unmasked')]
    """
    allowed = {"add": (tuple(sorted(DEFAULT)),), "sysctls": tuple(tuple(sorted(names)) for _, names in SAFE)}
    values = {
        "add": (*sorted(DEFAULT), "NET_ADMIN"),
        "drop": ("ALL", "NET_RAW"),
        "sysctls": (*sorted({name for _, names in SAFE for name in names}), "net.core.somaxconn"),
        "seLinuxOptions": ("container_t", "container_init_t", "container_kvm_t", "container_engine_t", "spc_t"),
        "procMount": ("Default", "Unmasked"),
        "host": ("10.0.0.1",),
        "hostPort": (80,),
    }
    profiles = ("RuntimeDefault", "Localhost", "Unconfined")
    for control in CONTROLS:
        for field in control.fields:
            if "annotations" in field or "initContainers" in field or "ephemeralContainers" in field:
                continue
            steps = tuple(0 if each == "*" else each for each in field.replace("[*]", ".*").split("."))
            constants = next((found for name, found in values.items() if name in steps), ())
            lists = next((found for name, found in allowed.items() if name in steps), ())
            yield Reading(steps, profiles if str(steps[-2]).endswith("Profile") else constants, lists)
