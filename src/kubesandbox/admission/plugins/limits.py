"""LimitRanger: defaults for containers without resources, and bounds for those that set them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kubesandbox.admission.plugins.pods import each_container, is_pod_write, pod_spec
from kubesandbox.admission.plugins.usage import Amounts, amounts_of, container_amounts, pod_amounts
from kubesandbox.admission.policies.requests import refused
from kubesandbox.attributes import Attributes
from kubesandbox.view import ClusterView
from pyverno.engine.request import Operation
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.quantity import Quantity

__all__ = ["admit_limits", "check_limits"]

_ANNOTATION = "kubernetes.io/limit-ranger"


def admit_limits(attributes: Attributes, cluster: ClusterView) -> Attributes:
    """Return the request with the default requests and limits of its namespace in its containers."""
    if not is_pod_write(attributes, Operation.CREATE):
        return attributes
    for limit_range in _ranges(attributes, cluster):
        attributes = _with_defaults(attributes, limit_range)
    return attributes


def check_limits(attributes: Attributes, cluster: ClusterView) -> None:
    """Raise 403 for a pod or a claim outside of the bounds of its namespace."""
    is_pod = is_pod_write(attributes, Operation.CREATE)
    is_claim = attributes.type.key == "persistentvolumeclaims" and not attributes.subresource
    if not (is_pod or (is_claim and attributes.operation in (Operation.CREATE, Operation.UPDATE))):
        return
    spec = pod_spec(attributes)
    for limit_range in _ranges(attributes, cluster):
        problems = [
            problem
            for limit in _limits(limit_range)
            for problem in (_pod_problems(limit, spec) if is_pod else _claim_problems(limit, spec))
        ]
        if problems:
            unique = list(dict.fromkeys(problems))
            raise refused(attributes, unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]")


def _ranges(attributes: Attributes, cluster: ClusterView) -> list[JSONObject]:
    return [stored.body for stored in cluster.all("limitranges", attributes.namespace)]


def _limits(limit_range: JSONObject) -> Iterable[JSONObject]:
    found: JSON = (limit_range.get("spec") or {}).get("limits")
    return [each for each in found or () if isinstance(each, dict)]


def _with_defaults(attributes: Attributes, limit_range: JSONObject) -> Attributes:
    limits: JSONObject = {}
    requests: JSONObject = {}
    for limit in _limits(limit_range):
        if limit.get("type") == "Container":
            limits |= limit.get("default") or {}
            requests |= limit.get("defaultRequest") or {}
    if not (limits or requests):
        return attributes
    told: list[str] = []
    spec = pod_spec(attributes)
    init_names = {id(each) for each in spec.get("initContainers") or ()}

    def filled(container: JSONObject) -> JSONObject:
        resources = container.get("resources") or {}
        kind = "init container" if id(container) in init_names else "container"
        changed = dict(resources)
        for key, word, defaults in (("requests", "request", requests), ("limits", "limit", limits)):
            missing = {name: value for name, value in defaults.items() if name not in (resources.get(key) or {})}
            if missing:
                changed[key] = {**(resources.get(key) or {}), **missing}
                told.append(f"{', '.join(sorted(missing))} {word} for {kind} {container.get('name', '')}")
        return {**container, "resources": changed} if changed != resources else container

    changed_spec = each_container(spec, filled)
    if not told:
        return attributes
    body = attributes.object or {}
    metadata = body.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), _ANNOTATION: f"LimitRanger plugin set: {'; '.join(told)}"}
    return attributes.with_object({**body, "metadata": {**metadata, "annotations": annotations}, "spec": changed_spec})


def _pod_problems(limit: JSONObject, spec: JSONObject) -> Iterator[str]:
    kind = limit.get("type")
    if kind == "Container":
        for listed in ("containers", "initContainers"):
            for container in spec.get(listed) or ():
                requests, limits = (container_amounts(container, each) for each in ("requests", "limits"))
                yield from _problems("Container", limit, requests, limits)
    elif kind == "Pod":
        yield from _problems("Pod", limit, pod_amounts(spec, "requests"), pod_amounts(spec, "limits"))


def _claim_problems(limit: JSONObject, spec: JSONObject) -> Iterator[str]:
    if limit.get("type") != "PersistentVolumeClaim":
        return
    requests = container_amounts(spec, "requests")
    for name, bound in amounts_of(limit.get("min")).items():
        yield from _below("PersistentVolumeClaim", name, bound, requests, {})
    for name, bound in amounts_of(limit.get("max")).items():
        text = f"maximum {name} usage per PersistentVolumeClaim is {bound}"
        if name not in requests:
            yield f"{text}.  No request is specified"
        elif bound < requests[name]:
            yield f"{text}, but request is {requests[name]}"


def _problems(kind: str, limit: JSONObject, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, bound in amounts_of(limit.get("min")).items():
        yield from _below(kind, name, bound, requests, limits)
    for name, bound in amounts_of(limit.get("max")).items():
        yield from _above(kind, name, bound, requests, limits)
    for name, bound in amounts_of(limit.get("maxLimitRequestRatio")).items():
        yield from _out_of_ratio(kind, name, bound, requests, limits)


def _below(
    kind: str, name: str, bound: Quantity, requests: Mapping[str, Quantity], limits: Mapping[str, Quantity]
) -> Iterator[str]:
    text = f"minimum {name} usage per {kind} is {bound}"
    if name not in requests:
        yield f"{text}.  No request is specified"
    elif requests[name] < bound:
        yield f"{text}, but request is {requests[name]}"
    elif name in limits and limits[name] < bound:
        yield f"{text}, but limit is {limits[name]}"


def _above(
    kind: str, name: str, bound: Quantity, requests: Mapping[str, Quantity], limits: Mapping[str, Quantity]
) -> Iterator[str]:
    text = f"maximum {name} usage per {kind} is {bound}"
    if name not in limits:
        yield f"{text}.  No limit is specified"
    elif bound < limits[name]:
        yield f"{text}, but limit is {limits[name]}"
    elif name in requests and bound < requests[name]:
        yield f"{text}, but request is {requests[name]}"


def _out_of_ratio(
    kind: str, name: str, bound: Quantity, requests: Mapping[str, Quantity], limits: Mapping[str, Quantity]
) -> Iterator[str]:
    text = f"{name} max limit to request ratio per {kind} is {bound}"
    if name not in requests or not requests[name].sign():
        yield f"{text}, but no request is specified or request is 0"
    elif name not in limits or not limits[name].sign():
        yield f"{text}, but no limit is specified or limit is 0"
    else:
        ratio = limits[name].value / requests[name].value
        if ratio > bound.value:
            yield f"{text}, but provided ratio is {float(ratio):f}"
