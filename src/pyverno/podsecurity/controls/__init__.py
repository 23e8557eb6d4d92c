"""The controls of the Pod Security Standards, one file each.

`CONTROLS` is in the order of the published standards; `CHECKS` is in the order in which violations are reported,
that of Kubernetes' own registry.
"""

from pyverno.podsecurity.control import Check, Control
from pyverno.podsecurity.controls.app_armor import APP_ARMOR
from pyverno.podsecurity.controls.capabilities import CAPABILITIES
from pyverno.podsecurity.controls.host_namespaces import HOST_NAMESPACES
from pyverno.podsecurity.controls.host_path_volumes import HOST_PATH_VOLUMES
from pyverno.podsecurity.controls.host_ports import HOST_PORTS
from pyverno.podsecurity.controls.host_probes import HOST_PROBES
from pyverno.podsecurity.controls.host_process import HOST_PROCESS
from pyverno.podsecurity.controls.privilege_escalation import PRIVILEGE_ESCALATION
from pyverno.podsecurity.controls.privileged_containers import PRIVILEGED_CONTAINERS
from pyverno.podsecurity.controls.proc_mount import PROC_MOUNT
from pyverno.podsecurity.controls.run_as_non_root import RUN_AS_NON_ROOT
from pyverno.podsecurity.controls.run_as_user import RUN_AS_USER
from pyverno.podsecurity.controls.seccomp import SECCOMP
from pyverno.podsecurity.controls.selinux import SELINUX
from pyverno.podsecurity.controls.sysctls import SYSCTLS
from pyverno.podsecurity.controls.volume_types import VOLUME_TYPES

__all__ = ["CHECKS", "CONTROLS"]

CONTROLS: tuple[Control, ...] = (
    HOST_PROCESS,
    HOST_NAMESPACES,
    PRIVILEGED_CONTAINERS,
    CAPABILITIES,
    HOST_PATH_VOLUMES,
    HOST_PORTS,
    HOST_PROBES,
    APP_ARMOR,
    SELINUX,
    PROC_MOUNT,
    SECCOMP,
    SYSCTLS,
    VOLUME_TYPES,
    PRIVILEGE_ESCALATION,
    RUN_AS_NON_ROOT,
    RUN_AS_USER,
)

# Kubernetes registers its checks in the byte order of their file names.
CHECKS: tuple[Check, ...] = (
    *PRIVILEGE_ESCALATION.checks,
    *APP_ARMOR.checks,
    *CAPABILITIES.checks,
    *HOST_NAMESPACES.checks,
    *HOST_PATH_VOLUMES.checks,
    *HOST_PORTS.checks,
    *HOST_PROBES.checks,
    *PRIVILEGED_CONTAINERS.checks,
    *PROC_MOUNT.checks,
    *VOLUME_TYPES.checks,
    *RUN_AS_NON_ROOT.checks,
    *RUN_AS_USER.checks,
    *SELINUX.checks,
    *SECCOMP.checks,
    *SYSCTLS.checks,
    *HOST_PROCESS.checks,
)
