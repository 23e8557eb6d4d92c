"""Confirmation of admission requests by the API server: what lasts after an answer is derived from what it holds.

Anybody who reaches the webhook's port can post a review, and whoever may write UpdateRequests can record one. So a
request only asks a question. Kind, namespace, name, uid and resourceVersion are compared with the stored object, and
the contents are replaced by stored ones: the object as it is, the old object from the history of the API server. A
user counts if the API server would permit the request to that user.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple, TypeVar

from pyverno.cluster.accessreviews import decision_of, question_key, resource_review
from pyverno.cluster.client import Client
from pyverno.engine.origin import uid_of
from pyverno.engine.request import Operation, Request
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.kube.status import StatusError
from pyverno.policy.updaterequest import UNCHANGED
from pyverno.value import dataclass, replace

# trust rows: admission-review

__all__ = ["Evidence", "Finding", "Refuted", "Unprovable", "Unsettled"]

_REVIEWS: Final = GVR("authorization.k8s.io", "v1", "subjectaccessreviews")
_NOT_FOUND: Final = 404
_NO_HISTORY: Final = (400, 403, 405, 410, 504)
"""Answers of an API server that does not show an older version of an object."""

_MAX_STEPS: Final = 8
"""Versions between the claimed one and the present one that are read."""

_SKEW_SECONDS: Final = 660.0
"""Difference of clocks, and the longest time of a creation, within which an object counts as new."""

_MAX_KNOWN: Final = 10_000
_VOUCHED_SECONDS: Final = 10.0
_VERBS: Final[Mapping[Operation, tuple[str, ...]]] = {
    Operation.CREATE: ("create", "patch", "update"),
    Operation.UPDATE: ("update", "patch"),
    Operation.DELETE: ("delete", "deletecollection"),
    Operation.CONNECT: ("create", "get", "update", "patch", "delete"),
}
_VOLATILE: Final = frozenset({"managedFields", "resourceVersion", "generation", "selfLink"})
_SCALE: Final = "scale"

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Refuted:
    """The API server contradicts the request: nothing may follow from it."""

    message: str


@dataclass(frozen=True, slots=True)
class Unsettled:
    """The change of the request is not stored yet; it may come, and `message` says which."""

    message: str
    info: KindInfo
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Unprovable:
    """The API server cannot show all of the request: `request` holds the part that it confirms.

    `is_stored` is False for requests that store nothing (`exec`, evictions, bindings): their contents cannot be read.
    """

    message: str
    request: Request
    is_stored: bool = True


Finding = Request | Unsettled | Refuted | Unprovable
"""A Request is confirmed: its object and old object are those of the API server."""


class _Place(NamedTuple):
    """The object of a request."""

    info: KindInfo
    namespace: str
    name: str

    def __str__(self) -> str:
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.info.kind} `{where}{self.name}`"


class Evidence:
    """Reads what admission requests claim; used in the event loop."""

    def __init__(self, client: Client, kinds: Callable[[], KindTable]) -> None:
        """Take the client and the served kinds."""
        self._client = client
        self._kinds = kinds
        self._named: OrderedDict[str, str] = OrderedDict()
        self._vouched: OrderedDict[bytes, tuple[float, bool]] = OrderedDict()

    async def confirm(
        self, request: Request, *, revision: str = "", began: float | None = None, live: JSONObject | None = None
    ) -> Finding:
        """Compare a request with what the API server holds; `live` is its object if that was just read.

        `revision` is a resource version that was current before the request was answered ("" = unknown): it shows an
        object that is deleted by now. `began` is the time of the request in seconds since 1970: an object that is much
        older was not created by it. Raises HostError, StatusError if the object cannot be read.
        """
        place = self._place(request)
        if isinstance(place, Refuted):
            return place
        if request.dry_run:
            return Refuted("nothing follows from a dry run")
        if not _is_stored(request, place.info):
            return await self._unstored(request, place)
        if request.operation is Operation.CREATE:
            return await self._creation(request, place, began, live)
        if not uid_of(request.old) or not _version(request.old):
            return Refuted(f"the request does not say which version of {place} it changes")
        if request.operation is Operation.DELETE:
            return await self._deletion(request, place, revision)
        return await self._update(request, place, live)

    async def vouch(self, request: Request) -> Refuted | None:
        """Return why a request is not that of its user: one that its user may not send never reached the webhook.

        Raises HostError, StatusError.
        """
        user, gvr = request.user, request.gvr
        if gvr is None or not user.username:
            return None
        info = self._kinds().by_resource(GVR(gvr.group, gvr.version, gvr.resource))
        is_new = request.operation is Operation.CREATE and not request.subresource
        attributes = {
            "group": gvr.group,
            "resource": gvr.resource,
            "subresource": request.subresource,
            "namespace": "" if is_new and info is not None and not info.namespaced else request.namespace,
        }
        name = "" if is_new else request.name
        for verb in _VERBS[request.operation]:
            for named in dict.fromkeys(("", name)):
                if await self._may(request, verb, {**attributes, "name": named}):
                    return None
        what = f"{gvr.resource}/{request.subresource}" if request.subresource else gvr.resource
        what = f"{_VERBS[request.operation][0]} {what}"
        reason = f"user `{user.username}` may not {what}, so did not send the request"
        return Refuted(reason)  # guard: a user sent what the API server permits

    async def _may(self, request: Request, verb: str, attributes: Mapping[str, str]) -> bool:
        key = question_key(request.user, verb, *attributes.values())
        known = self._vouched.get(key)
        now = time.monotonic()
        if known is not None and now - known[0] < _VOUCHED_SECONDS:
            return known[1]
        answer = await self._client.create(_REVIEWS, resource_review(request.user, verb, attributes))
        allowed = decision_of(answer).allowed
        _remember(self._vouched, key, (now, allowed))
        return allowed

    # ------------------------------------------------------------------------------------------------------ operations

    async def _creation(self, request: Request, place: _Place, began: float | None, live: JSONObject | None) -> Finding:
        if live is None:
            live = await (self._read(place) if place.name else self._find_named(request, place, began))
        if live is None:
            return Unsettled(f"{place} is not created yet", *place)
        uid = uid_of(request.object)
        if uid and uid_of(live) != uid:  # guard: a created object is the one of the request
            return Refuted(f"{place} is another object")
        if began is not None and began - _created(live) > _SKEW_SECONDS:
            return Refuted(f"{place} existed before the request")
        return replace(request, object=live, old=None, name=_name(live))

    async def _update(self, request: Request, place: _Place, live: JSONObject | None) -> Finding:
        if live is None or request.subresource:
            live = await self._read(place, _SCALE if request.subresource == _SCALE else "")
        claimed = uid_of(request.old)
        is_one = uid_of(request.object) in ("", claimed)
        if live is None or uid_of(live) != claimed or not is_one:
            return Refuted(f"{place} is gone, or another object")
        if _version(live) == _version(request.old):
            is_unchanged = request.admission.get(UNCHANGED) is True or _is_same(request.object, live)
            if not is_unchanged:
                return Unsettled(f"the update of {place} is not stored yet", *place)
            return replace(request, object=live, old=live)
        before = await self._before(place, live, _version(request.old))
        if isinstance(before, Refuted):
            return before
        if isinstance(before, dict) and request.subresource == _SCALE:
            before = _scale_before(live, before)
        if before is None:
            unchanged = replace(request, object=live, old=live)
            return Unprovable(f"the API server no longer shows {place} as it was before the request", unchanged)
        return replace(request, object=live, old=before)

    async def _deletion(self, request: Request, place: _Place, revision: str) -> Finding:
        live = await self._read(place)
        wanted = _version(request.old)
        if live is not None and uid_of(live) == uid_of(request.old):
            if not live["metadata"].get("deletionTimestamp"):  # guard: a deletion happened
                return Unsettled(f"{place} is not deleted yet", *place)
            known: JSONObject | Refuted | None = live
            if _version(live) != wanted:
                known = await self._before(place, live, wanted)
        else:
            known = await self._deleted(request, place, revision)
        if isinstance(known, Refuted):
            return known
        if known is None:
            return Unprovable(f"the API server no longer shows {place}, which is deleted", request)
        return replace(request, object=None, old=known)

    async def _unstored(self, request: Request, place: _Place) -> Finding:
        if await self._read(place) is None:
            return Refuted(f"{place} does not exist")
        what = request.subresource or request.operation.value
        return Unprovable(f"`{what}` of {place} stores nothing that can be read", request, is_stored=False)

    # --------------------------------------------------------------------------------------------------------- reading

    def _place(self, request: Request) -> _Place | Refuted:
        """Return the object of a request, whose parts must agree with each other and with what is served."""
        gvr = request.gvr
        info = self._kinds().by_resource(GVR(gvr.group, gvr.version, gvr.resource)) if gvr is not None else None
        if info is None:
            return Refuted(f"the cluster does not serve `{gvr}`")
        if not request.subresource and request.gvk != info.gvk:
            return Refuted(f"{request.gvk.kind} is not the kind of `{gvr}`")
        subjects = [each for each in (request.object, request.old) if each is not None]
        name = request.name or next(filter(None, map(_name, subjects)), "")
        namespace = request.namespace if info.namespaced else ""
        for subject in subjects:
            is_there = _name(subject) in ("", name) and _namespace(subject) in ("", namespace)
            if not is_there:
                return Refuted(f"the objects of the request are not {info.kind} `{name}`")
            is_own = request.subresource or _kind(subject) in (("", ""), (info.api_version, info.kind))
            if not is_own:
                return Refuted(f"the objects of the request are not of kind {info.kind}")
        if info.namespaced and not namespace:
            return Refuted(f"a request for {info.kind} names a namespace")
        return _Place(info, namespace, name)

    async def _read(self, place: _Place, subresource: str = "") -> JSONObject | None:
        try:
            found = await self._client.get(place.info.gvr, place.name, place.namespace, subresource=subresource)
        except StatusError as error:
            if error.status != _NOT_FOUND:
                raise
            return None
        return found if subresource else {"apiVersion": place.info.api_version, "kind": place.info.kind, **found}

    async def _find_named(self, request: Request, place: _Place, began: float | None) -> JSONObject | None:
        """Return an object whose name the API server made up: each is taken for one request."""
        wanted, asked = _metadata(request.object).get("generateName"), str(request.admission.get("uid") or "")
        listed = await self._client.list(place.info.gvr, place.namespace) if wanted else {"items": ()}
        for item in sorted(listed["items"], key=_created, reverse=True):
            is_old = began is not None and began - _created(item) > _SKEW_SECONDS
            is_free = self._named.get(uid_of(item), asked) == asked
            if item["metadata"].get("generateName") == wanted and not is_old and is_free:
                _remember(self._named, uid_of(item), asked)
                return {"apiVersion": place.info.api_version, "kind": place.info.kind, **item}
        return None

    async def _before(self, place: _Place, live: JSONObject, wanted: str) -> JSONObject | Refuted | None:
        """Return a former version of an object; None if the API server does not show it any more."""
        version = _version(live)
        for _ in range(_MAX_STEPS):
            if not (version.isdecimal() and wanted.isdecimal()) or int(version) < 2:
                return None
            known, found = await self._at(place, int(version) - 1)
            if not known:
                return None
            version = _version(found) if uid_of(found) == uid_of(live) else ""
            is_later = version.isdecimal() and int(version) >= int(wanted)
            if found is None or not is_later:  # guard: an old version existed
                return Refuted(f"{place} never had the version of the request")
            if version == wanted:
                return found
        return None

    async def _deleted(self, request: Request, place: _Place, revision: str) -> JSONObject | Refuted | None:
        """Return an object that is gone, as it was when it had the version of the request."""
        wanted = _version(request.old)
        for version in dict.fromkeys((wanted, revision)):
            if not (version.isdecimal() and wanted.isdecimal()) or int(version) < int(wanted):
                continue
            known, found = await self._at(place, int(version))
            if not known:
                continue
            if uid_of(found) != uid_of(request.old) or _version(found) != wanted:
                return Refuted(f"{place} never was what the request deletes")
            return found
        return None

    async def _at(self, place: _Place, revision: int) -> tuple[bool, JSONObject | None]:
        """Return whether the API server shows its state at a revision, and the object as it was then."""
        query = {
            "fieldSelector": f"metadata.name={place.name}",
            "resourceVersion": str(revision),
            "resourceVersionMatch": "Exact",
        }
        try:
            listed = await self._client.list(place.info.gvr, place.namespace, query=query)
        except StatusError as error:
            if error.status not in _NO_HISTORY:
                raise
            return False, None
        found = next((each for each in listed["items"] if _name(each) == place.name), None)
        return True, None if found is None else {"apiVersion": place.info.api_version, "kind": place.info.kind, **found}


def _remember(memory: OrderedDict[_Key, _Value], key: _Key, value: _Value) -> None:
    memory[key] = value
    if len(memory) > _MAX_KNOWN:
        memory.popitem(last=False)


def _is_stored(request: Request, info: KindInfo) -> bool:
    """Return whether a request stores an object that can be read: the object itself, or its scale."""
    if request.operation is Operation.CONNECT:
        return False
    if not request.subresource:
        return True
    subject = request.subject
    is_own = isinstance(subject, dict) and _kind(subject) == (info.api_version, info.kind)
    return request.operation is Operation.UPDATE and (is_own or request.subresource == _SCALE)


def _scale_before(live: JSONObject, before: JSONObject) -> JSONObject | None:
    """Return the scale that an object had, None where that is not in `spec.replicas`."""
    spec = before.get("spec")
    if not isinstance(spec, dict) or "replicas" not in spec:
        return None
    metadata = {**live["metadata"], "resourceVersion": _version(before)}
    return {**live, "metadata": metadata, "spec": {**(live.get("spec") or {}), "replicas": spec["replicas"]}}


def _is_same(claimed: JSON, live: JSONObject) -> bool:
    """Return whether an update changes nothing: then the API server keeps the version."""
    return isinstance(claimed, dict) and _essence(claimed) == _essence(live)


def _essence(body: JSONObject) -> JSONObject:
    metadata = {key: value for key, value in _metadata(body).items() if key not in _VOLATILE}
    return {**body, "metadata": metadata}


def _created(body: JSONObject) -> float:
    written = _metadata(body).get("creationTimestamp")
    try:
        return datetime.strptime(str(written), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return 0.0


def _metadata(body: JSON) -> JSONObject:
    found = body.get("metadata") if isinstance(body, dict) else None
    return found if isinstance(found, dict) else {}


def _text(source: Mapping[str, JSON], key: str) -> str:
    found = source.get(key)
    return found if isinstance(found, str) else ""


def _name(body: JSON) -> str:
    return _text(_metadata(body), "name")


def _namespace(body: JSON) -> str:
    return _text(_metadata(body), "namespace")


def _version(body: JSON) -> str:
    return _text(_metadata(body), "resourceVersion")


def _kind(body: JSON) -> tuple[str, str]:
    source = body if isinstance(body, dict) else {}
    return _text(source, "apiVersion"), _text(source, "kind")
