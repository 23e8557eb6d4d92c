"""Watches: the changes of a resource as one client wants to see them.

A watcher only holds a place among the kept changes, so a slow client holds up no other; one that falls behind what is
kept gets an error and ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kubesandbox.objects.metadata import with_metadata
from kubesandbox.parsing.requests import ListOptions
from kubesandbox.storage.listing import Convert, Selection, parse_version
from kubesandbox.storage.store import Change, ChangeKind, Store, Stored, TooOldError
from kubesandbox.types.resources import ResourceType
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError, expired

__all__ = ["Event", "Events", "watch_events"]

BOOKMARK_SECONDS = 60.0
_BEFORE_END_SECONDS = 2.0
DEFAULT_TIMEOUT_SECONDS = 3600
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class Event:
    """One event: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR, its object, and its state where that is the object."""

    kind: str
    body: JSONObject
    state: Stored | None = None


Events: TypeAlias = list[Event]


async def watch_events(
    store: Store,
    type: ResourceType,
    namespace: str,
    options: ListOptions,
    chosen: Selection,
    *,
    convert: Convert | None = None,
    bookmark_seconds: float = BOOKMARK_SECONDS,
) -> AsyncGenerator[Events, None]:
    """Yield events as they happen, in groups, until the time is up; objects are as they are stored or as converted.

    The first group comes at once and may be empty. Raises StatusError for a version that is none; one that is too
    old is reported by an ERROR event.
    """
    revision = parse_version(options.resource_version, is_watch=True)
    first: list[Event] = []
    wants_present = options.initial_events is True or (revision == 0 and options.initial_events is None)
    if wants_present or revision == 0:
        if wants_present:
            states: Sequence[Stored] = store.all(type.key, namespace)
            revision = store.revision
            if convert is not None:
                states = await convert(states)
            first = [Event("ADDED", state.body, state) for state in states if chosen.takes(state.body)]
        else:
            revision = store.revision
        if options.initial_events and options.bookmarks:
            first.append(_bookmark(type, revision, is_end=True))
    clock = asyncio.get_running_loop().time
    end = clock() + (options.timeout if options.timeout is not None else DEFAULT_TIMEOUT_SECONDS)
    try:
        watcher = store.watcher(type.key, revision)
        yield first
        next_bookmark = _next_bookmark(clock(), end, bookmark_seconds)
        while (now := clock()) < end:
            until = min(end, next_bookmark) if options.bookmarks else end
            try:
                async with asyncio.timeout(until - now):
                    changes = await watcher.next()
            except TimeoutError:
                if until == next_bookmark and not store.changes_since(type.key, watcher.revision):
                    next_bookmark = _next_bookmark(clock(), end, bookmark_seconds)
                    yield [_bookmark(type, store.revision)]
                continue
            if convert is not None:
                changes = await _convert(changes, convert)
            events = [*_events(changes, namespace, chosen)]
            if events:
                yield events
    except TooOldError as error:
        yield [Event("ERROR", expired(error.message).to_json())]
    except StatusError as error:
        # an object that cannot be converted ends the watch: an event left out would never come
        yield [Event("ERROR", error.to_json())]


def _next_bookmark(now: float, end: float, seconds: float) -> float:
    """Return when the next bookmark is due: every so many seconds, and shortly before the watch ends.

    >>> _next_bookmark(0.0, 20.0, 60.0), _next_bookmark(18.5, 20.0, 60.0)
    (18.0, 78.5)
    """
    # upstream: the one before the end lets the next watch begin where this one was
    before_end = end - _BEFORE_END_SECONDS
    return before_end if now < before_end < now + seconds else now + seconds


async def _convert(changes: Sequence[Change], convert: Convert) -> list[Change]:
    """Bring the objects of changes, as they are and as they were, into one version."""
    states = [state for change in changes for state in (change.state, change.before) if state is not None]
    found = dict(zip(map(id, states), await convert(states), strict=True))
    return [
        Change(change.kind, found[id(change.state)], None if change.before is None else found[id(change.before)])
        for change in changes
    ]


def _events(changes: Iterable[Change], namespace: str, chosen: Selection) -> Iterable[Event]:
    """Yield what changes are for a watcher of the selected objects."""
    for change in changes:
        state, before = change.state, change.before
        if namespace and state.key.namespace != namespace:
            continue
        was = before is not None and chosen.takes(before.body)
        if change.kind is ChangeKind.DELETED:
            if was:
                yield Event("DELETED", state.body, state)
        elif chosen.takes(state.body):
            yield Event("MODIFIED" if was else "ADDED", state.body, state)
        elif was and before is not None:
            # upstream: the last state that was selected, at the version of the change
            yield Event("DELETED", with_metadata(before.body, resourceVersion=str(state.revision)))


def _bookmark(type: ResourceType, revision: int, *, is_end: bool = False) -> Event:
    metadata: JSONObject = {"resourceVersion": str(revision)}
    if is_end:
        metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
    return Event("BOOKMARK", {"kind": type.kind, "apiVersion": type.api_version, "metadata": metadata})
