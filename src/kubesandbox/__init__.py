"""A Kubernetes API server in one process, for kubectl, Helm, controllers and test suites, without a cluster.

    from kubesandbox import Sandbox

    with Sandbox() as sandbox:
        ...  # any Kubernetes client, with the kubeconfig at `sandbox.kubeconfig`

`kubesandbox.pytest_plugin` offers it as pytest fixtures. The package knows Kubernetes, not Kyverno: Kyverno's kinds are
custom resources here, and its policies reach the server as admission webhooks, as in any cluster. What belongs to
Kubernetes itself (matchConditions, ValidatingAdmissionPolicy, MutatingAdmissionPolicy, Pod Security admission) is
evaluated in process. Objects live in one process without replication: keep nothing in it that matters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubesandbox.sandbox import Sandbox, Settings

__all__ = ["Sandbox", "Settings"]


def __getattr__(name: str) -> object:
    """Import the sandbox at first use: `import kubesandbox` alone costs nothing."""
    if name in __all__:
        from kubesandbox import sandbox

        return getattr(sandbox, name)
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
