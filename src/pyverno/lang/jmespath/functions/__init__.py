"""The functions of Kyverno's JMESPath: one registration each, one module per topic.

A function takes checked JSON values and returns a JSON value. It never changes an argument, and charges the runtime
before it produces something large. A topic is imported when one of its functions is looked up, because most expressions
call none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from pyverno.lang.jmespath.function import Function

__all__ = ["FUNCTIONS", "TOPICS"]


def _standard() -> tuple[Function, ...]:
    from pyverno.lang.jmespath.functions import standard

    return standard.FUNCTIONS


def _ordering() -> tuple[Function, ...]:
    from pyverno.lang.jmespath.functions import ordering

    return ordering.FUNCTIONS


def _strings() -> tuple[Function, ...]:
    from pyverno.lang.jmespath.functions import strings

    return strings.FUNCTIONS


def _regex() -> tuple[Function, ...]:
    from pyverno.lang.jmespath.functions import regex

    return regex.FUNCTIONS


def _numbers() -> tuple[Function, ...]:
    from pyverno.lang.jmespath.functions import numbers

    return numbers.FUNCTIONS


def _collections() -> tuple[Function, ...]:
    from pyverno.lang.jmespath.functions import collections

    return collections.FUNCTIONS


def _encoding() -> tuple[Function, ...]:
    from pyverno.lang.jmespath.functions import encoding

    return encoding.FUNCTIONS


def _times() -> tuple[Function, ...]:
    from pyverno.lang.jmespath.functions import times

    return times.FUNCTIONS


def _randomness() -> tuple[Function, ...]:
    from pyverno.lang.jmespath.functions import randomness

    return randomness.FUNCTIONS


def _x509() -> tuple[Function, ...]:
    from pyverno.lang.jmespath.functions import x509

    return x509.FUNCTIONS


def _images() -> tuple[Function, ...]:
    from pyverno.lang.jmespath.functions import images

    return images.FUNCTIONS


def _network() -> tuple[Function, ...]:
    from pyverno.lang.jmespath.functions import network

    return network.FUNCTIONS


TOPICS: Final[Mapping[str, tuple[Callable[[], tuple[Function, ...]], str]]] = {
    "standard": (
        _standard,
        (
            "abs avg ceil contains ends_with floor join keys length map merge not_null reverse starts_with to_array "
            "to_number to_string type values"
        ),
    ),
    "ordering": (_ordering, "max max_by min min_by sort sort_by"),
    "strings": (
        _strings,
        (
            "compare equal_fold replace replace_all to_upper to_lower trim trim_prefix split pattern_match "
            "label_match to_boolean path_canonicalize truncate semver_compare"
        ),
    ),
    "regex": (_regex, "regex_match regex_replace_all regex_replace_all_literal"),
    "numbers": (_numbers, "add sum subtract multiply divide modulo round"),
    "collections": (_collections, "lookup items object_from_lists"),
    "encoding": (_encoding, "base64_decode base64_encode parse_json parse_yaml sha256 sha1 md5"),
    "times": (
        _times,
        (
            "time_since time_now time_now_utc time_to_cron time_add time_parse time_utc time_diff time_before "
            "time_after time_between time_truncate"
        ),
    ),
    "randomness": (_randomness, "random"),
    "x509": (_x509, "x509_decode"),
    "images": (_images, "image_normalize"),
    "network": (_network, "is_external_url"),
}
"""The topics: how to load one, and the functions that it registers."""


class _Functions(Mapping[str, Function]):
    """All functions by name; a topic is imported when the first of its functions is looked up."""

    def __init__(self) -> None:
        self._topics = {name: load for load, names in TOPICS.values() for name in names.split()}
        self._loaded: dict[str, Function] = {}

    def __getitem__(self, name: str) -> Function:
        if name not in self._loaded:
            self._loaded.update({each.name: each for each in self._topics[name]()})
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._topics

    def __iter__(self) -> Iterator[str]:
        return iter(self._topics)

    def __len__(self) -> int:
        return len(self._topics)


FUNCTIONS: Final[Mapping[str, Function]] = _Functions()
"""Every function by name, JMESPath's own first; Kyverno's `sum` replaces the standard one."""
