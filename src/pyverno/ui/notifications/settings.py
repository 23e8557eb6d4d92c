"""The file of `--notifications`: targets in the project's own form, or in Policy Reporter's.

```yaml
targets:
- name: team-a
  type: slack
  webhookFile: /run/secrets/slack
  where: {namespace: team-a-*}
  digest: 10m
```

Policy Reporter's `target` of its Helm values or of its configuration, and TargetConfig objects, are read as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from pyverno.errors import PyvernoError, UsageError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.documents import Document
from pyverno.ui.notifications.filters import NoticeFilter, read_notice_filter
from pyverno.ui.notifications.targets.catalog import KINDS, find_kind
from pyverno.value import dataclass, field

__all__ = ["Keepalive", "Layer", "NotificationSettings", "TargetSettings", "read_notifications"]

_GROUP: Final = "policyreporter.kyverno.io/"
_COMMON: Final = frozenset(
    (
        "name",
        "type",
        "config",
        "filter",
        "where",
        "sources",
        "minimumSeverity",
        "secretRef",
        "mountedSecret",
        "customFields",
        "skipExistingOnStartup",
        "channels",
        "digest",
        "groupBy",
        "resolved",
        "rateLimit",
        "valid",
    )
)
_OWN_TOP: Final = ("targets", "egress", "namespace", "target")
_WITHOUT_MEANING: Final = frozenset(("http2", "delayInSeconds", "synchronize"))
_ELSEWHERE: Final = frozenset(("ui",))
"""The kind of Policy Reporter that sends results to its old pages."""
_GROUPS: Final = ("cluster", "namespace", "policy", "rule", "source", "severity", "kind")
_SPAN: Final = re.compile(r"(\d{1,5})([smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_MOST_TARGETS: Final = 500
_LONGEST_DIGEST: Final = 7 * 86_400


@dataclass(frozen=True, slots=True)
class Layer:
    """The options of a target or of its parent, and the location of its secrets; a later layer wins."""

    options: Mapping[str, JSON] = field(repr=False)
    secret: str = ""
    mounted: str = ""


@dataclass(frozen=True, slots=True)
class Keepalive:
    """A message that a webhook receives at intervals, even without changes."""

    seconds: int
    params: Mapping[str, JSON] = field(repr=False)


@dataclass(frozen=True, slots=True)
class TargetSettings:
    """One target; `digest` is the window in seconds (0 sends at once), `per_minute` the most deliveries of a minute."""

    name: str
    kind: str
    filter: NoticeFilter
    layers: Sequence[Layer]
    custom: Mapping[str, str]
    skips_existing: bool
    sends_resolved: bool
    digest: int
    group_by: str
    per_minute: int
    keepalive: Keepalive | None = None


@dataclass(frozen=True, slots=True)
class NotificationSettings:
    """All targets, their egress rules, the namespace of their Secrets, and notes on unused parts of the file."""

    targets: tuple[TargetSettings, ...]
    blocklist: tuple[str, ...] | None = None
    allowlist: tuple[str, ...] = ()
    namespace: str = ""
    notes: tuple[str, ...] = ()


def read_notifications(documents: Iterable[Document]) -> NotificationSettings:
    """Return the settings of documents; raises UsageError, which names the place and never a value of an option."""
    targets: list[TargetSettings] = []
    notes: list[str] = []
    blocklist: tuple[str, ...] | None = None
    allowlist: tuple[str, ...] = ()
    namespace = ""
    for document in documents:
        body = document.value
        if not isinstance(body, dict):
            raise UsageError("expected a mapping with `targets` or `target`", location=document.location())
        try:
            for kind, item in _items(body, notes):
                targets += _targets(kind, item, notes)
            if "egress" in body:
                egress = _mapping("egress", body["egress"])
                _check_keys("egress", egress, ("blocklist", "allowlist"))
                if "blocklist" in egress:
                    blocklist = _texts("egress.blocklist", egress["blocklist"])
                allowlist = _texts("egress.allowlist", egress.get("allowlist"))
            namespace = _text("namespace", body.get("namespace")) or namespace
        except PyvernoError as error:
            if error.location is not None:
                raise
            raise UsageError(error.message, location=document.location()) from error
    names = [target.name for target in targets]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise UsageError(f"two targets have the name `{twice}`: give each its own `name`")
    if not targets:
        raise UsageError("there is no target in the file of --notifications")
    if len(targets) > _MOST_TARGETS:
        raise UsageError(f"more than {_MOST_TARGETS} targets")
    return NotificationSettings(tuple(targets), blocklist, allowlist, namespace, tuple(notes))


def _items(body: JSONObject, notes: list[str]) -> Iterator[tuple[str, JSONObject]]:
    """Yield the kinds of targets of a document with their bodies."""
    if str(body.get("apiVersion", "")).startswith(_GROUP) and body.get("kind") == "TargetConfig":
        spec = _mapping("spec", body.get("spec"))
        name = _text("metadata.name", _mapping("metadata", body.get("metadata")).get("name"))
        blocks = [key for key in spec if key in KINDS or key in _ELSEWHERE]
        if len(blocks) != 1:
            raise UsageError("a TargetConfig has exactly one block with the kind of its target")
        common = {key: value for key, value in spec.items() if key != blocks[0]}
        yield blocks[0], {**common, "name": _text("name", spec.get("name")) or name, "config": spec[blocks[0]]}
        return
    found = body.get("targets", [])
    for item in found if isinstance(found, list) else [found]:
        target = _mapping("targets[]", item)
        yield _text("type", target.get("type")), target
    by_kind = _mapping("target", body.get("target"))
    old = {key: value for key, value in body.items() if key in KINDS or (key in _ELSEWHERE and key != "ui")}
    for kind, value in {**old, **by_kind}.items():
        item = _mapping(kind, value)
        if kind not in _ELSEWHERE or _has_address(item):
            yield kind, item
    for key in body:
        if key not in _OWN_TOP and key not in old:
            notes.append(f"`{key}` has no meaning for notifications")


def _has_address(item: JSONObject) -> bool:
    """Return whether a block is more than the defaults of a chart."""
    whole = {**item, **_mapping("config", item.get("config"))}
    names = ("host", "webhook", "token", "bucket", "streamName", "accountId", "secretRef", "mountedSecret", "channels")
    return any(whole.get(name) for name in names)


def _targets(kind: str, body: JSONObject, notes: list[str]) -> Iterator[TargetSettings]:
    """Yield a target and its channels; one without any address is only the parent of its channels."""
    if kind in _ELSEWHERE or find_kind(kind) is None:
        known = ", ".join(KINDS)
        raise UsageError(f"unknown type of target `{kind[:64]}`: expected {known}")
    name = _text("name", body.get("name")) or kind
    channels = body.get("channels") or []
    if not isinstance(channels, list):
        raise UsageError(f"`channels` of target `{name}` must be a list")
    if _has_address(body | {"channels": []}) or not channels:
        if _is_empty(kind, body):
            return
        yield _target(name, kind, (body,), notes)
    for number, channel in enumerate(channels, 1):
        own = _mapping("channels[]", channel)
        own_name = _text("name", own.get("name")) or f"{name} Channel {number}"
        yield _target(own_name, kind, (body, own), notes)


def _is_empty(kind: str, body: JSONObject) -> bool:
    """Return whether a block of a kind holds defaults only, as in the values of a chart."""
    if body.get("type"):
        return False
    whole = {**body, **_mapping("config", body.get("config"))}
    addresses = find_kind(kind)
    names = (*addresses.addresses, "secretRef", "mountedSecret") if addresses else ()
    return not any(whole.get(name) or whole.get(f"{name}File") for name in names)


def _target(name: str, kind: str, bodies: Sequence[JSONObject], notes: list[str]) -> TargetSettings:
    found = find_kind(kind)
    assert found is not None  # noqa: S101 - the caller has looked
    known = {*_COMMON, *found.options, *(f"{each}File" for each in found.options)}
    layers = []
    try:
        for body in bodies:
            options = {key: value for key, value in body.items() if key not in _COMMON}
            options |= _mapping("config", body.get("config"))
            for key in options:
                if key in _WITHOUT_MEANING:
                    notes.append(f"`{key}` of target `{name}` is left out")
                elif key not in known:
                    raise UsageError(f"unknown key `{key[:64]}`: expected one of {', '.join(sorted(known))}")
            own = {key: value for key, value in options.items() if value not in ("", None, {}, [])}
            secret, mounted = (_text(key, body.get(key)) for key in ("secretRef", "mountedSecret"))
            layers.append(Layer(own, secret, mounted))
        own_body = bodies[-1]
        whole = {**bodies[0], **{key: value for key, value in own_body.items() if value not in ("", None, {}, [])}}
        custom = {
            str(key): _text(f"customFields.{key}", value)
            for body in bodies
            for key, value in _mapping("customFields", body.get("customFields")).items()
        }
        group_by = _text("groupBy", whole.get("groupBy"))
        if group_by and group_by not in _GROUPS:
            raise UsageError(f"`groupBy` must be one of {', '.join(_GROUPS)}")
        return TargetSettings(
            name=name,
            kind=kind,
            filter=read_notice_filter(whole),
            layers=tuple(layers),
            custom=custom,
            skips_existing=_flag("skipExistingOnStartup", whole.get("skipExistingOnStartup"), default=True),
            sends_resolved=_flag("resolved", whole.get("resolved"), default=found.sends_resolved),
            digest=_span("digest", whole.get("digest")),
            group_by=group_by,
            per_minute=_number("rateLimit", whole.get("rateLimit"), found.per_minute),
            keepalive=_keepalive([each.options.get("keepalive") for each in layers]),
        )
    except PyvernoError as error:
        raise UsageError(f"target `{name}`: {error.message}") from error


def _keepalive(written: Sequence[JSON]) -> Keepalive | None:
    """Return the last `keepalive` that is written; an empty interval turns it off."""
    for value in reversed(written):
        if value is not None:
            body = _mapping("keepalive", value)
            _check_keys("keepalive", body, ("interval", "params"))
            seconds = _span("keepalive.interval", body.get("interval"))
            return Keepalive(seconds, _mapping("keepalive.params", body.get("params"))) if seconds else None
    return None


def _check_keys(name: str, body: JSONObject, known: Sequence[str]) -> None:
    if wrong := next((key for key in body if key not in known), ""):
        raise UsageError(f"unknown `{name}.{wrong}`: expected {', '.join(known)}")


def _mapping(name: str, value: JSON) -> JSONObject:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UsageError(f"`{name}` must be a mapping")
    return value


def _text(name: str, value: JSON) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise UsageError(f"`{name}` must be a text")
    return value


def _texts(name: str, value: JSON) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [] if value is None else [value]
    return tuple(_text(name, each) for each in items)


def _flag(name: str, value: JSON, *, default: bool) -> bool:
    if value is None:
        return default
    if not isinstance(value, bool):
        raise UsageError(f"`{name}` must be true or false")
    return value


def _number(name: str, value: JSON, default: int) -> int:
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 60_000:
        raise UsageError(f"`{name}` must be a number of deliveries a minute, from 1 to 60000")
    return value


def _span(name: str, value: JSON) -> int:
    if value in (None, "", 0):
        return 0
    found = _SPAN.fullmatch(value) if isinstance(value, str) else None
    seconds = int(found[1]) * _SECONDS[found[2]] if found else 0
    if not 0 < seconds <= _LONGEST_DIGEST:
        raise UsageError(f"`{name}` must be a time such as `30s`, `10m` or `24h`, of seven days at most")
    return seconds
