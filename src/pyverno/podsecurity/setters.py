"""The part of a message that names the pod and the containers at fault."""

from __future__ import annotations

from collections.abc import Sequence

from pyverno.podsecurity.finding import plural, quoted

__all__ = ["named_containers", "setters"]


def named_containers(names: Sequence[str]) -> str:
    """Return the containers by name.

    >>> named_containers(["a", "b"])
    'containers "a", "b"'
    """
    return f"{plural('container', len(names))} {quoted(names)}"


def setters(is_set_by_pod: bool | None, names: Sequence[str], *others: str) -> str:
    """Join the names of the objects that set a field: the pod, containers, volumes.

    >>> setters(True, ["a"])
    'pod and container "a"'
    """
    pod = ("pod",) if is_set_by_pod else ()
    containers = (named_containers(names),) if names else ()
    return " and ".join((*pod, *containers, *others))
