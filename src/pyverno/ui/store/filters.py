"""The filter grammar of pages and API: query parameters that select results.

`status=fail,error&namespace=team-*&policy=!audit-*&search=text`: values of one parameter are alternatives, parameters
are joined by *and*; `*` and `?` are wildcards, a leading `!` excludes. `severity=-` selects results without one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from pyverno.errors import UsageError
from pyverno.kube.wildcard import match
from pyverno.report.collected import SEVERITIES, STATUSES
from pyverno.ui.store.schema import SERIES_COLUMNS
from pyverno.value import dataclass, field, replace

__all__ = ["NO_FILTER", "Filter", "check_keys", "check_text", "quote_pattern", "read_filter"]

_STATES: Final = ("open", "resolved", "all")
_FIELDS: Final = (*SERIES_COLUMNS, "name", "apiVersion")
_PROPERTY: Final = "property."
_LABEL: Final = "label."
_OTHER: Final = ("search", "state", "since", "until")
_SPAN: Final = re.compile(r"(\d{1,6})([smhdw])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_MAX_VALUES: Final = 100
_MAX_KEYS: Final = 20
_MAX_TEXT: Final = 256
_NONE: Final = "-"
_QUOTED: Final = re.compile(r"\[(.)\]", re.DOTALL)
_LITERALS: Final = str.maketrans({"*": "\udc2a", "?": "\udc3f"})
"""Stand-ins for literal wildcards: halves of surrogate pairs, which no text of a report holds."""


@dataclass(frozen=True, slots=True)
class Filter:
    """A selection of results; fields without patterns select everything.

    `fields` holds patterns by field, `properties` and `labels` by key; `since` and `until` bound the last change
    (seconds since 1970). `excluded_kinds` are left out of the results of single sources.
    """

    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    properties: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    search: str = ""
    excluded_kinds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    state: str = "open"
    since: int | None = None
    until: int | None = None

    @property
    def is_about_series(self) -> bool:
        """Return whether columns of series alone decide, so that counting reads no results."""
        others = self.properties or self.labels or self.search or self.since is not None or self.until is not None
        return not others and self.state == "open" and all(name in SERIES_COLUMNS for name in self.fields)

    @property
    def is_about_objects(self) -> bool:
        """Return whether objects alone decide, so that their own counts suffice."""
        others = self.properties or self.labels or self.search or self.since is not None or self.until is not None
        about = {"cluster", "kind", "namespace", "name", "apiVersion"}
        return not others and not self.excluded_kinds and self.state == "open" and about.issuperset(self.fields)

    def without(self, name: str) -> Filter:
        """Return the filter without the patterns of a field: a facet counts the values that could be chosen instead."""
        kept = {key: patterns for key, patterns in self.fields.items() if key != name}
        properties = {key: each for key, each in self.properties.items() if f"{_PROPERTY}{key}" != name}
        labels = {key: each for key, each in self.labels.items() if f"{_LABEL}{key}" != name}
        return replace(self, fields=kept, properties=properties, labels=labels)

    def narrowed(self, name: str, values: Iterable[str]) -> Filter:
        """Return the filter with only these values of a field, where it selects them."""
        own = self.fields.get(name)
        allowed = tuple(value for value in values if own is None or fits(own, value))
        fields = {**self.fields, name: tuple(quote_pattern(value) for value in allowed) or ("!*",)}
        return replace(self, fields=fields)

    def with_patterns(self, name: str, patterns: tuple[str, ...]) -> Filter:
        """Return the filter with other patterns of a field."""
        fields = {**self.fields, name: patterns}
        return replace(self, fields=fields)


NO_FILTER: Final = Filter()


def read_filter(query: Iterable[tuple[str, str]], now: int, *, also: Sequence[str] = ()) -> Filter:
    """Return the filter of query parameters; raises UsageError for an unknown parameter or value.

    `also` are further parameters, which the caller reads. A typing error in a filter must not show everything.

    >>> read_filter([("status", "fail,error"), ("namespace", "team-*")], 0).fields["status"]
    ('fail', 'error')
    """
    fields: dict[str, tuple[str, ...]] = {}
    properties: dict[str, tuple[str, ...]] = {}
    labels: dict[str, tuple[str, ...]] = {}
    other: dict[str, str] = {}
    for name, text in query:
        if name in also:
            continue
        check_text(name)
        check_text(text)
        if len(text) > _MAX_TEXT * 8:
            raise UsageError(f"the value of `{name}` is longer than {_MAX_TEXT * 8} characters")
        if name in _OTHER:
            other[name] = text
        elif name in _FIELDS:
            fields[name] = _patterns(name, fields.get(name, ()), text)
        elif name.startswith(_PROPERTY):
            key = name.removeprefix(_PROPERTY)
            properties[key] = _patterns(name, properties.get(key, ()), text)
        elif name.startswith(_LABEL):
            key = name.removeprefix(_LABEL)
            labels[key] = _patterns(name, labels.get(key, ()), text)
        else:
            known = ", ".join((*_FIELDS, *_OTHER, f"{_PROPERTY}KEY", f"{_LABEL}KEY", *also))
            raise UsageError(f"unknown parameter `{name[:_MAX_TEXT]}`: expected one of {known}")
    check_keys(properties, labels)
    return Filter(
        fields,
        properties,
        labels,
        _search(other.get("search", "")),
        {},
        _choice("state", other.get("state", "open"), _STATES),
        _moment("since", other.get("since"), now),
        _moment("until", other.get("until"), now),
    )


def check_text(text: str) -> None:
    """Raise UsageError for a text of a request that no result can hold: with NUL, or half of a character.

    >>> check_text("a*")
    """
    if "\0" in text or not _is_whole(text):
        raise UsageError("a filter cannot hold the character NUL, nor half of a character")


def check_keys(*keys: Collection[str]) -> None:
    """Raise UsageError for too many properties and labels in one filter: each of them costs a query."""
    if sum(map(len, keys)) > _MAX_KEYS:
        raise UsageError(f"a filter has more than {_MAX_KEYS} properties and labels")


def _is_whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def fits(patterns: Sequence[str], value: str) -> bool:
    """Return whether patterns select a value: one of the positive ones, if there are any, and none of the negative."""
    positive = [pattern for pattern in patterns if not pattern.startswith("!")]
    negative = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    chosen = not positive or any(_fits(pattern, value) for pattern in positive)
    return chosen and not any(_fits(pattern, value) for pattern in negative)


def _fits(pattern: str, value: str) -> bool:
    """Return whether a value fits what GLOB knows here: `*`, `?` and `[x]`, in linear time."""
    unquoted = _QUOTED.sub(lambda found: found[1].translate(_LITERALS), pattern)
    return match(unquoted, value.translate(_LITERALS))


def quote_pattern(value: str) -> str:
    """Return a pattern that only this value fits.

    >>> quote_pattern("a*b")
    'a[*]b'
    """
    quoted = "".join(f"[{each}]" if each in "*?[" else each for each in value)
    return f"[!]{quoted[1:]}" if quoted.startswith("!") else quoted


def _patterns(name: str, known: tuple[str, ...], text: str) -> tuple[str, ...]:
    found = (*known, *(each.strip() for each in text.split(",") if each.strip()))
    if len(found) > _MAX_VALUES:
        raise UsageError(f"`{name}` has more than {_MAX_VALUES} values")
    choices = {"status": STATUSES, "severity": (*SEVERITIES[:-1], _NONE)}.get(name)
    if choices is not None:
        for each in found:
            word = each.removeprefix("!")
            if "*" not in word and "?" not in word:
                _choice(name, word, choices)
    written = (each.replace("[", "[[]") for each in found)  # GLOB knows sets of characters, this grammar does not
    return tuple("" if each == _NONE else "!" if each == f"!{_NONE}" else each for each in written)


def _choice(name: str, value: str, choices: Sequence[str]) -> str:
    if value not in choices:
        raise UsageError(f"unknown {name} `{value[:_MAX_TEXT]}`: expected {', '.join(choices)}")
    return value


def _search(text: str) -> str:
    if len(text) > _MAX_TEXT:
        raise UsageError(f"`search` is longer than {_MAX_TEXT} characters")
    return text


def _moment(name: str, text: str | None, now: int) -> int | None:
    """Read seconds since 1970, or a span back from now (`24h`, `7d`)."""
    if not text:
        return None
    if text.isascii() and text.isdigit() and len(text) <= 12:
        return int(text)
    span = _SPAN.fullmatch(text)
    if span is None:
        raise UsageError(
            f"`{name}` is `{text[:_MAX_TEXT]}`: expected seconds since 1970, or a span such as `24h` or `7d`"
        )
    return now - int(span[1]) * _SECONDS[span[2]]
