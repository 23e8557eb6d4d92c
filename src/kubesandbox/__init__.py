"""A Kubernetes API server in one process, for real kubectl, Helm and controllers, without a cluster.

It knows Kubernetes, not Kyverno: policies of Kyverno's kinds reach it as admission webhooks only, like a cluster's.
What is Kubernetes' own (matchConditions, ValidatingAdmissionPolicy, MutatingAdmissionPolicy, Pod Security admission) it
judges in process with the one engine. It must never be used to keep anything that matters: one process, no quorum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubesandbox.sandbox import Sandbox, Settings

__all__ = ["Sandbox", "Settings"]


def __getattr__(name: str) -> object:
    """Import what is asked for; the parts of the sandbox are for those who run one."""
    if name in __all__:
        from kubesandbox import sandbox

        return getattr(sandbox, name)
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
