"""Test whether an API server admits an object, by the schemas, defaults and validation of the sandbox.

A rejected object is corrected where its errors point: required fields are filled in, forbidden and invalid ones are
removed. Random objects are hardly ever valid, and only admitted ones tell policies apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Final
from zlib import crc32

from kubesandbox.schema.schemas import ObjectSchemas
from kubesandbox.types.customresources import types_of
from kubesandbox.types.resources import ResourceTable, ResourceType, builtin_table
from kubesandbox.validation.names import dns_label_problems
from pyverno.errors import PyvernoError
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSON, JSONObject, deep_copy, encode
from pyverno.kube.labelsyntax import label_key_problems, label_value_problems
from pyverno.kube.status import FieldError, StatusError

__all__ = ["admission_of", "refusal_of"]

_ROUNDS: Final = 10
_STEP: Final = re.compile(r"\[(\d+)\]|\[([^\]]*)\]|([^.\[\]]+)")
_UNKNOWN: Final = re.compile(r'unknown field "([^"]+)"')
_ALWAYS: Final = frozenset({"apiVersion", "image", "restartPolicy", "schedule", "selector", "port", "containerPort"})
"""Required fields, whose removal would be the next error."""

_QUOTED: Final = re.compile(r'"([^"]+)"')
_CONTAINER: Final[JSONObject] = {"name": "c", "image": "nginx:1.25"}
_NEEDED: Final[Mapping[str, JSON]] = {
    "containers": [_CONTAINER],
    "apiVersion": "apps/v1",
    "image": "nginx:1.25",
    "restartPolicy": "Never",
    "schedule": "0 * * * *",
    "livenessProbe": {"tcpSocket": {"port": 80}},
    "readinessProbe": {"tcpSocket": {"port": 80}},
    "startupProbe": {"tcpSocket": {"port": 80}},
    "postStart": {"exec": {"command": ["true"]}},
    "preStop": {"exec": {"command": ["true"]}},
    "selector": {"matchLabels": {"app": "a"}},
    "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [_CONTAINER]}},
    "path": "/",
    "mountPath": "/data",
    "port": 80,
    "ports": [{"port": 80}],
    "containerPort": 80,
    "apiGroups": ["apps"],
    "resources": ["deployments"],
    "verbs": ["get"],
    "apiGroup": "rbac.authorization.k8s.io",
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
    "pathType": "Prefix",
    "backend": {"service": {"name": "a", "port": {"number": 80}}},
    "defaultBackend": {"service": {"name": "a", "port": {"number": 80}}},
    "paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "a", "port": {"number": 80}}}}],
    "accessModes": ["ReadWriteOnce"],
    "storage": "1Gi",
    "requests": {"storage": "1Gi"},
    "type": "RuntimeDefault",
    "protocol": "TCP",
    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"},
}
"""Values of required fields by name; all others become the text `a`."""

_NEEDED_BY_KIND: Final[Mapping[tuple[str, str], JSON]] = {
    ("ReplicationController", "selector"): {"app": "a"},
    ("ReplicationController", "template"): {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [_CONTAINER]}},
}

_NEEDED_BELOW: Final[Mapping[str, JSONObject]] = {
    "Ingress": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}}
}
"""Values for a spec that is refused as a whole, by kind."""

_NODE_PORTS: Final = range(30000, 32768)
_REPORTED: Final[Mapping[str, str]] = {"spec.resources[storage]": "spec.resources.requests[storage]"}
"""Fields in errors that stand for another field, which is at fault."""


def admission_of(
    kube_version: str, definitions: Iterable[JSONObject] = ()
) -> Callable[[JSONObject], JSONObject | None]:
    """Return a function that decodes, completes and validates an object as an API server of this version does.

    `definitions` are the CustomResourceDefinitions that the server has.

    >>> pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "A"}, "spec": {}}
    >>> admission_of("1.35")(pod)["spec"]["containers"][0]["name"]
    'c'
    """
    schemas, table = _built_in(kube_version)
    for definition in definitions:
        schemas, table = schemas.with_crd(definition), table.with_types(types_of(definition))

    def admit(body: JSONObject) -> JSONObject | None:
        group, _, version = str(body.get("apiVersion", "")).rpartition("/")
        found = table.by_kind(GVK(group, version, str(body.get("kind", ""))))
        return None if found is None else _admit(schemas, found, _with_valid_labels(_in_namespace(found, body)))

    return admit


@cache
def _built_in(kube_version: str) -> tuple[ObjectSchemas, ResourceTable]:
    return ObjectSchemas(kube_version), builtin_table(kube_version)


def refusal_of(kube_version: str) -> Callable[[JSONObject], bool]:
    """Return a test for objects that an API server of this version refuses.

    >>> pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": []}}
    >>> refusal_of("1.35")(pod)
    True
    """
    schemas, table = _built_in(kube_version)

    def is_refused(body: JSONObject) -> bool:
        group, _, version = str(body.get("apiVersion", "")).rpartition("/")
        found = table.by_kind(GVK(group, version, str(body.get("kind", ""))))
        if found is None:
            return False
        try:
            decoded = schemas.decode(found, _in_namespace(found, body))
            return bool(decoded.problems or schemas.validate(found, schemas.default(found, decoded.body)))
        except (StatusError, PyvernoError):
            return True

    return is_refused


def _in_namespace(kind: ResourceType, body: JSONObject) -> JSONObject:
    """Return the object with a namespace if its kind has one: that of the URL it was sent to, which must exist."""
    metadata = body.get("metadata")
    if not kind.namespaced or not isinstance(metadata, dict):
        return body
    namespace = metadata.get("namespace")
    if namespace and not (isinstance(namespace, str) and dns_label_problems(namespace)):
        return body
    return {**body, "metadata": {**metadata, "namespace": "default"}}


def _admit(schemas: ObjectSchemas, kind: ResourceType, body: JSONObject) -> JSONObject | None:
    for _ in range(_ROUNDS):
        try:
            decoded = schemas.decode(kind, body)
            if decoded.problems:
                body = _without_unknown(body, decoded.problems)
                continue
            completed = schemas.default(kind, decoded.body)
            errors = schemas.validate(kind, completed)
        except (StatusError, PyvernoError):
            return None
        if not errors:
            return completed
        body = _mend(decoded.body, errors)
    return None


def _with_valid_labels(body: JSONObject) -> JSONObject:
    """Leave out labels and annotations whose keys, or values of labels, an API server refuses."""
    metadata = body.get("metadata")
    if not isinstance(metadata, dict):
        return body
    changed = dict(metadata)
    for name in ("labels", "annotations"):
        entries = metadata.get(name)
        if not isinstance(entries, dict):
            continue
        changed[name] = {
            key: value
            for key, value in entries.items()
            if not label_key_problems(key if name == "labels" else key.lower())
            and not (name == "labels" and isinstance(value, str) and label_value_problems(value))
        }
    return {**body, "metadata": changed}


def _without_unknown(body: JSONObject, problems: Iterable[str]) -> JSONObject:
    changed = deep_copy(body)
    for problem in problems:
        found = _UNKNOWN.search(problem)
        if found is not None:
            _remove(changed, _steps(found[1]))
    return changed


def _mend(body: JSONObject, errors: Iterable[FieldError]) -> JSONObject:
    changed = deep_copy(body)
    for error in errors:
        steps = _steps(_REPORTED.get(error.field, error.field))
        if not steps:
            continue
        name = steps[-1]
        if steps == ["spec"] and (needed := _NEEDED_BELOW.get(str(body.get("kind")))) is not None:
            changed["spec"] = {**deep_copy(needed), **(changed.get("spec") or {})}
        elif steps[-2:] == ["metadata", "labels"] and "selector" in error.detail:
            _match_template(changed, steps)
        elif steps[-3:-2] == ["volumeMounts"] and name == "name":
            _mend_mount(changed, steps)
        elif name == "name":
            # names of containers are unique over all lists of a Pod
            is_item = len(steps) > 2 and isinstance(steps[-2], int)
            _set(changed, steps, f"{str(steps[-3])[:1]}{steps[-2]}" if is_item else "a")
        elif error.kind == "Unsupported value" and (supported := _QUOTED.findall(error.detail)):
            # chosen by the object, so that each variant comes up
            chosen = supported[crc32(encode(body).encode()) % len(supported)]
            _set(changed, steps, [chosen] if isinstance(_at(changed, steps), list) else chosen)
        elif steps == ["spec", "selector"] and body.get("kind") == "ReplicationController":
            _set(changed, steps, {"app": "a"})
        elif name == "nodePort" and error.kind != "Duplicate value":
            _mend_node_port(changed, steps)
        elif name == "maxReplicas":
            least = _at(changed, [*steps[:-1], "minReplicas"])
            _set(changed, steps, max(3, least if isinstance(least, int) else 0))
        elif error.kind == "Required value":
            needed = _NEEDED_BY_KIND.get((str(body.get("kind")), str(name)), _NEEDED.get(str(name), "a"))
            _set(changed, steps, deep_copy(needed))
        elif isinstance(name, str) and name in _ALWAYS:
            _set(changed, steps, deep_copy(_NEEDED[name]))
        else:
            _remove(changed, steps)
    return changed


def _mend_mount(body: JSONObject, steps: list[str | int]) -> None:
    """Give a Pod the volume that a container mounts."""
    pod = steps[:-5]
    named = _at(body, steps)
    named = named if isinstance(named, str) and named else "a"
    _set(body, steps, named)
    volumes = _at(body, [*pod, "volumes"])
    kept = [each for each in volumes if isinstance(each, dict)] if isinstance(volumes, list) else []
    if all(each.get("name") != named for each in kept):
        _set(body, [*pod, "volumes"], [*kept, {"name": named, "emptyDir": {}}])
    else:
        _remove(body, steps[:-1])


def _mend_node_port(body: JSONObject, steps: list[str | int]) -> None:
    """Give a Service the type that has ports of nodes, and the port a number of their range."""
    body["spec"]["type"] = "NodePort"
    port = _at(body, steps)
    is_number = isinstance(port, int) and not isinstance(port, bool)
    if not is_number or not _NODE_PORTS.start <= port < _NODE_PORTS.stop:
        _set(body, steps, _NODE_PORTS[abs(port) % len(_NODE_PORTS) if is_number else 0])


def _match_template(body: JSONObject, steps: list[str | int]) -> None:
    """Give the template of a workload the labels that its selector requires, beside its own."""
    selector = {"app": "a"}
    spec = body.get("spec") or {}
    spec["selector"] = {"matchLabels": selector} if body.get("kind") != "ReplicationController" else selector
    labels = _at(body, steps)
    _set(body, steps, {**labels, **selector} if isinstance(labels, dict) else selector)


def _steps(path: str) -> list[str | int]:
    """Split the path of a field error.

    >>> _steps("spec.containers[0].resources.limits[cpu]")
    ['spec', 'containers', 0, 'resources', 'limits', 'cpu']
    """
    return [int(index) if index else key or name for index, key, name in _STEP.findall(path)]


def _set(body: JSON, steps: list[str | int], value: JSON) -> None:
    holder = _holder(body, steps, makes=True)
    match holder, steps[-1]:
        case dict(), str(name):
            holder[name] = value
        case list(), int(index) if index < len(holder):
            holder[index] = value


def _remove(body: JSON, steps: list[str | int]) -> None:
    holder = _holder(body, steps)
    match holder, steps[-1]:
        case dict(), str(name):
            holder.pop(name, None)
        case list(), int(index) if index < len(holder):
            holder.pop(index)


def _at(body: JSON, steps: list[str | int]) -> JSON:
    holder = _holder(body, steps)
    match holder, steps[-1]:
        case dict(), str(name):
            return holder.get(name)
        case list(), int(index) if index < len(holder):
            return holder[index]
    return None


def _holder(body: JSON, steps: list[str | int], *, makes: bool = False) -> JSON:
    """Return the value that contains the last step of a path, None if it is missing; `makes` adds missing maps."""
    holder = body
    for step in steps[:-1]:
        match holder, step:
            case dict(), str(name):
                if makes and not isinstance(holder.get(name), (dict, list)):
                    holder[name] = {}
                holder = holder.get(name)
            case list(), int(index) if index < len(holder):
                holder = holder[index]
            case _:
                return None
    return holder
