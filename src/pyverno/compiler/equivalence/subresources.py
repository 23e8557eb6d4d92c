"""Requests for subresources whose objects have a kind of their own, such as Scale, Eviction or the options of exec."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from pyverno.compiler.equivalence.case import DEFAULT_NAMESPACE, Case
from pyverno.compiler.equivalence.objects import ObjectMaker
from pyverno.compiler.equivalence.shrinking import Admit
from pyverno.compiler.equivalence.systematic import systematic_objects
from pyverno.compiler.equivalence.vocabulary import Vocabulary
from pyverno.engine.request import Operation
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindInfo

__all__ = ["EPHEMERAL", "is_for", "subresource_cases", "with_ephemeral"]

EPHEMERAL: Final = "ephemeralcontainers"

_FLAGS: Final[JSONObject] = {"type": "boolean"}
_TEXT: Final[JSONObject] = {"type": "string"}
_STREAMS: Final[JSONObject] = {"stdin": _FLAGS, "stdout": _FLAGS, "stderr": _FLAGS, "tty": _FLAGS, "container": _TEXT}
_OPTIONS: Final[dict[str, JSONObject]] = {
    "PodExecOptions": {**_STREAMS, "command": {"type": "array", "items": _TEXT}},
    "PodAttachOptions": _STREAMS,
    "PodPortForwardOptions": {"ports": {"type": "array", "items": {"type": "integer"}}},
    "PodProxyOptions": {"path": _TEXT},
    "NodeProxyOptions": {"path": _TEXT},
    "ServiceProxyOptions": {"path": _TEXT},
}
"""Fields of the options of CONNECT, which have no schema among the stored kinds."""

_NOT_EPHEMERAL: Final = frozenset(
    {"lifecycle", "livenessProbe", "ports", "readinessProbe", "resources", "startupProbe"}
)
"""Fields that ephemeral containers do not have."""

_UPDATED: Final = frozenset({"scale"})


def is_for(vocabulary: Vocabulary, kind: str, name: str) -> bool:
    """Return whether the policies match a subresource that takes the objects of `apiVersion/kind` itself."""
    return any(
        each == name and f"{info.api_version}/{info.kind}" == kind and info.subresource_gvk(name) == info.gvk
        for info, each in vocabulary.subresources
    )


def subresource_cases(vocabulary: Vocabulary, maker: ObjectMaker, chance: Random, count: int) -> Iterator[Case]:
    """Yield `count` requests for the subresources that have a kind of their own."""
    wanted = [(info, name) for info, name in vocabulary.subresources if info.subresource_gvk(name) != info.gvk]
    previous: dict[tuple[KindInfo, str], JSONObject] = {}
    systematic: dict[tuple[KindInfo, str], Iterator[JSONObject]] = {}
    for number in range(count if wanted else 0):
        info, name = wanted[number % len(wanted)]
        gvk = info.subresource_gvk(name)
        own = KindInfo(gvk.group, gvk.version, gvk.kind, info.plural, info.singular, namespaced=info.namespaced)
        if gvk.kind in _OPTIONS:
            body: JSONObject | None = maker.make_options(own, _OPTIONS[gvk.kind])
        else:
            waiting = systematic.setdefault((info, name), systematic_objects(vocabulary, own, maker.schemas))
            body = next(waiting, None) or maker.make(own)
        if body is None:
            continue
        user, labels = vocabulary.circumstances.choose(chance)
        operation, old = Operation.CREATE, None
        if gvk.kind in _OPTIONS:
            operation = Operation.CONNECT
        elif name in _UPDATED:
            operation, old = Operation.UPDATE, {**previous.get((info, name), body), "metadata": body["metadata"]}
        previous[info, name] = body
        homes = vocabulary.homes or (DEFAULT_NAMESPACE,)
        yield Case(body, operation, old, user, labels, name, info, homes[number // len(wanted) % len(homes)])


def with_ephemeral(admit: Admit, pod: JSONObject, body: JSONObject) -> JSONObject | None:
    """Return an admitted Pod with the ephemeral containers of an object that was made, with a plain one if it has none.

    None stands for containers that an API server refuses.
    """
    listed = (body.get("spec") or {}).get("ephemeralContainers") if isinstance(body.get("spec"), dict) else None
    made = [
        {**{key: value for key, value in each.items() if key not in _NOT_EPHEMERAL}, "name": f"debug-{number}"}
        for number, each in enumerate(listed if isinstance(listed, list) else ())
        if isinstance(each, dict)
    ]
    made = made or [{"name": "debug-0", "image": "nginx"}]
    # what is valid in a container, and its defaults, are so in an ephemeral one
    admitted = admit({**pod, "spec": {**pod["spec"], "containers": made}})
    if admitted is None:
        return None
    names = {each["name"] for each in made}
    containers = [each for each in admitted["spec"]["containers"] if each["name"] in names]
    kept = [{key: value for key, value in each.items() if key not in _NOT_EPHEMERAL} for each in containers]
    return {**pod, "spec": {**pod["spec"], "ephemeralContainers": kept}}
