"""Objects in other versions of their resource: by what is built in, by their definition, or by its webhook.

What a definition's version does not know is left out on the way to it. Failures are StatusErrors 500 with Kubernetes'
texts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kubesandbox.admission.webhooks.caller import CallError, WebhookCaller
from kubesandbox.admission.webhooks.hooks import ClientConfig
from kubesandbox.objects.metadata import metadata_errors, metadata_of
from kubesandbox.parsing.requests import go_quote
from kubesandbox.types.conversion import to_version
from kubesandbox.types.resources import ResourceType
from pyverno.kube.json import JSON, JSONObject, dump
from pyverno.kube.status import StatusError

if TYPE_CHECKING:
    from kubesandbox.schema.schemas import ObjectSchemas

__all__ = ["Converter"]

_GROUP: Final = "apiextensions.k8s.io"
_KIND: Final = "ConversionReview"
_VERSIONS: Final = ("v1", "v1beta1")
_TIMEOUT_SECONDS: Final = 30
_SAME: Final = (("name", "name"), ("namespace", "namespace"), ("uid", "UID"))


class Converter:
    """Converts objects of all types; remembers nothing."""

    def __init__(
        self,
        definition_of: Callable[[ResourceType], JSONObject | None],
        schemas: Callable[[], ObjectSchemas],
        caller: WebhookCaller,
        make_id: Callable[[], str],
    ) -> None:
        """Take the definitions and schemas, the caller of webhooks, and the source of uids for reviews."""
        self._definition_of = definition_of
        self._schemas = schemas
        self._caller = caller
        self._make_id = make_id

    async def one(self, type: ResourceType, body: JSONObject) -> JSONObject:
        """Return an object in the version of a type; raises StatusError 500 when its webhook does not convert it."""
        if not type.is_custom or body.get("apiVersion") == type.api_version:
            return to_version(type, body)
        if not type.converts_by_webhook:
            return self._drop_unknown_fields(type, to_version(type, body))
        (converted,) = await self._call_webhook(type, [body], is_list=False)
        return converted

    async def all(self, type: ResourceType, bodies: Sequence[JSONObject]) -> list[JSONObject]:
        """Return objects in the version of a type, with one webhook call for all; raises StatusError 500."""
        if not type.converts_by_webhook:
            return [await self.one(type, body) for body in bodies]
        others = [body for body in bodies if body.get("apiVersion") != type.api_version]
        if not others:
            return list(bodies)
        converted = iter(await self._call_webhook(type, others, is_list=True))
        return [body if body.get("apiVersion") == type.api_version else next(converted) for body in bodies]

    def _drop_unknown_fields(self, type: ResourceType, body: JSONObject) -> JSONObject:
        """Leave out what the version of a type does not know."""
        schema = self._schemas().custom(type)
        return schema.prune(body, []) if schema is not None else body

    async def _call_webhook(self, type: ResourceType, bodies: list[JSONObject], *, is_list: bool) -> list[JSONObject]:
        crd = self._definition_of(type)
        webhook = ((crd or {}).get("spec") or {}).get("conversion", {}).get("webhook") or {}
        version = next((each for each in webhook.get("conversionReviewVersions") or () if each in _VERSIONS), "")
        if not version:
            raise _failed("no supported conversion review versions")
        what = f"conversion webhook for {_format_kind(type, bodies[0], is_list=is_list)}"
        uid = self._make_id()
        review: JSONObject = {
            "kind": _KIND,
            "apiVersion": f"{_GROUP}/{version}",
            "request": {"uid": uid, "desiredAPIVersion": type.api_version, "objects": bodies},
        }
        client = ClientConfig.of(webhook.get("clientConfig") or {})
        try:
            body = await self._caller.call(client, dump(review), timeout=_TIMEOUT_SECONDS, expected=(_GROUP, _KIND))
            found = _objects(body, uid=uid, version=version)
        except (CallError, _BadReviewError) as error:
            raise _failed(f"{what} failed: {error.message}") from None
        if len(found) != len(bodies):
            raise _failed(f"{what} returned {len(found)} objects, expected {len(bodies)}")
        place = "converted object at index {}" if is_list else "object at index 0"
        return [
            self._drop_unknown_fields(
                type, _check_converted(type, before, after, what, place.format(index), is_list=is_list)
            )
            for index, (before, after) in enumerate(zip(bodies, found, strict=True))
        ]


class _BadReviewError(CallError):
    """A webhook answered what no conversion webhook may answer."""


def _failed(text: str) -> StatusError:
    # upstream: an error that is no Status of its own
    return StatusError(500, "", text)


def _format_kind(type: ResourceType, body: JSONObject, *, is_list: bool) -> str:
    """Format the converted kind as Go prints it; a list already has the requested version."""
    if is_list:
        return f"{type.api_version}, Kind={type.list_kind}"
    return f"{body.get('apiVersion')}, Kind={body.get('kind')}"


def _objects(body: JSONObject, *, uid: str, version: str) -> list[JSON]:
    """Read the objects out of an answer; raises _BadReviewError."""
    response = body.get("response")
    if version == "v1":
        said = (str(body.get("apiVersion") or ""), str(body.get("kind") or ""))
        if said[0].startswith(f"{_GROUP}/") and said[0] != f"{_GROUP}/v1":
            # Kubernetes: the decoder fails before the response is evaluated
            other = said[0].rpartition("/")[2]
            raise _BadReviewError(f"converting ({other}.{_KIND}) to (v1.{_KIND}): unknown conversion")
        if said != (f"{_GROUP}/v1", _KIND):
            got = f"{said[0] or '/'}, Kind={said[1]}"
            raise _BadReviewError(f"expected webhook response of {_GROUP}/v1, Kind={_KIND}, got {got}")
    if not isinstance(response, dict):
        raise _BadReviewError("no response provided")
    if version == "v1" and response.get("uid", "") != uid:
        got = go_quote(str(response.get("uid", "")))
        raise _BadReviewError(f"expected response.uid={go_quote(uid)}, got {got}")
    result: JSON = response.get("result")
    result = result if isinstance(result, dict) else {}
    if result.get("status") != "Success":
        status = result.get("status") or ""
        raise _BadReviewError(str(result.get("message") or f"response.result.status was '{status}', not 'Success'"))
    objects = response.get("convertedObjects")
    return objects if isinstance(objects, list) else []


def _check_converted(
    type: ResourceType, before: JSONObject, after: JSON, what: str, place: str, *, is_list: bool
) -> JSONObject:
    """Return a converted object with the metadata of the original but for labels and annotations."""
    after = after if isinstance(after, dict) else {}
    got = str(after.get("apiVersion") or "")
    if got != type.api_version:
        why = f"invalid groupVersion (expected {type.api_version}, received {got})"
        raise _failed(f"{what} returned invalid {place}: {why}")
    if after.get("kind") != before.get("kind"):
        why = f"invalid kind (expected {before.get('kind')}, received {after.get('kind') or ''})"
        raise _failed(f"{what} returned invalid {place}: {why}")
    old, new = metadata_of(before), after.get("metadata")
    at = f" {place.removeprefix('converted ')}" if is_list else ""
    for key, name in _SAME:
        expected, found = old.get(key) or "", (new if isinstance(new, dict) else {}).get(key) or ""
        if expected != found:
            where = f"invalid {place}" if is_list else "invalid object"
            raise _failed(f"{what} returned {where}: must have the same {name}: {expected} != {found}")
    try:
        return {**after, "metadata": _metadata(old, after)}
    except _BadReviewError as error:
        raise _failed(f"{what} returned invalid metadata{f' in{at}' if at else ''}: {error.message}") from None


def _metadata(old: JSONObject, after: JSONObject) -> JSONObject:
    if "metadata" not in after:
        raise _BadReviewError("missing metadata in converted object")
    new = after["metadata"]
    if not isinstance(new, dict):
        raise _BadReviewError(f"invalid metadata of type {_go_type(new)} in converted object")
    kept = {key: value for key, value in old.items() if key not in ("labels", "annotations")}
    for key in ("labels", "annotations"):
        found = new.get(key)
        if found is None:
            continue
        if not isinstance(found, dict):
            raise _BadReviewError(f"invalid metadata.{key} of type {_go_type(found)} in converted object")
        for name, value in found.items():
            if not isinstance(value, str):
                text = f"must be a string, but is {_go_type(value)} in converted object"
                raise _BadReviewError(f"metadata.{key}[{name}] {text}")
        problems = _problems(key, found) if found != old.get(key) else []
        if problems:
            raise _BadReviewError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
        kept[key] = found
    return kept


def _problems(key: str, found: JSONObject) -> list[str]:
    errors = metadata_errors({"metadata": {key: found}})
    # upstream names the annotations in the singular here
    path = "metadata.annotation" if key == "annotations" else "metadata.labels"
    return list(dict.fromkeys(str(replace(error, field=path)) for error in errors))


def _go_type(value: JSON) -> str:
    names: dict[type, str] = {str: "string", bool: "bool", int: "int64", float: "float64", list: "[]interface {}"}
    return names.get(type(value), "map[string]interface {}") if value is not None else "<nil>"
