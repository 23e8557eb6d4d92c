"""Recorded requests: AdmissionReviews, and events of Kubernetes audit logs of level RequestResponse.

A file holds JSON documents, one after the other or one a line. Events without the object that was written, such as
reads and events of a lower level, are left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from pyverno.engine.request import Operation, Request, User
from pyverno.errors import PyvernoError, UsageError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSON, JSONObject, decode
from pyverno.offline.files import read_file
from pyverno.value import dataclass, replace

__all__ = ["Recording", "read_recordings"]

_OPERATIONS: Final = {
    "create": Operation.CREATE,
    "update": Operation.UPDATE,
    "patch": Operation.UPDATE,
    "delete": Operation.DELETE,
}
_ENDINGS: Final = (".json", ".jsonl", ".log")


@dataclass(frozen=True, slots=True)
class Recording:
    """Requests, and how many events hold none."""

    requests: tuple[Request, ...]
    skipped: int


def read_recordings(sources: Sequence[str]) -> Recording:
    """Read files, and folders of them; raises UsageError for what cannot be read."""
    requests: list[Request] = []
    skipped = 0
    for path in _files(sources):
        for document in _documents(path):
            request = _request(document, path)
            if request is None:
                skipped += 1
            else:
                requests.append(request)
    return Recording(tuple(requests), skipped)


def _files(sources: Sequence[str]) -> Iterator[Path]:
    for source in sources:
        path = Path(source)
        if path.is_dir():
            yield from sorted(each for each in path.rglob("*") if each.is_file() and each.suffix in _ENDINGS)
        else:
            yield path


def _documents(path: Path) -> Iterator[JSONObject]:
    text = read_file(path)
    try:
        documents = [decode(text)]
    except PyvernoError:
        documents = [_line(path, number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
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
            return Request.from_admission_review(document)
        return _of_event(document) if document.get("kind") == "Event" else None
    except PyvernoError as error:
        raise UsageError(f"{path}: {error.message}") from error


def _of_event(event: JSONObject) -> Request | None:
    """Return the request of an audit event, None when it does not hold the object that was written.

    A patch is known by the object that came of it, a deletion by the one that was answered.
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
