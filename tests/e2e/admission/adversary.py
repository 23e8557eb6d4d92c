"""Adversarial reviews, at most one mebibyte each, that any user with the right to create pods can trigger.

Each number yields a different review; simple rules generate the bodies, so that they are cheap to build. This module
must never send a request to a webhook.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pyverno.kube.json import JSON, JSONObject

__all__ = ["SHAPES", "adversarial", "large"]

MOST_BYTES: Final = 1024 * 1024


def _container(number: int, **more: Any) -> JSONObject:
    return {
        "name": f"c{number}",
        "image": f"registry.example.com/team-{number % 7}/app-{number}:1.{number}",
        "env": [{"name": f"E{each}", "value": f"v{number}-{each}"} for each in range(3)],
        "resources": {"limits": {"cpu": f"{number}m", "memory": f"{number}Mi"}, "requests": {"cpu": "1"}},
        "securityContext": {
            "capabilities": {"add": ["NET_ADMIN", "*"], "drop": ["ALL"]},
            "privileged": number % 2 == 0,
        },
        **more,
    }


def _pod(name: str, spec: JSONObject, **metadata: Any) -> JSONObject:
    where = {"name": name, "namespace": "default", **metadata}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": where, "spec": {"containers": [_container(0)], **spec}}


def _deep(levels: int) -> JSON:
    found: JSON = {"x": "y"}
    for number in range(levels):
        found = {"matchExpressions": [found]} if number % 2 else {"preference": found}
    return found


def _containers(count: int) -> Callable[[str], JSONObject]:
    return lambda name: _pod(name, {"containers": [_container(each, env=[]) for each in range(count)]})


def _controlled(name: str) -> JSONObject:
    pod = _pod(name, {"containers": [_container(each) for each in range(600)]})
    template = {"metadata": {"labels": {"a": name}}, "spec": pod["spec"]}
    spec = {"replicas": 10**15, "selector": {"matchLabels": {"a": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": pod["metadata"], "spec": spec}


def _scheduled(name: str) -> JSONObject:
    job = {"spec": {"template": {"spec": _pod(name, {"initContainers": [_container(n) for n in range(500)]})["spec"]}}}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": {"jobTemplate": job}}


SHAPES: Final[Mapping[str, Callable[[str], JSONObject]]] = {
    "200 containers": _containers(200),
    "1000 containers": _containers(1000),
    "deployment": _controlled,
    "cron job": _scheduled,
    "long image": lambda name: _pod(name, {"containers": [_container(0, image="a/" * 200_000 + name)]}),
    "long texts": lambda name: _pod(name, {"containers": [_container(n, image="x" * 9_000) for n in range(90)]}),
    "labels": lambda name: _pod(name, {}, labels={f"l{n}.{name}/a": f"v{n}" for n in range(20_000)}),
    "annotations": lambda name: _pod(name, {}, annotations={f"a{n}": "{{request.object}}*?" for n in range(15_000)}),
    "wildcards": lambda name: _pod(
        name,
        {"containers": [_container(n, image="*?" * 2_000, args=["?*" * 2_000, "*a" * 500]) for n in range(60)]},
        labels={"app": "*?" * 16_000, "b": "a" * 16_000},
    ),
    "deep": lambda name: _pod(name, {"affinity": _deep(4_000)}),
    "very deep": lambda name: _pod(name, {"affinity": _deep(6_400)}),
    "huge numbers": lambda name: _pod(
        name,
        {
            "containers": [
                _container(
                    n,
                    ports=[{"containerPort": 10**18 + n, "hostPort": 2**63 - 1 - n}],
                    resources={
                        "limits": {"cpu": "9" * 500, "memory": "1e400", "a": 1.7e308},
                        "requests": {"cpu": "-0"},
                    },
                )
                for n in range(400)
            ],
            "priority": 10**19,
        },
    ),
    "many numbers": lambda name: _pod(name, {"securityContext": {"supplementalGroups": [10**19, *range(120_000)]}}),
    "unicode": lambda name: _pod(
        name,
        {"containers": [_container(n, image="é\u0301🜁\u202e" * 120 + "\ud800") for n in range(120)]},
        labels={"ß" * 100: "İ" * 30_000},
    ),
    "volumes": lambda name: _pod(
        name, {"volumes": [{"name": f"v{n}", "hostPath": {"path": "/" + "a/" * 40}} for n in range(6_000)]}
    ),
    "ports": lambda name: _pod(
        name, {"containers": [_container(0, ports=[{"hostPort": n, "containerPort": n} for n in range(20_000)])]}
    ),
    "capabilities": lambda name: _pod(
        name,
        {
            "containers": [
                _container(n, securityContext={"capabilities": {"add": [f"C{each}" for each in range(400)]}})
                for n in range(150)
            ]
        },
    ),
    "tolerations": lambda name: _pod(
        name, {"tolerations": [{"key": f"k{n}", "operator": "Exists", "effect": "NoSchedule"} for n in range(12_000)]}
    ),
}
_RESOURCES: Final = {"Pod": ("", "v1", "pods"), "Deployment": ("apps", "v1", "deployments")} | {
    "CronJob": ("batch", "v1", "cronjobs")
}


def adversarial(shape: str, number: int) -> bytes:
    """Return the review of a shape: creations, and changes of another object of the shape where both fit."""
    body = _review(SHAPES[shape](f"a{number}"), None, number)
    if number % 2:
        changed = _review(SHAPES[shape](f"a{number}"), SHAPES[shape](f"b{number}"), number)
        body = changed if len(changed) <= MOST_BYTES else body
    assert len(body) <= MOST_BYTES, (shape, len(body))
    return body


def large(number: int, size: int = 1_500_000) -> bytes:
    """Return a review of an ordinary object of about so many bytes."""
    lines = {f"key-{each}": f"value {number} {each} " * 4 for each in range(size // 70)}
    metadata = {"name": f"c{number}", "namespace": "default", "labels": {"app": "a"}}
    pod = _pod(f"c{number}", {"containers": [_container(each) for each in range(50)]})
    return _review({**pod, "metadata": {**metadata, "annotations": lines}}, None, number)


def _review(body: JSONObject, old: JSONObject | None, number: int) -> bytes:
    group, version, plural = _RESOURCES[body["kind"]]
    request = {
        "uid": f"adversary-{number}",
        "kind": {"group": group, "version": version, "kind": body["kind"]},
        "resource": {"group": group, "version": version, "resource": plural},
        "name": body["metadata"]["name"],
        "namespace": "default",
        "operation": "CREATE" if old is None else "UPDATE",
        "userInfo": {"username": "mallory", "groups": ["system:authenticated"]},
        "object": body,
        "oldObject": old,
    }
    whole = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    return _encoded(whole)


def _encoded(value: JSON) -> bytes:
    """Write JSON without recursion, because some bodies are nested deeper than the recursion limit."""
    return "".join(_pieces(value)).encode("utf-8", "surrogatepass")


def _pieces(value: JSON) -> Iterator[str]:
    left: list[JSON | _Raw] = [value]
    while left:
        item = left.pop()
        if isinstance(item, _Raw):
            yield item.text
        elif isinstance(item, dict) and item:
            left.append(_Raw("}"))
            for place, (key, each) in reversed(list(enumerate(item.items()))):
                left += (each, _Raw(("," if place else "{") + json.dumps(key) + ":"))
        elif isinstance(item, list) and item:
            left.append(_Raw("]"))
            for place, each in reversed(list(enumerate(item))):
                left += (each, _Raw("," if place else "["))
        else:
            yield json.dumps(item)


class _Raw:
    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text
