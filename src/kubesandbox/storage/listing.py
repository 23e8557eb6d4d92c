"""Lists: which objects are selected, at which version, and in which pages.

A continue token pins the version of the first page.
"""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import orjson

from kubesandbox.parsing.requests import ListOptions, unknown_version
from kubesandbox.storage.fieldselectors import compile_field_selector
from kubesandbox.storage.store import Store, Stored, TooOldError
from kubesandbox.types.resources import ResourceType
from pyverno.errors import DocumentError, ValueSyntaxError
from pyverno.kube.json import JSONObject, decode
from pyverno.kube.selector import LabelTest, parse_selector_text
from pyverno.kube.status import Cause, StatusError, bad_request, expired

__all__ = ["Convert", "Page", "Selection", "check_reached", "list_page", "parse_version", "selection"]

Convert: TypeAlias = Callable[[Sequence[Stored]], Awaitable[Sequence[Stored]]]
"""Brings states into one version; raises StatusError 500 where that fails."""

_TOKEN_VERSION = "meta.k8s.io/v1"  # noqa: S105  # a version, no secret
_TOO_OLD_PAGE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
_INCONSISTENT = -1
"""The version in a token that continues with whatever is there now."""
_TOO_OLD_LIST = "The resourceVersion for the provided list is too old."


@dataclass(frozen=True, slots=True)
class Selection:
    """Compiled selectors; None takes everything."""

    labels: LabelTest | None = None
    fields: Callable[[JSONObject], bool] | None = None

    @property
    def takes_all(self) -> bool:
        """Return whether nothing is left out."""
        return self.labels is None and self.fields is None

    def takes(self, body: JSONObject) -> bool:
        """Return whether an object is selected."""
        if self.labels is not None and not self.labels(body["metadata"].get("labels") or {}):
            return False
        return self.fields is None or self.fields(body)


@dataclass(frozen=True, slots=True)
class Page:
    """A list or a part of it; `remaining` counts what follows where that is known, `token` continues."""

    states: Sequence[Stored]
    revision: int
    token: str = ""
    remaining: int | None = None

    @property
    def metadata(self) -> JSONObject:
        """The metadata of the list."""
        body: JSONObject = {"resourceVersion": str(self.revision)}
        if self.token:
            body["continue"] = self.token
        if self.remaining is not None:
            body["remainingItemCount"] = self.remaining
        return body


def selection(type: ResourceType, options: ListOptions, selectable: tuple[str, ...] = ()) -> Selection:
    """Compile the selectors of a list; raises StatusError 400."""
    labels: LabelTest | None = None
    if options.label_selector:
        try:
            labels = parse_selector_text(options.label_selector)
        except ValueSyntaxError as error:
            raise bad_request(error.message) from None
    fields = compile_field_selector(options.field_selector, type, selectable) if options.field_selector else None
    return Selection(labels, fields)


def parse_version(text: str, *, is_watch: bool = False) -> int:
    """Read a resourceVersion, an empty one as 0; raises StatusError."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise unknown_version(text, is_watch=is_watch)
    return int(text)


def check_reached(store: Store, text: str) -> None:
    """Raise 504 for a resourceVersion that is still to come, and 500 for one that is no number."""
    revision = parse_version(text, is_watch=True)
    if revision > store.revision:
        raise _too_large(revision, store.revision)


async def list_page(
    store: Store,
    type: ResourceType,
    namespace: str,
    options: ListOptions,
    chosen: Selection,
    *,
    convert: Convert | None = None,
) -> Page:
    """Return the objects of a list request, after `convert` has brought them into the requested version.

    Raises StatusError 410 for a version that is no longer known, 504 for one that is still to come.
    """
    start: tuple[str, str] | None = None
    if options.continue_token:
        revision, start = _read_token(options.continue_token)
        if options.resource_version not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        try:
            states, revision = _states_at(store, type, namespace, max(revision, 0))
        except TooOldError:
            raise expired(_TOO_OLD_PAGE, _token(_INCONSISTENT, *start)) from None
    else:
        revision = parse_version(options.resource_version)
        if revision > store.revision:
            raise _too_large(revision, store.revision)
        is_exact = options.match == "Exact" or (revision > 0 and options.limit > 0 and not options.match)
        try:
            states, revision = _states_at(store, type, namespace, revision if is_exact else 0)
        except TooOldError:
            raise expired(_TOO_OLD_LIST) from None
    if start is not None:
        states = states[bisect_right(states, start, key=lambda state: (state.key.namespace, state.key.name)) :]
    if convert is not None:
        count = options.limit if chosen.takes_all and options.limit > 0 else len(states)
        states = [*await convert(states[:count]), *states[count:]]
    return _cut(states, revision, options.limit, chosen)


def _states_at(store: Store, type: ResourceType, namespace: str, revision: int) -> tuple[list[Stored], int]:
    if revision in (0, store.revision):
        return store.all(type.key, namespace), store.revision
    return store.all_at(type.key, revision, namespace), revision


def _cut(states: list[Stored], revision: int, limit: int, chosen: Selection) -> Page:
    if chosen.takes_all and (limit <= 0 or len(states) <= limit):
        return Page(states, revision)
    found: list[Stored] = []
    for state in states:
        if limit > 0 and len(found) == limit:
            if not chosen.takes_all and not any(chosen.takes(rest.body) for rest in states[states.index(state) :]):
                break
            remaining = len(states) - limit if chosen.takes_all else None
            return Page(found, revision, _token(revision, found[-1].key.namespace, found[-1].key.name), remaining)
        if chosen.takes(state.body):
            found.append(state)
    return Page(found, revision)


def _token(revision: int, namespace: str, name: str) -> str:
    """Write a token that continues after an object."""
    start = f"{namespace}/{name}"
    raw = orjson.dumps({"v": _TOKEN_VERSION, "rv": revision, "start": start})
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _read_token(text: str) -> tuple[int, tuple[str, str]]:
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise _bad_token("illegal base64 data at input byte 0") from None
    try:
        body = decode(raw)
    except DocumentError as error:
        raise _bad_token(error.message) from None
    version = body.get("v") if isinstance(body, dict) else ""
    if version != _TOKEN_VERSION:
        raise _bad_token(f"server does not recognize this encoded version {version or ''}")
    revision, start = body.get("rv"), body.get("start")
    if (
        not isinstance(revision, int)
        or not (0 < revision < 2**63 or revision == _INCONSISTENT)
        or not isinstance(start, str)
    ):
        raise _bad_token("incorrect encoded start resourceVersion")
    namespace, _, name = start.partition("/")
    return revision, (namespace, name)


def _bad_token(why: str) -> StatusError:
    return bad_request(f"invalid continue token: continue key is not valid: {why}")


def _too_large(revision: int, current: int) -> StatusError:
    return StatusError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {revision}, current: {current}",
        causes=[Cause("ResourceVersionTooLarge", "Too large resource version")],
        retry_after=1,
    )
