"""Objects of a given size: ordinary ones, and ones made to cost a policy library as much as they can.

Every kind that our library matches is here, with each list and map that a policy may walk filled to the size. The same
seed gives the same objects. This module must never judge.
"""

# ruff: noqa: E501 - tables with a row each
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

import orjson

from pyverno.kube.json import JSONObject

__all__ = ["adversarial_objects", "mixed_objects", "ordinary_objects"]

Unit = Callable[[int], Any]

BAD_SECURITY = {
    "privileged": True, "allowPrivilegeEscalation": True, "runAsNonRoot": False, "runAsUser": 0, "procMount": "Unmasked",
    "capabilities": {"add": ["SYS_ADMIN", "NET_RAW"], "drop": ["*"]}, "seccompProfile": {"type": "Unconfined"},
    "seLinuxOptions": {"type": "spc_t", "user": "root"}, "windowsOptions": {"hostProcess": True},
}  # fmt: skip
GOOD_SECURITY = {
    "privileged": False, "allowPrivilegeEscalation": False, "runAsNonRoot": True, "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
}  # fmt: skip
PROBE = {"httpGet": {"path": "/", "port": 80}}

CONTAINERS: Mapping[str, Unit] = {
    "bare": lambda number: {"name": f"c{number}", "image": "i"},
    "tiny": lambda number: {"name": "", "image": ""},
    "empty": lambda number: {},
    "bad": lambda number: {"name": f"c{number}", "image": "r/i:latest", "securityContext": BAD_SECURITY},
    "good": lambda number: {
        "name": f"c{number}", "image": f"registry.example.com/i{number}:v1", "imagePullPolicy": "IfNotPresent",
        "securityContext": GOOD_SECURITY, "livenessProbe": PROBE, "readinessProbe": PROBE,
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}},
    },
    "wildcard": lambda number: {"name": "*" * 30, "image": "?" * 60 + "*:*"},
    "capabilities": lambda number: {
        "name": f"c{number}", "image": "i", "securityContext": {"capabilities": {"add": ["X*?"] * 20, "drop": ["all"] * 20}},
    },
    "ports": lambda number: {"name": f"c{number}", "image": "i", "ports": [{"hostPort": port} for port in range(30)]},
    "environment": lambda number: {
        "name": f"c{number}", "image": "i",
        "env": [{"name": f"E{each}", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}} for each in range(20)],
        "envFrom": [{"secretRef": {"name": "s"}}] * 10,
    },
    "mounts": lambda number: {"name": f"c{number}", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/"}] * 20},
    "image": lambda number: {"name": f"c{number}", "image": "a/" * 100 + "b@sha256:" + "0" * 64},
    "unicode": lambda number: {"name": "\U0001f600" * 20, "image": "é" * 50 + ":ß"},
    "quantities": lambda number: {
        "name": f"c{number}", "image": "i", "resources": {"limits": {f"r{each}": "9" * 30 + "Ki" for each in range(20)}},
    },
    "nulls": lambda number: {"name": None, "image": None, "securityContext": None, "resources": None, "ports": None},
    "wrong types": lambda number: {"name": [1], "image": {"a": 1}, "securityContext": "x", "ports": "y", "env": 3},
}  # fmt: skip
DEFAULTS = {
    "image": "", "imagePullPolicy": "IfNotPresent", "name": "", "resources": {},
    "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
}  # fmt: skip
"""Defaults that an API server writes into every container before it calls a webhook."""
SPEC_LISTS: Mapping[str, Unit] = {
    "volumes": lambda number: {"name": f"v{number}", "hostPath": {"path": "/var/run/docker.sock"}},
    "hostAliases": lambda number: {"ip": "10.0.0.1", "hostnames": [f"h{number}"]},
    "tolerations": lambda number: {"key": f"k{number}", "operator": "Exists"},
    "imagePullSecrets": lambda number: {"name": f"s{number}"},
    "sysctls": lambda number: {"name": f"kernel.s{number}", "value": "1"},
    "supplementalGroups": lambda number: 0,
}
TEXTS = ("a", "*", "?", "*?", "é", "\U0001f600", "{{ request.object }}", "1h", "9", "a.", "a/", " ", "\n", "\\", '"')
WORKLOADS = {
    "Deployment": "apps/v1", "DaemonSet": "apps/v1", "StatefulSet": "apps/v1", "ReplicaSet": "apps/v1", "Job": "batch/v1",
    "CronJob": "batch/v1", "ReplicationController": "v1",
}  # fmt: skip
OTHERS: Mapping[str, tuple[str, Mapping[str, tuple[str, Unit]]]] = {
    "Service": ("v1", {
        "externalIPs": ("spec", lambda number: f"10.0.{number % 250}.1"),
        "ports": ("spec", lambda number: {"port": number, "nodePort": 30_000 + number}),
    }),
    "Ingress": ("networking.k8s.io/v1", {
        "rules": ("spec", lambda number: {"host": f"*.h{number}", "http": {"paths": [{"path": "/*"}]}}),
        "tls": ("spec", lambda number: {"hosts": [f"*.h{number}"], "secretName": "s"}),
    }),
    "ClusterRole": ("rbac.authorization.k8s.io/v1", {
        "rules": ("", lambda number: {"apiGroups": ["*"], "resources": ["*", f"r{number}/*"], "verbs": ["*"]}),
    }),
    "Role": ("rbac.authorization.k8s.io/v1", {
        "rules": ("", lambda number: {"apiGroups": [""], "resources": ["?*"] * 5, "verbs": ["get", "*"]}),
    }),
    "PodDisruptionBudget": ("policy/v1", {
        "matchExpressions": ("spec", lambda number: {"key": f"k{number}", "operator": "Exists"}),
    }),
    "Namespace": ("v1", {"finalizers": ("spec", lambda number: f"f{number}")}),
    "ConfigMap": ("v1", {"data": ("data", lambda number: "x")}),
    "Secret": ("v1", {"data": ("data", lambda number: "eA==")}),
    "ServiceAccount": ("v1", {"secrets": ("", lambda number: {"name": f"s{number}"})}),
}  # fmt: skip


def adversarial_objects(size: int) -> Iterator[tuple[str, JSONObject]]:
    """Yield objects of at most that many bytes as JSON, as an API server sends them, each with the name of its shape."""
    for name, spec in _pod_specs(size):
        yield f"Pod {name}", _pod(spec)
    for kind, version in WORKLOADS.items():
        for name, spec in _pod_specs(size):
            yield f"{kind} {name}", _workload(kind, version, spec)
    for kind, (version, lists) in OTHERS.items():
        for name, (place, unit) in lists.items():
            made = _filled(unit, size - 200)
            value: Any = (
                {f"k{number}": each for number, each in enumerate(made[: len(made) // 2])} if name == "data" else made
            )
            body = {place: value} if name == place else {place: {name: value}} if place else {name: value}
            yield f"{kind} {name}", {"apiVersion": version, "kind": kind, "metadata": _metadata(), **body}
        yield from _decorated(kind, {"apiVersion": version, "kind": kind, "spec": {}}, size)
    yield from _decorated("Pod", _pod({"containers": [CONTAINERS["bad"](1)]}), size)
    yield from _decorated(
        "Deployment", _workload("Deployment", "apps/v1", {"containers": [CONTAINERS["bad"](1)]}), size
    )


def ordinary_objects(size: int, count: int, *, seed: int = 11) -> Iterator[JSONObject]:
    """Yield objects as clusters have them: a few containers, and the rest of the size in one text, as a ConfigMap has."""
    chance = Random(seed)  # noqa: S311 - shapes, no secret
    for number in range(count):
        kind = chance.choice(("Pod", "Pod", "Pod", "Deployment", "StatefulSet", "Job", "Service", "Ingress"))
        containers = [CONTAINERS[chance.choice(("good", "bad", "bare"))](each) for each in range(chance.randint(1, 4))]
        if kind == "Pod":
            made = _pod({"containers": containers})
        elif kind in WORKLOADS:
            made = _workload(kind, WORKLOADS[kind], {"containers": containers})
        else:
            made = {
                "apiVersion": OTHERS[kind][0],
                "kind": kind,
                "metadata": _metadata(),
                "spec": {"ports": [{"port": 80}]},
            }
        made["metadata"] = {**made["metadata"], "name": f"o{number}", "annotations": {"example.com/build": ""}}
        made["metadata"]["annotations"]["example.com/build"] = "x" * (size - len(orjson.dumps(made)))
        yield made


def mixed_objects(size: int, *, seed: int) -> Iterator[tuple[str, JSONObject]]:
    """Yield objects without end that put several shapes together, chosen at random."""
    chance = Random(seed)  # noqa: S311 - shapes, no secret
    kinds = ("Pod", *WORKLOADS)
    while True:
        parts = chance.sample(sorted(CONTAINERS), 2)
        fields = chance.sample(("containers", "initContainers", "ephemeralContainers"), 2)
        spec: JSONObject = {
            field: _filled(CONTAINERS[part], size // 4) for field, part in zip(fields, parts, strict=True)
        }
        extra = chance.choice(sorted(SPEC_LISTS))
        _put(spec, extra, _filled(SPEC_LISTS[extra], size // 5))
        kind = chance.choice(kinds)
        made = _pod(spec) if kind == "Pod" else _workload(kind, WORKLOADS[kind], spec)
        where = chance.choice(("labels", "annotations"))
        text = chance.choice(TEXTS)
        made["metadata"] = {**made["metadata"], where: {f"k{each}": text * 5 for each in range(size // 200)}}
        yield f"{kind} {parts} {fields} {extra} {where} {text!r}", made


def _pod_specs(size: int) -> Iterator[tuple[str, JSONObject]]:
    room = size - 300
    for field in ("containers", "initContainers", "ephemeralContainers"):
        for name, unit in CONTAINERS.items():
            served = lambda number, unit=unit: {**DEFAULTS, **unit(number)}  # noqa: E731 - one line says it
            yield f"{field} {name}", {"containers": [CONTAINERS["bare"](0)], field: _filled(served, room)}
    for name, unit in SPEC_LISTS.items():
        spec: JSONObject = {"containers": [CONTAINERS["bad"](0)]}
        _put(spec, name, _filled(unit, room - 300))
        yield name, spec
    for text in TEXTS:
        long = text * (room // (len(orjson.dumps(text)) - 2))
        yield f"image of {text!r}", {"containers": [{"name": "c", "image": long}]}
        yield f"name of {text!r}", {"containers": [{"name": long, "image": "i"}]}


def _put(spec: JSONObject, name: str, value: list[Any]) -> None:
    if name in ("sysctls", "supplementalGroups"):
        spec["securityContext"] = {name: value}
    else:
        spec[name] = value


def _decorated(kind: str, made: JSONObject, size: int) -> Iterator[tuple[str, JSONObject]]:
    room = size - 900
    many = {f"k{number}": "v" for number in range(room // 13)}
    deep: Any = "x"
    for _ in range(min(room // 8, 150)):
        deep = {"a": deep}
    for where in ("labels", "annotations"):
        yield f"{kind} many {where}", {**made, "metadata": {**_metadata(), where: many}}
        for text in TEXTS:
            long = text * (room // (len(orjson.dumps(text)) - 2))
            yield f"{kind} {where} of {text!r}", {**made, "metadata": {**_metadata(), where: {"app": long}}}
    yield f"{kind} deep", {**made, "extra": [deep] * max(1, room // 1000)}
    yield (
        f"{kind} owners",
        {**made, "metadata": {**_metadata(), "ownerReferences": _filled(lambda _: {"kind": "X"}, room)}},
    )


def _filled(unit: Unit, room: int) -> list[Any]:
    found, used = [], 0
    while True:
        made = unit(len(found))
        used += len(orjson.dumps(made)) + 1
        if used > room:
            return found or [made]
        found.append(made)


def _metadata() -> JSONObject:
    return {"name": "o", "namespace": "default"}


def _pod(spec: JSONObject) -> JSONObject:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": _metadata(), "spec": {"hostNetwork": True, **spec}}


def _workload(kind: str, version: str, spec: JSONObject) -> JSONObject:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": spec}
    inner = {"jobTemplate": {"spec": {"template": template}}} if kind == "CronJob" else {"template": template}
    return {"apiVersion": version, "kind": kind, "metadata": _metadata(), "spec": inner}
