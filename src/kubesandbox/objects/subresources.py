"""Subresources: the fields of an object that each may change, and the other kinds that some take and give."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kubesandbox.objects.metadata import metadata_of, with_metadata
from kubesandbox.types.resources import ResourceType
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.status import StatusError, bad_request, not_found

__all__ = ["bound", "is_partial", "only_allowed", "scale_of", "scaled"]

_Change = Callable[[JSONObject, JSONObject], JSONObject]


def is_partial(type: ResourceType, subresource: str) -> bool:
    """Return whether a subresource, other than the common `status`, lets only a part of its object change."""
    return f"{type.plural}/{subresource}" in _CHANGES


def only_allowed(type: ResourceType, subresource: str, new: JSONObject, old: JSONObject) -> JSONObject:
    """Return the old object with nothing changed but what belongs to the subresource.

    >>> from kubesandbox.types.resources import builtin_table
    >>> namespaces = builtin_table("1.35").find("", "v1", "namespaces")
    >>> new = {"metadata": {"name": "a"}, "spec": {"finalizers": []}, "status": {}}
    >>> only_allowed(namespaces, "finalize", new, {"metadata": {"name": "a"}, "spec": {"finalizers": ["kubernetes"]}})
    {'metadata': {'name': 'a'}, 'spec': {'finalizers': []}}
    """
    return _CHANGES[f"{type.plural}/{subresource}"](new, old)


def _with_field(body: JSONObject, source: JSONObject, field: str) -> JSONObject:
    rest = {key: value for key, value in body.items() if key != field}
    return {**rest, field: source[field]} if field in source else rest


def _finalize(new: JSONObject, old: JSONObject) -> JSONObject:
    spec = _with_field(old.get("spec") or {}, new.get("spec") or {}, "finalizers")
    return {**old, "metadata": new["metadata"], "spec": spec}


def _ephemeral_containers(new: JSONObject, old: JSONObject) -> JSONObject:
    spec = _with_field(old["spec"], new.get("spec") or {}, "ephemeralContainers")
    return {**old, "metadata": new["metadata"], "spec": spec}


def _resize(new: JSONObject, old: JSONObject) -> JSONObject:
    spec = dict(old["spec"])
    for field in ("containers", "initContainers"):
        wanted = {item.get("name"): item for item in (new.get("spec") or {}).get(field) or ()}
        if field in spec:
            spec[field] = [_resize_container(item, wanted.get(item["name"], item)) for item in spec[field]]
    return {**old, "metadata": new["metadata"], "spec": spec}


def _resize_container(container: JSONObject, wanted: JSONObject) -> JSONObject:
    for field in ("resources", "resizePolicy"):
        container = _with_field(container, wanted, field)
    return container


def _approval(new: JSONObject, old: JSONObject) -> JSONObject:
    status = _with_field(old.get("status") or {}, new.get("status") or {}, "conditions")
    return {**old, "metadata": new["metadata"], "status": status}


_CHANGES: Mapping[str, _Change] = {
    "namespaces/finalize": _finalize,
    "pods/ephemeralcontainers": _ephemeral_containers,
    "pods/resize": _resize,
    "certificatesigningrequests/approval": _approval,
}


# ── scale ────────────────────────────────────────────────────────────────────────────────────────────────────────────

_SCALE_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(type: ResourceType, body: JSONObject, paths: Mapping[str, str] | None = None) -> JSONObject:
    """Return the Scale of an object; `paths` are those of the definition of a custom resource.

    >>> from kubesandbox.types.resources import builtin_table
    >>> sets = builtin_table("1.35").find("apps", "v1", "replicasets")
    >>> scale_of(sets, {"metadata": {"name": "a"}, "spec": {"replicas": 2}})["spec"]
    {'replicas': 2}
    """
    metadata = {key: value for key in _SCALE_METADATA if (value := metadata_of(body).get(key)) is not None}
    spec_path, status_path, selector_path = _scale_paths(paths)
    wanted = _at(body, spec_path)
    if wanted is None and paths is not None:
        raise not_found(type.group, type.plural, metadata.get("name", ""))
    status: JSONObject = {"replicas": _at(body, status_path) or 0}
    selector = _selector_text(_at(body, selector_path) if selector_path else None)
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {"replicas": wanted} if wanted else {},
        "status": status,
    }


def scaled(body: JSONObject, scale: JSONObject, paths: Mapping[str, str] | None = None) -> JSONObject:
    """Return an object with the number of replicas that a Scale wants."""
    steps = _steps(_scale_paths(paths)[0])
    wanted = (scale.get("spec") or {}).get("replicas") or 0
    return _set(body, steps, wanted)


def _scale_paths(paths: Mapping[str, str] | None) -> tuple[str, str, str]:
    if paths is None:
        return ".spec.replicas", ".status.replicas", ".spec.selector"
    return paths["specReplicasPath"], paths["statusReplicasPath"], paths.get("labelSelectorPath", "")


def _steps(path: str) -> list[str]:
    return path.strip(".").split(".")


def _at(body: JSON, path: str) -> JSON:
    for step in _steps(path):
        body = body.get(step) if isinstance(body, dict) else None
    return body


def _set(body: JSONObject, steps: list[str], value: JSON) -> JSONObject:
    first, *rest = steps
    inner = body.get(first)
    return {**body, first: _set(inner if isinstance(inner, dict) else {}, rest, value) if rest else value}


def _selector_text(selector: JSON) -> str:
    """Write a selector (a map of labels, a LabelSelector or a text) as one text."""
    if isinstance(selector, str):
        return selector
    if not isinstance(selector, dict):
        return ""
    if not {"matchLabels", "matchExpressions"} & selector.keys():
        selector = {"matchLabels": selector}
    parts = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    for term in selector.get("matchExpressions") or ():
        key, values = term.get("key", ""), f"({','.join(sorted(term.get('values') or ()))})"
        match term.get("operator"):
            case "In":
                parts.append(f"{key} in {values}")
            case "NotIn":
                parts.append(f"{key} notin {values}")
            case "Exists":
                parts.append(key)
            case _:
                parts.append(f"!{key}")
    return ",".join(sorted(parts))


# ── binding ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def bound(pod: JSONObject, binding: JSONObject, now: str) -> JSONObject:
    """Return a pod that a Binding puts on a node; raises StatusError 400 and 409."""
    metadata, spec = metadata_of(pod), pod["spec"]
    name = metadata.get("name", "")
    if metadata_of(binding).get("name") != name:
        raise bad_request("name in URL does not match name in Binding object")
    target = (binding.get("target") or {}).get("name") or ""
    text = ""
    if metadata.get("deletionTimestamp"):
        text = f"pod {name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        text = f"pod {name} is already assigned to node {go_text(spec['nodeName'])}"
    if text:
        message = f'Operation cannot be fulfilled on pods/binding "{name}": {text}'
        raise StatusError(409, "Conflict", message, kind="pods/binding", name=name)
    condition = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    status: JSONObject = pod.get("status") or {}
    others = [item for item in status.get("conditions") or () if item.get("type") != "PodScheduled"]
    annotations = metadata_of(binding).get("annotations") or {}
    if annotations:
        pod = with_metadata(pod, annotations={**(metadata.get("annotations") or {}), **annotations})
    return {**pod, "spec": {**spec, "nodeName": target}, "status": {**status, "conditions": [*others, condition]}}


def go_text(text: str) -> str:
    """Write a text in quotes."""
    return f'"{text}"'
