"""The ConfigMap `kyverno-metrics`: the namespaces whose requests are counted, buckets, and enabled metrics.

Every key is read separately: one that cannot be read keeps its default and is listed in `problems`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite, nan
from typing import Any, Final

from pyverno.errors import DocumentError, ValueSyntaxError
from pyverno.kube.json import JSON, JSONObject, decode
from pyverno.kube.time.duration import parse_duration

__all__ = [
    "Exposure",
    "MetricSettings",
    "Namespaces",
    "read_buckets",
    "read_exposures",
    "read_interval",
    "read_namespaces",
]

_NANOSECONDS: Final = 1_000_000_000
_ALWAYS: Final = ("", "-")
"""Cluster-scoped requests are counted whatever the settings of namespaces are."""


@dataclass(frozen=True, slots=True)
class Namespaces:
    """The namespaces whose requests are counted: without `include` all of them, and never those of `exclude`.

    >>> settings = Namespaces(include=("shop",), exclude=("test",))
    >>> settings.counts("shop"), settings.counts("other"), settings.counts("")
    (True, False, True)
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def counts(self, namespace: str) -> bool:
        """Return whether requests of a namespace are counted; exclusions win."""
        if namespace in self.exclude:
            return False
        return namespace in _ALWAYS or not self.include or namespace in self.include


@dataclass(frozen=True, slots=True)
class Exposure:
    """One metric: whether there is one, the labels that it goes without, and its own buckets (in seconds)."""

    enabled: bool = True
    disabled_labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class MetricSettings:
    """All settings of the ConfigMap; empty `buckets` are the default ones.

    After every `refresh_seconds` the counters begin anew, with the settings of that moment; 0 is for never.

    >>> MetricSettings.read({"bucketBoundaries": "0.1, x"}).problems
    ("bucketBoundaries: invalid boundary value 'x'",)
    """

    namespaces: Namespaces = Namespaces()
    buckets: tuple[float, ...] = ()
    exposures: Mapping[str, Exposure] = field(default_factory=dict)
    refresh_seconds: float = 0.0
    problems: tuple[str, ...] = ()

    @classmethod
    def read(cls, data: Mapping[str, str]) -> MetricSettings:
        """Read the `data` of the ConfigMap; unknown keys are left alone."""
        found: dict[str, Any] = {}
        problems: list[str] = []
        for key, (name, read) in _READERS.items():
            text = data.get(key)
            if text is None:
                continue
            try:
                found[name] = read(text)
            except (DocumentError, ValueSyntaxError) as error:
                problems.append(f"{key}: {error}")
        return replace(cls(**found), problems=tuple(problems))


def read_namespaces(text: str) -> Namespaces:
    """Read `{"include": [...], "exclude": [...]}`; `null` is the same as nothing."""
    value = _object(decode(text), "must be one JSON object")
    return Namespaces(_texts(value.get("include"), "include"), _texts(value.get("exclude"), "exclude"))


def read_buckets(text: str) -> tuple[float, ...]:
    """Read a comma list of upper limits in seconds; blanks do not count, and an empty text is an empty list.

    >>> read_buckets("0.005, 0.1")
    (0.005, 0.1)
    """
    parts = [part.strip() for part in text.split(",")]
    return tuple(map(_limit, parts)) if text.strip() else ()


def read_interval(text: str) -> float:
    """Read a duration in Go's form as seconds; one below zero is the same as none.

    >>> read_interval("1m30s")
    90.0
    """
    return max(parse_duration(text) / _NANOSECONDS, 0.0)


def read_exposures(text: str) -> Mapping[str, Exposure]:
    """Read `{metric: {"enabled": ..., "disabledLabelDimensions": [...], "bucketBoundaries": [...]}}`."""
    metrics = _object(decode(text), "must be one JSON object")
    return {name: _exposure(name, _object(value, f"`{name}` must be an object")) for name, value in metrics.items()}


def _exposure(name: str, value: JSONObject) -> Exposure:
    enabled = value.get("enabled", True)
    buckets = value.get("bucketBoundaries") or ()
    if not isinstance(enabled, bool):
        raise ValueSyntaxError(f"`{name}.enabled` must be true or false")
    if not isinstance(buckets, list | tuple) or not all(type(each) in (int, float) for each in buckets):
        raise ValueSyntaxError(f"`{name}.bucketBoundaries` must be a list of numbers")
    return Exposure(
        enabled, _texts(value.get("disabledLabelDimensions"), "disabledLabelDimensions"), tuple(map(float, buckets))
    )


def _limit(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = nan
    if not isfinite(found):
        raise ValueSyntaxError(f"invalid boundary value '{text}'")
    return found


def _object(value: JSON, problem: str) -> JSONObject:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueSyntaxError(problem)
    return value


def _texts(value: JSON, name: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ValueSyntaxError(f"`{name}` must be a list of texts")
    return tuple(value)


_READERS: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    "namespaces": ("namespaces", read_namespaces),
    "bucketBoundaries": ("buckets", read_buckets),
    "metricsExposure": ("exposures", read_exposures),
    "metricsRefreshInterval": ("refresh_seconds", read_interval),
}
