"""The flags of `pyverno analyze`."""

from __future__ import annotations

from pyverno.value import dataclass

__all__ = ["AnalyzeOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyzeOptions:
    """All flags of the command."""

    policies: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    cluster: bool = False
    kubeconfig: str = ""
    context: str = ""
    recorded: tuple[str, ...] = ()
    objects: int = 4000
    seed: int = 1
    kube_version: str = "1.35"
    form: str = "text"
    costs: bool = False
    quiet: bool = False
    explain: str = ""
    lists: bool = False
