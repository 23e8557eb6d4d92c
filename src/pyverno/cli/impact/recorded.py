"""Recorded requests: AdmissionReviews, and events of Kubernetes audit logs of level RequestResponse.

A file holds JSON documents, one after the other or one a line. Events without the object that was written, such as
reads and events of a lower level, are left out and counted. Files that `--record` of the admission controller writes
also hold the roles of the user and the namespace; a write that several
webhooks or replicas recorded counts once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from pyverno.engine.request import Operation, Request, User
from pyverno.errors import PyvernoError, UsageError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSON, JSONObject, decode
from pyverno.offline.files import read_file
from pyverno.offline.links import FollowedLinks
from pyverno.policy.kinds import KNOWN_KINDS
from pyverno.value import dataclass, replace

# trust rows: recorded-requests

__all__ = ["Recording", "read_recordings"]

_OPERATIONS: Final = {
    "create": Operation.CREATE,
    "update": Operation.UPDATE,
    "patch": Operation.UPDATE,
    "delete": Operation.DELETE,
}
_TIMEOUT: Final = timedelta(seconds=30)
"""The longest timeout of a webhook."""
_ENDINGS: Final = (".json", ".jsonl", ".log")


@dataclass(frozen=True, slots=True)
class Recording:
    """Requests, the number of events without one, and the number of requests recorded without confidential values."""

    requests: tuple[Request, ...]
    skipped: int
    redacted: int = 0

    @property
    def objects(self) -> tuple[JSONObject, ...]:
        """The objects that were created or updated."""
        return tuple(each.object for each in self.requests if isinstance(each.object, dict) and not each.subresource)


def read_recordings(sources: Sequence[str]) -> Recording:
    """Read files, and folders of them; raises UsageError for unreadable ones."""
    plain: list[Request] = []
    recorded: list[_Record] = []
    skipped = 0
    for path in _files(sources):
        for document in _documents(path):
            request = _request(document, path)
            if request is None:
                skipped += 1
            elif known := _read_recorded(document):
                recorded.append(_Record(request, *_moment(known, path), known.get("redacted") is True))
            else:
                plain.append(request)
    writes = [*_writes(recorded)]
    redacted = sum(each.is_redacted for each in writes)
    return Recording((*plain, *(each.request for each in writes)), skipped, redacted)


@dataclass(frozen=True, slots=True)
class _Record:
    """A request as one webhook received it, with the time."""

    request: Request
    moment: datetime
    webhook: str
    is_redacted: bool

    @property
    def write(self) -> tuple[object, ...]:
        """The identity that records of one write share; names may be missing, and policies may change the object."""
        request = self.request
        new, old = ((each.get("metadata") or {}) if isinstance(each, dict) else {} for each in _bodies(request))
        name = new.get("generateName") or request.name or new.get("name")
        where = (request.operation, request.gvr, request.subresource, request.namespace, name)
        return (*where, old.get("resourceVersion"), request.user.username, request.dry_run)


def _bodies(request: Request) -> tuple[JSON, JSON]:
    return request.object, request.old


def _read_recorded(document: JSONObject) -> JSONObject:
    """Return the data of the admission controller that a record holds beside the AdmissionReview."""
    recorded = document.get("recorded")
    return recorded if isinstance(recorded, dict) else {}


def _moment(recorded: JSONObject, path: Path) -> tuple[datetime, str]:
    """Return the time and the webhook of a record; raises UsageError for an invalid time."""
    try:
        return datetime.fromisoformat(str(recorded.get("time"))), str(recorded.get("webhook", ""))
    except ValueError:
        raise UsageError(f"{path}: `{recorded.get('time')}` is no time of a record") from None


def _writes(records: Sequence[_Record]) -> Iterator[_Record]:
    """Yield one record for each write: that of the webhook that received it first, so that mutations are not in it.

    Equal writes within the timeout of a webhook count as often as the webhook with most records of them.
    """
    groups: dict[tuple[object, ...], list[_Record]] = {}
    closed: list[list[_Record]] = []
    for each in sorted(records, key=lambda each: each.moment):
        group = groups.setdefault(each.write, [])
        if group and each.moment - group[-1].moment > _TIMEOUT:
            closed.append(group)
            group = groups[each.write] = []
        group.append(each)
    for group in sorted([*closed, *groups.values()], key=lambda group: group[0].moment):
        counts = Counter(each.webhook for each in group)  # in the order of their first records
        webhook = max(counts, key=lambda name: counts[name])
        yield from (each for each in group if each.webhook == webhook)


def _files(sources: Sequence[str]) -> Iterator[Path]:
    for source in sources:
        path = Path(source)
        if path.is_dir():
            links = FollowedLinks(path)
            for each in sorted(each for each in path.rglob("*") if each.suffix in _ENDINGS and each.is_file()):
                links.leave_out(each, None)
                yield each
        else:
            yield path


def _documents(path: Path) -> Iterator[JSONObject]:
    text = read_file(path)
    try:
        documents = [decode(text)]
    except PyvernoError:
        # the last line of a file that is still written may not be complete
        lines = text.splitlines() if text.endswith(b"\n") or b"\n" not in text else text.splitlines()[:-1]
        documents = [_line(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    for document in documents:
        items = document.get("items") if isinstance(document, dict) else None
        listed: list[JSON] = items if isinstance(items, list) else [document]
        yield from (each for each in listed if isinstance(each, dict))


def _line(path: Path, number: int, line: bytes) -> JSON:
    try:
        return decode(line)
    except PyvernoError as error:
        raise UsageError(f"{path}:{number}: the line is no JSON document: {error.message}") from None


def _request(document: JSONObject, path: Path) -> Request | None:
    try:
        if document.get("kind") == "AdmissionReview":
            return _of_review(document)
        return _of_event(document) if document.get("kind") == "Event" else None
    except PyvernoError as error:
        raise UsageError(f"{path}: {error.message}") from error


def _of_review(review: JSONObject) -> Request:
    """Return the request of an AdmissionReview, with the roles and the namespace where they were recorded."""
    recorded = _read_recorded(review)
    labels, namespace = recorded.get("namespaceLabels"), recorded.get("namespaceObject")
    request = Request.from_admission_review(
        review,
        roles=_texts(recorded.get("roles")),
        cluster_roles=_texts(recorded.get("clusterRoles")),
        namespace_labels=labels if isinstance(labels, dict) else None,
        namespace_object=namespace if isinstance(namespace, dict) else None,
    )
    parent = KNOWN_KINDS.by_resource(request.gvr) if request.subresource and request.gvr is not None else None
    # rules match a subresource by the kind that it belongs to
    return request if parent is None else request.with_kind(parent.gvk)


def _texts(value: JSON) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _of_event(event: JSONObject) -> Request | None:
    """Return the request of an audit event, None when it does not hold the object that was written.

    For a patch the event contains the resulting object, for a deletion the deleted one.
    """
    operation = _OPERATIONS.get(str(event.get("verb")))
    reference = event.get("objectRef")
    if operation is None or event.get("stage") != "ResponseComplete" or not isinstance(reference, dict):
        return None
    is_sent = event.get("verb") in ("create", "update")
    body = event.get("requestObject" if is_sent else "responseObject")
    if not isinstance(body, dict) or body.get("kind") in (None, "Status", "DeleteOptions") or "apiVersion" not in body:
        return None
    user = event.get("user")
    request = Request.from_manifest(
        _with_names(body, reference),
        operation=operation,
        user=User.from_json(user) if isinstance(user, dict) else User(),
        gvr=GVR(*(str(reference.get(key) or "") for key in ("apiGroup", "apiVersion", "resource"))),
        subresource=str(reference.get("subresource") or ""),
    )
    return replace(request, namespace=str(reference.get("namespace") or request.namespace))


def _with_names(body: JSONObject, reference: JSONObject) -> JSONObject:
    metadata = body.get("metadata") or {}
    named = {key: reference[key] for key in ("name", "namespace") if reference.get(key) and not metadata.get(key)}
    return {**body, "metadata": {**metadata, **named}} if named else body
