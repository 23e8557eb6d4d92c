"""The scale subresource: a small object of its own kind through which the number of replicas is read and changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from kubesandbox.apiserver import ApiServer
from kubesandbox.objects.identity import check_name, check_uid, check_version
from kubesandbox.objects.metadata import metadata_of, with_metadata
from kubesandbox.objects.subresources import scale_of, scaled
from kubesandbox.types.resources import ResourceType
from kubesandbox.writes import Outcome, Write
from pyverno.engine.request import Operation
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSONObject
from pyverno.kube.status import FieldError, invalid

__all__ = ["SCALE", "get_scale", "update_scale"]

SCALE = GVK("autoscaling", "v1", "Scale")


async def get_scale(server: ApiServer, type: ResourceType, namespace: str, name: str) -> JSONObject:
    """Return the Scale of an object; raises StatusError 404."""
    body = await server.in_version(type, server.get(type, namespace, name).body)
    return scale_of(type, body, _paths(server, type))


async def update_scale(server: ApiServer, write: Write, change: Callable[[JSONObject], JSONObject]) -> Outcome:
    """Replace the present Scale by the result of `change`; admission judges the Scale."""
    type = write.type
    paths = _paths(server, type)

    async def make(current: JSONObject) -> tuple[JSONObject, bool]:
        before = scale_of(type, current, paths)
        managed = with_metadata(before, managedFields=_managed(current, paths) or None)
        after = server.schemas.decode(type, change(managed), subresource="scale").body
        metadata = metadata_of(after)
        check_name(metadata.get("name"), write.name)
        check_uid(type, current, metadata.get("uid"))
        version = metadata.get("resourceVersion") or ""
        is_new = version != metadata_of(current).get("resourceVersion")
        is_pinned = check_version(type, current, version) and is_new
        after = server.tracked(write, SCALE, after, before=managed)
        attributes = replace(write.attributes(Operation.UPDATE, after, managed), kind=SCALE)
        after = await server.mutated(attributes, write.notes)
        _check(after)
        changed = scaled(current, after, paths)
        # Kubernetes: admission sees the Scale that the object is going to have
        judged = replace(attributes, object=scale_of(type, changed, paths), old=before)
        await server.admission.validate(judged, write.notes)
        return changed, is_pinned

    outcome = await server.rewritten(write, make, is_admitted=True)
    return Outcome(scale_of(type, outcome.body, paths), outcome.status)


def _managed(body: JSONObject, paths: Mapping[str, str] | None) -> list[JSONObject]:
    """Return the managers of the number of replicas, as the managed fields of a Scale."""
    steps = (paths["specReplicasPath"] if paths else ".spec.replicas").strip(".").split(".")
    found: list[JSONObject] = []
    for entry in metadata_of(body).get("managedFields") or ():
        fields = entry.get("fieldsV1")
        for step in steps:
            fields = fields.get(f"f:{step}") if isinstance(fields, dict) else None
        if fields is not None:
            found.append({**entry, "apiVersion": SCALE.api_version, "fieldsV1": {"f:spec": {"f:replicas": {}}}})
    return found


def _check(scale: JSONObject) -> None:
    replicas = (scale.get("spec") or {}).get("replicas") or 0
    if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 0:
        why = FieldError("spec.replicas", "Invalid value", "must be greater than or equal to 0", str(replicas))
        raise invalid("autoscaling", "Scale", metadata_of(scale).get("name", ""), [why])


def _paths(server: ApiServer, type: ResourceType) -> Mapping[str, str] | None:
    crd = server.definition_of(type)
    if crd is None:
        return None
    version = next(item for item in crd["spec"]["versions"] if item["name"] == type.version)
    found: Mapping[str, str] = version["subresources"]["scale"]
    return found
