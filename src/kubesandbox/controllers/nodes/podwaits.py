"""Pods whose containers cannot start yet: a ConfigMap or Secret that they name is missing.

Pure functions of the pod and of a lookup. A container that runs already is left alone, as a kubelet reads its
environment once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import TypeAlias

from kubesandbox.controllers.conditions import set_condition
from kubesandbox.controllers.nodes.podstatus import pod_condition
from kubesandbox.controllers.objects import at, namespace_of
from pyverno.kube.json import JSON, JSONObject
from pyverno.value import dataclass

__all__ = ["Find", "Problems", "find_problems", "waiting_status"]

Find: TypeAlias = Callable[[str, str], JSONObject | None]
"""Looks up `configmaps` or `secrets` by name in the namespace of the pod."""

_NOUNS = {"configmaps": "configmap", "secrets": "secret"}
_KINDS = {"configmaps": "ConfigMap", "secrets": "Secret"}
_STATUSES = {"initContainers": "initContainerStatuses", "containers": "containerStatuses"}


@dataclass(frozen=True, slots=True)
class Problems:
    """Reasons why a pod cannot start: a volume that cannot be mounted, or texts by container."""

    mount: str
    containers: Mapping[str, str]

    def __bool__(self) -> bool:
        """Hold where there is any."""
        return bool(self.mount or self.containers)


def find_problems(pod: JSONObject, find: Find) -> Problems:
    """Return the reasons why containers of a pod cannot start yet.

    >>> source = {"configMapRef": {"name": "settings"}}
    >>> pod = {"spec": {"containers": [{"name": "main", "envFrom": [source]}]}}
    >>> find_problems(pod, lambda resource, name: None).containers
    {'main': 'configmap "settings" not found'}
    """
    started = {
        item["name"]
        for field in _STATUSES.values()
        for item in at(pod, "status", field, default=[])
        if item.get("containerID")
    }
    if started:
        mount = ""
    else:
        mount = next(filter(None, (_volume_problem(each, find) for each in at(pod, "spec", "volumes", default=[]))), "")
    texts: dict[str, str] = {}
    for group in _STATUSES:
        for container in at(pod, "spec", group, default=[]):
            if container["name"] not in started:
                text = next(_environment_problems(container, namespace_of(pod), find), "")
                if text:
                    texts[container["name"]] = text
    return Problems(mount, texts)


def _volume_problem(volume: JSONObject, find: Find) -> str:
    for field, resource, key in (("configMap", "configmaps", "name"), ("secret", "secrets", "secretName")):
        source = volume.get(field)
        if source and not source.get("optional") and find(resource, source.get(key) or "") is None:
            text = f'{_NOUNS[resource]} "{source.get(key) or ""}" not found'
            return f'MountVolume.SetUp failed for volume "{volume["name"]}" : {text}'
    return ""


def _environment_problems(container: JSONObject, namespace: str, find: Find) -> Iterator[str]:
    for source in container.get("envFrom") or ():
        for field, resource in (("configMapRef", "configmaps"), ("secretRef", "secrets")):
            reference = source.get(field)
            if reference and not reference.get("optional") and find(resource, reference.get("name") or "") is None:
                yield f'{_NOUNS[resource]} "{reference.get("name") or ""}" not found'
    for variable in container.get("env") or ():
        for field, resource in (("configMapKeyRef", "configmaps"), ("secretKeyRef", "secrets")):
            reference = at(variable, "valueFrom", field)
            if reference and not reference.get("optional"):
                name, key = reference.get("name") or "", reference.get("key")
                found = find(resource, name)
                if found is None:
                    yield f'{_NOUNS[resource]} "{name}" not found'
                elif key not in (found.get("data") or {}):
                    yield f"couldn't find key {key} in {_KINDS[resource]} {namespace}/{name}"


def waiting_status(pod: JSONObject, running: JSONObject, problems: Problems, now: datetime) -> JSONObject:
    """Return the status of a pod whose containers wait, made from the one that it would have without problems."""
    status = {**running, "phase": "Pending"}
    first = at(pod, "spec", "initContainers", default=[])
    is_initialized = not problems.mount and not any(item["name"] in problems.containers for item in first)
    for group, field in _STATUSES.items():
        images = {item["name"]: item.get("image", "") for item in at(pod, "spec", group, default=[])}
        is_held = problems.mount or (group == "containers" and not is_initialized)
        why = "PodInitializing" if first else "ContainerCreating"
        entries: list[JSONObject] = []
        for item in status.get(field, ()):
            text = "" if problems.mount else problems.containers.get(item["name"], "")
            if is_held:
                entries.append(_waiting(item, images[item["name"]], why))
            elif text:
                entries.append(_waiting(item, images[item["name"]], "CreateContainerConfigError", text))
            else:
                entries.append(item)
        if entries:
            status[field] = entries
    unready = [item["name"] for item in status.get("containerStatuses", ()) if not item["ready"]]
    conditions = status["conditions"]
    for kind in ("Ready", "ContainersReady"):
        new = pod_condition(kind, "False", now, "ContainersNotReady")
        conditions = set_condition(conditions, {**new, "message": _list_containers("unready", unready)})
    if not is_initialized and first:
        new = pod_condition("Initialized", "False", now, "ContainersNotInitialized")
        names = [item["name"] for item in first]
        conditions = set_condition(conditions, {**new, "message": _list_containers("incomplete", names)})
    if problems.mount:
        conditions = set_condition(conditions, pod_condition("PodReadyToStartContainers", "False", now))
        del status["podIP"], status["podIPs"]
    status["conditions"] = conditions
    return status


def _waiting(item: JSONObject, image: str, reason: str, message: str = "") -> JSONObject:
    state: JSON = {"reason": reason, "message": message} if message else {"reason": reason}
    return {
        "name": item["name"],
        "state": {"waiting": state},
        "lastState": {},
        "ready": False,
        "restartCount": 0,
        "image": image,
        "imageID": "",
        "started": False,
    }


def _list_containers(state: str, names: list[str]) -> str:
    return f"containers with {state} status: [{' '.join(names)}]"
