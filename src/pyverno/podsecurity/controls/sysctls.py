"""Sysctls: kernel parameters outside the safe set."""

from __future__ import annotations

from pyverno.podsecurity.control import Check, Control, Judge, Level, Reach, Variant
from pyverno.podsecurity.finding import FieldError, Finding
from pyverno.podsecurity.pod import Pod
from pyverno.podsecurity.versions import Version, since

__all__ = ["SAFE", "SYSCTLS"]

_SAFE = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_syncookies",
    }
)
_SAFE_1_27 = _SAFE | {"net.ipv4.ip_local_reserved_ports"}
_SAFE_1_29 = _SAFE_1_27 | {
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
}
_SAFE_1_32 = _SAFE_1_29 | {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}

SAFE: tuple[tuple[Version, frozenset[str]], ...] = (
    (since(0), _SAFE),
    (since(27), _SAFE_1_27),
    (since(29), _SAFE_1_29),
    (since(32), _SAFE_1_32),
)
"""The allowed names, by the version that they are allowed since."""


def _judge_by(safe: frozenset[str]) -> Judge:
    def judge(pod: Pod) -> Finding | None:
        bad = [(index, name) for index, name in enumerate(pod.security.sysctls) if name not in safe]
        if not bad:
            return None
        errors = tuple(FieldError(f"spec.securityContext.sysctls[{index}].name", name) for index, name in bad)
        return Finding("forbidden sysctls", ", ".join(name for _, name in bad), errors)

    return judge


SYSCTLS = Control(
    name="Sysctls",
    title="Sysctls",
    what="Kernel parameters that are not known to be safe",
    why="An unsafe parameter can weaken the kernel or disturb every other container on the node.",
    reach=Reach.POD,
    fields=("spec.securityContext.sysctls[*].name",),
    allowed=", ".join(sorted(_SAFE_1_32)),
    checks=(
        Check(
            "sysctls",
            Level.BASELINE,
            (
                Variant(since(0), _judge_by(_SAFE)),
                Variant(since(27), _judge_by(_SAFE_1_27), "net.ipv4.ip_local_reserved_ports is allowed"),
                Variant(since(29), _judge_by(_SAFE_1_29), "tcp_keepalive_* and tcp_fin_timeout are allowed"),
                Variant(since(32), _judge_by(_SAFE_1_32), "tcp_rmem and tcp_wmem are allowed"),
            ),
        ),
    ),
)
"""Forbids sysctls outside the safe set."""
