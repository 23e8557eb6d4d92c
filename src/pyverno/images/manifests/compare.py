"""The difference between an object and a manifest: paths of leaves that differ and are not ignored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from pyverno.images.manifests.signed import DEFAULT_DOMAIN
from pyverno.kube.json import JSON, JSONObject, equal
from pyverno.kube.wildcard import compile_wildcard
from pyverno.value import dataclass

__all__ = ["IgnoredFields", "difference", "same_object", "signature_fields"]

_EVERYWHERE: Final = (
    "status",
    *(
        f"metadata.{name}"
        for name in ("creationTimestamp", "finalizers*", "generation", "managedFields.*", "resourceVersion")
    ),
    *(f"metadata.{name}" for name in ("selfLink", "uid", "annotations.namespace")),
    *("metadata.labels.app.kubernetes.io/instance", "metadata.annotations.deployment.kubernetes.io/revision"),
    "metadata.annotations.control-plane.alpha.kubernetes.io/leader",
    "metadata.annotations.deprecated.daemonset.template.generation",
    "metadata.annotations.kubectl.kubernetes.io/last-applied-configuration",
    *(f"spec.{name}" for name in ("dnsPolicy", "restartPolicy", "schedulerName", "terminationGracePeriodSeconds")),
    *(
        f"spec.containers.*.{name}"
        for name in ("imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy")
    ),
)
_OF_KIND: Final[Mapping[str, Sequence[str]]] = {
    "Pod": (
        *("spec.volumes.*.name", "spec.volumes.*.projected.*", "spec.volumes.*.configMap.defaultMode"),
        *("spec.containers.*.volumeMounts.*", "spec.tolerations.*", "spec.enableServiceLinks"),
        *("spec.preemptionPolicy", "spec.priority", "spec.serviceAccount"),
    ),
    "Deployment": (
        *("spec.progressDeadlineSeconds", "spec.revisionHistoryLimit", "spec.strategy.*"),
        *("spec.template.metadata.creationTimestamp", "spec.containers.*.ports.*.protocol"),
        *("spec.containers.*.resources", "spec.securityContext"),
    ),
    "CustomResourceDefinition": ("spec.conversion.strategy", "spec.names.listKind"),
    "Service": (
        *("spec.ports.*.nodePort", "spec.clusterIP", "spec.clusterIPs.0", "spec.sessionAffinity", "spec.type"),
        *("spec.ipFamilies.*", "spec.ipFamilyPolicy", "spec.internalTrafficPolicy"),
    ),
    "ClusterPolicy": ("spec.failurePolicy", "spec.background", "spec.validationFailureAction"),
    "Policy": ("spec.failurePolicy", "spec.background", "spec.validationFailureAction"),
    "ServiceAccount": ("secrets.*.name", "imagePullSecrets.*.name"),
}
"""Fields that API servers and controllers fill in, as Kyverno ignores them."""


@dataclass(frozen=True, slots=True)
class IgnoredFields:
    """Patterns of dotted paths, for objects that group, version, kind, namespace and name select by wildcards."""

    fields: tuple[str, ...]
    objects: tuple[Mapping[str, str], ...]

    def selects(self, resource: JSONObject) -> bool:
        """Return whether the patterns apply to an object."""
        metadata = resource.get("metadata") or {}
        group, _, version = str(resource.get("apiVersion") or "").rpartition("/")
        found = {
            "group": group,
            "version": version,
            "kind": str(resource.get("kind") or ""),
            "name": str(metadata.get("name") or ""),
            "namespace": str(metadata.get("namespace") or ""),
        }
        return any(
            all(not pattern or compile_wildcard(pattern)(found.get(key, "")) for key, pattern in each.items())
            for each in self.objects
        )


def signature_fields(domain: str) -> Sequence[str]:
    """Return the patterns of the annotations that hold signatures."""
    names = ("message", "signature", "signature_*", "certificate", "certificate_*", "bundle", "bundle_*")
    return [f"metadata.annotations.{domain or DEFAULT_DOMAIN}/{name}" for name in names]


def same_object(left: JSONObject, right: JSONObject) -> bool:
    """Return whether two documents name the same object; a manifest without a namespace fits every one."""
    if left.get("apiVersion") != right.get("apiVersion") or left.get("kind") != right.get("kind"):
        return False
    first, second = left.get("metadata") or {}, right.get("metadata") or {}
    namespaces = (first.get("namespace"), second.get("namespace"))
    return first.get("name") == second.get("name") and (not all(namespaces) or namespaces[0] == namespaces[1])


def difference(
    manifest: JSONObject, resource: JSONObject, ignored: Sequence[IgnoredFields], domain: str = ""
) -> Sequence[str]:
    """Return the dotted paths at which an object differs from a manifest, without ignored paths.

    >>> difference({"kind": "A", "spec": {"a": 1}}, {"kind": "A", "spec": {"a": 2, "b": 3}}, ())
    ['spec.a', 'spec.b']
    """
    patterns = [*_EVERYWHERE, *_OF_KIND.get(str(resource.get("kind")), ()), *signature_fields(domain)]
    for each in ignored:
        if each.selects(resource):
            patterns.extend(each.fields)
    if not (manifest.get("metadata") or {}).get("namespace"):
        patterns.append("metadata.namespace")
    signed, present = dict(_leaves(manifest, ())), dict(_leaves(resource, ()))
    paths = [path for path in {**signed, **present} if not _same(path, signed, present)]
    skips = _matcher(patterns)
    return sorted(text for path in paths if not skips(text := ".".join(path)))


def _matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return a test of whether one of the patterns selects a path, or a field above it."""
    compiled = [compile_wildcard(text) for each in patterns for text in (each, f"{each}.*")]
    return lambda path: any(matches(path) for matches in compiled)


_Path = tuple[str, ...]


def _leaves(value: JSON, path: _Path) -> Iterator[tuple[_Path, JSON]]:
    """Yield the leaves of a document; empty lists and objects count as missing, because the API server drops them."""
    waiting: list[tuple[_Path, JSON]] = [(path, value)]
    while waiting:
        place, found = waiting.pop()
        if isinstance(found, dict):
            waiting.extend(((*place, str(key)), each) for key, each in found.items())
        elif isinstance(found, list):
            waiting.extend(((*place, str(index)), each) for index, each in enumerate(found))
        elif found is not None:
            yield place, found


def _same(path: _Path, signed: Mapping[_Path, JSON], present: Mapping[_Path, JSON]) -> bool:
    if path not in signed or path not in present:
        return False
    left, right = signed[path], present[path]
    if path[-1] == "image" and isinstance(left, str) and isinstance(right, str):
        return _canonical(left) == _canonical(right)
    return equal(left, right)


def _canonical(image: str) -> str:
    return image.removeprefix("docker.io/").removesuffix(":latest")
